// The panels beside the picture: what happened, files, the page as text, the cell.

import { attr, byId, choice, choose, el, icon, reconcile, say } from "./dom.js";
import { Inside } from "./inside.js";
import { failureOf, segment } from "./session.js";
import { clock, deed, onlyLooks, size, worthTelling } from "./words.js";

/** @import * as T from "./types.js" */
/** @import { App } from "./chrome.js" */

/** @typedef {App & {lease: () => string, blob: (path: string) => Promise<Blob>}} SideApp */

const panels = ["activity", "files", "text", "inside"];
const previewMost = 8 << 20; // bytes that are shown without asking
const makers = new Set(["screenshot", "pdf", "click", "navigate", "press", "press_key", "delete_artifact"]);

export class Side {
  #seen = "";
  #due = 0;
  /** @type {Map<string, string>} object addresses of pictures by artifact */
  #pictures = new Map();

  /** @param {SideApp} app @param {boolean} embedded */
  constructor(app, embedded) {
    this.app = app;
    this.work = /** @type {HTMLElement} */ (document.querySelector(".work"));
    this.inside = new Inside(app);
    this.small = matchMedia("(max-width: 1000px)");
    this.open(!this.small.matches && !embedded && choice("side", true), false);
    byId("side-toggle").addEventListener("click", () => this.open(this.work.classList.contains("narrow")));
    byId("side-close").addEventListener("click", () => { this.open(false); byId("side-toggle").focus(); });
    this.small.addEventListener("change", (e) => { if (e.matches) this.open(false, false); });
    byId("side").addEventListener("keydown", (e) => {
      if (e.key === "Escape" && this.small.matches) { this.open(false); byId("side-toggle").focus(); }
    });
    for (const p of panels) byId("tab-" + p).addEventListener("click", () => this.show(p));
    byId("side").querySelector("[role=tablist]")?.addEventListener("keydown", (e) => this.#keys(/** @type {KeyboardEvent} */ (e)));
    byId("text-read").addEventListener("click", () => void this.#read());
    const preview = /** @type {HTMLDialogElement} */ (byId("preview"));
    byId("preview-close").addEventListener("click", () => preview.close());
    preview.addEventListener("close", () => byId("preview-body").replaceChildren());
  }

  /** @param {boolean} open @param {boolean} [remember] */
  open(open, remember = true) {
    this.work.classList.toggle("narrow", !open);
    this.#inside();
    attr(byId("side-toggle"), "aria-expanded", String(open));
    if (remember && !this.small.matches) choose("side", open);
  }

  /** @param {string} panel */
  show(panel) {
    for (const p of panels) {
      const tab = byId("tab-" + p);
      attr(tab, "aria-selected", String(p === panel));
      tab.tabIndex = p === panel ? 0 : -1;
      byId("panel-" + p).hidden = p !== panel;
    }
    if (panel === "files") void this.#files();
    this.#inside();
  }

  /** The cell is looked into only while somebody sees what comes of it. */
  #inside() {
    this.inside.show(!byId("panel-inside").hidden && !this.work.classList.contains("narrow"));
  }

  /** @param {KeyboardEvent} e */
  #keys(e) {
    const at = panels.findIndex((p) => byId("tab-" + p) === e.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: panels.length - 1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    const p = panels[(to + panels.length) % panels.length] ?? "activity";
    this.show(p);
    byId("tab-" + p).focus();
  }

  /** @param {T.ViewState} s */
  update(s) {
    const all = (s.activities ?? []).filter(worthTelling).reverse();
    if (s.operation && worthTelling(s.operation) && !all.some((a) => a.operation === s.operation?.operation)) all.unshift(s.operation);
    byId("activity-empty").hidden = all.length > 0;
    reconcile(byId("activity"), all, (a) => a.operation + a.started, makeLine, (e, a) => updateLine(e, a, this.app.me()));
    const news = all.filter((a) => a.ended && makers.has(a.verb)).map((a) => a.operation + a.ended).join().slice(0, 400);
    if (news === this.#seen) return;
    this.#seen = news;
    clearTimeout(this.#due);
    this.#due = window.setTimeout(() => void this.#files(), 400);
  }

  async #files() {
    if (!this.app.lease()) return;
    const r = await this.app.act({ verb: "list_artifacts" });
    if (!r) return;
    const all = [...(r.artifacts ?? [])].sort((a, b) => b.created.localeCompare(a.created));
    const count = byId("files-count");
    count.hidden = all.length === 0;
    say(count, String(all.length));
    byId("files-empty").hidden = all.length > 0;
    for (const [id, url] of this.#pictures) if (!all.some((a) => a.artifact === id)) { URL.revokeObjectURL(url); this.#pictures.delete(id); }
    reconcile(byId("files"), all, (a) => a.artifact, (a) => this.#makeFile(a), () => {});
    if (!byId("panel-files").hidden) void this.#thumbnails(all);
  }

  /** @param {T.Artifact} a @returns {string} */
  #path(a) {
    return `/v1/leases/${segment(this.app.lease())}/artifacts/${segment(a.artifact)}`;
  }

  /** @param {T.Artifact} a */
  #makeFile(a) {
    const name = a.name || a.kind;
    const pic = el("button", { type: "button", class: "pic", "aria-label": `Show ${name}`, onclick: () => void this.#preview(a) }, icon("file"));
    const save = el("button", { type: "button", class: "tool", title: "Download", "aria-label": `Download ${name}`, onclick: () => void this.#save(a) }, icon("download"));
    return el("li", {}, pic, el("div", {}, el("span", { class: "label", title: name }, name), el("small", {}, `${a.kind} · ${size(a.size)} · ${clock(a.created)}`)), save);
  }

  /** Small pictures of pictures, for the first ones. @param {T.Artifact[]} all */
  async #thumbnails(all) {
    for (const a of all.slice(0, 24)) {
      if (this.#pictures.has(a.artifact) || !isPicture(a) || a.size > previewMost) continue;
      try {
        const url = URL.createObjectURL(await this.app.blob(this.#path(a)));
        this.#pictures.set(a.artifact, url);
        const pic = [...byId("files").children].find((e) => e instanceof HTMLElement && e.dataset.key === a.artifact)?.querySelector(".pic");
        pic?.replaceChildren(el("img", { src: url, alt: "" }));
      } catch {
        return; // the line is broken, or the lease ended: another time
      }
    }
  }

  /** @param {T.Artifact} a */
  async #preview(a) {
    const body = byId("preview-body");
    const dialog = /** @type {HTMLDialogElement} */ (byId("preview"));
    say(byId("preview-name"), a.name || a.kind);
    byId("preview-save").onclick = () => void this.#save(a);
    body.replaceChildren(el("p", {}, "Loading…"));
    dialog.showModal();
    const text = /^text\/|json|xml/.test(a.media_type);
    if (!isPicture(a) && !text || a.size > previewMost) {
      body.replaceChildren(el("p", {}, `${a.media_type || "This kind of file"}, ${size(a.size)}: there is no preview. Download it to see it.`));
      return;
    }
    try {
      const blob = await this.app.blob(this.#path(a));
      if (text) {
        body.replaceChildren(el("pre", {}, (await blob.text()).slice(0, 200_000)));
        return;
      }
      const url = URL.createObjectURL(blob);
      const img = el("img", { src: url, alt: a.name || a.kind });
      dialog.addEventListener("close", () => URL.revokeObjectURL(url), { once: true });
      body.replaceChildren(img);
    } catch (err) {
      body.replaceChildren(el("p", {}, failureOf(err).message));
    }
  }

  /** @param {T.Artifact} a */
  async #save(a) {
    try {
      const url = URL.createObjectURL(await this.app.blob(this.#path(a)));
      el("a", { href: url, download: a.name || a.kind }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (err) {
      this.app.hint(failureOf(err).message);
    }
  }

  async #read() {
    const button = /** @type {HTMLButtonElement} */ (byId("text-read"));
    button.disabled = true;
    say(byId("text-when"), "Reading…");
    const r = await this.app.act({ verb: "read" });
    button.disabled = false;
    say(byId("text-when"), r ? "As of " + clock(Date.now()) : "");
    if (r) byId("text").textContent = r.reading?.markdown.trim() || "There is no text on this page.";
    say(button, "Read again");
  }
}

/** @param {T.Artifact} a */
const isPicture = (a) => /^image\/(png|jpeg|webp|gif)$/.test(a.media_type);

function makeLine() {
  return el("li", {}, el("span", {}, el("b"), " ", el("span")), el("time"));
}

/** @param {HTMLElement} e @param {T.Activity} a @param {string} me */
function updateLine(e, a, me) {
  const mine = a.role === "human" && a.actor === me;
  const looks = onlyLooks(a) && a.outcome !== "failed";
  const name = [a.role === "agent" ? "agent" : mine ? "mine" : a.actor ? "person" : "itself", looks ? "looks" : "", a.outcome === "failed" || a.outcome === "unknown" ? "failed" : "", a.ended || a.outcome ? "" : "runs"].filter(Boolean).join(" ");
  if (e.className !== name) e.className = name;
  const b = e.querySelector("b");
  const words = e.firstElementChild?.lastElementChild;
  const time = e.querySelector("time");
  if (b) say(b, mine ? "You" : a.actor || "Reins");
  if (words) {
    const d = deed(a);
    say(words, mine ? d.replace(/^is /, "are ").replace(/^was /, "were ") : d);
  }
  if (time && time.dateTime !== a.started) {
    time.dateTime = a.started;
    time.textContent = clock(a.started);
  }
}
