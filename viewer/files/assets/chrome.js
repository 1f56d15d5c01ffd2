// Tabs, address, back, forward, reload.

import { attr, byId, el, icon, reconcile } from "./dom.js";
import { address, place } from "./words.js";

/** @import * as T from "./types.js" */

/** What the page's parts ask of each other.
 * @typedef {object} App
 * @property {(a: T.Action) => Promise<T.Result|null>} act runs an action; a failure is told to the person and answered with null
 * @property {(text: string) => void} hint
 * @property {() => boolean} may whether this person may act now; tells why not
 * @property {() => number} now the server's time
 * @property {() => T.ViewState|null} state
 * @property {() => string} me this person's name
 */

export class Chrome {
  #url = "";
  #typing = false;

  /** @param {App} app @param {() => void} toPage gives the focus to the picture */
  constructor(app, toPage) {
    this.app = app;
    this.list = byId("tabs");
    this.input = /** @type {HTMLInputElement} */ (byId("address"));
    for (const id of ["back", "forward", "reload"]) byId(id).addEventListener("click", () => this.go(id));
    byId("new-tab").addEventListener("click", () => {
      if (this.app.may()) void this.app.act({ verb: "open_tab" }).then((r) => r && this.focusAddress());
    });
    byId("address-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.#submit(toPage);
    });
    this.input.addEventListener("focus", () => { this.#typing = true; this.input.value = this.#url; this.input.select(); });
    this.input.addEventListener("blur", () => { this.#typing = false; this.#show(); });
    this.input.addEventListener("input", () => attr(this.input, "aria-invalid", null));
    this.input.addEventListener("keydown", (e) => {
      if (e.key !== "Escape") return;
      this.input.value = this.#url;
      toPage();
    });
    this.list.addEventListener("keydown", (e) => this.#keys(e));
  }

  focusAddress() {
    this.input.focus();
  }

  /** @param {string} where "back", "forward", "reload" or an address */
  go(where) {
    const selected = this.app.state()?.selected;
    if (this.app.may()) void this.app.act({ verb: "navigate", url: where, ...(selected ? { tab: selected } : {}) });
  }

  /** @param {() => void} toPage */
  #submit(toPage) {
    const url = address(this.input.value);
    if (!url) {
      attr(this.input, "aria-invalid", "true");
      this.app.hint("That is no address. Type one such as example.com.");
      return;
    }
    this.#url = url;
    toPage();
    this.go(url);
  }

  #show() {
    if (this.#typing) return;
    const full = this.#url === "about:blank" ? "" : this.#url;
    if (this.input.value !== full) this.input.value = full;
    this.input.title = this.#url;
    this.input.placeholder = "Address";
  }

  /** @param {T.ViewState} s */
  update(s) {
    const tabs = s.tabs ?? [];
    const selected = tabs.find((t) => t.tab === s.selected);
    this.#url = selected?.url ?? "";
    this.#show();
    byId("lock").querySelector("use")?.setAttribute("href", `/assets/icons.svg#${this.#url.startsWith("https:") ? "lock" : this.#url.startsWith("http:") ? "open" : "globe"}`);
    reconcile(this.list, tabs, (t) => t.tab, () => this.#makeTab(), (e, t) => this.#updateTab(e, t, t.tab === s.selected));
  }

  #makeTab() {
    const tab = el("button", { type: "button", role: "tab", "aria-controls": "stage", "aria-keyshortcuts": "Delete" }, el("i", { "aria-hidden": "true" }), el("span"));
    const close = el("button", { type: "button", class: "tool", tabIndex: -1, "aria-hidden": "true", title: "Close" }, icon("close"));
    const wrap = el("div", { class: "tab", role: "presentation" }, tab, close);
    const id = () => wrap.dataset.key ?? "";
    tab.addEventListener("click", () => this.#select(id()));
    tab.addEventListener("auxclick", (e) => { if (e.button === 1) this.#close(id()); });
    close.addEventListener("click", () => this.#close(id()));
    return wrap;
  }

  /** @param {HTMLElement} e @param {T.Tab} t @param {boolean} selected */
  #updateTab(e, t, selected) {
    const tab = /** @type {HTMLElement} */ (e.firstElementChild);
    const mark = /** @type {HTMLElement} */ (tab.firstElementChild);
    const name = t.title || place(t.url);
    e.classList.toggle("selected", selected);
    attr(tab, "aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    mark.className = t.crashed ? "crash" : t.loading ? "busy" : "";
    mark.textContent = t.crashed ? "!" : "";
    mark.hidden = !t.crashed && !t.loading;
    const text = /** @type {HTMLElement} */ (tab.lastElementChild);
    if (text.textContent !== name) text.textContent = name;
    tab.title = `${name}\n${t.url}`;
  }

  /** @param {string} id */
  #select(id) {
    if (id !== this.app.state()?.selected && this.app.may()) void this.app.act({ verb: "select_tab", tab: id });
  }

  /** @param {string} id */
  #close(id) {
    if (this.app.may()) void this.app.act({ verb: "close_tab", tab: id });
  }

  /** @param {KeyboardEvent} e */
  #keys(e) {
    const tabs = [...this.list.querySelectorAll("[role=tab]")];
    const at = tabs.indexOf(/** @type {Element} */ (e.target));
    if (at < 0) return;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (to !== undefined) {
      e.preventDefault();
      /** @type {HTMLElement} */ (tabs[(to + tabs.length) % tabs.length]).focus();
    } else if (e.key === "Delete") this.#close(/** @type {HTMLElement} */ (tabs[at]?.parentElement).dataset.key ?? "");
  }
}
