// A dialog of the page (alert, confirm, prompt, leave?), answered here.

import { announce, byId, say } from "./dom.js";
import { short } from "./words.js";

/** @import * as T from "./types.js" */
/** @import { App } from "./chrome.js" */

/** @type {Record<string, [title: string, yes: string, no: string]>} */
const kinds = {
  alert: ["The page says", "OK", ""],
  confirm: ["The page asks", "OK", "Cancel"],
  prompt: ["The page asks for text", "OK", "Cancel"],
  beforeunload: ["Leave this page?", "Leave", "Stay"],
};

export class Ask {
  #shown = "";

  /** @param {App} app @param {() => boolean} engaged whether the person works on the picture, and so expects the focus to come */
  constructor(app, engaged) {
    this.app = app;
    this.engaged = engaged;
    this.at = byId("ask");
    this.input = /** @type {HTMLInputElement} */ (byId("ask-input"));
    byId("ask-form").addEventListener("submit", (e) => { e.preventDefault(); void this.#answer(true); });
    byId("ask-no").addEventListener("click", () => void this.#answer(false));
    this.at.addEventListener("keydown", (e) => { if (e.key === "Escape") void this.#answer(false); });
  }

  /** @param {T.ViewState} s */
  update(s) {
    const d = s.dialog;
    const key = d ? `${s.selected} ${d.kind} ${d.message}` : "";
    if (key === this.#shown) return;
    this.#shown = key;
    this.at.hidden = !d;
    if (!d) return;
    const [title, yes, no] = kinds[d.kind] ?? ["The page asks", "OK", "Cancel"];
    say(byId("ask-title"), title);
    say(byId("ask-text"), d.message || (d.kind === "beforeunload" ? "What was entered may be lost." : ""));
    say(byId("ask-yes"), yes);
    say(byId("ask-no"), no);
    byId("ask-no").hidden = !no;
    byId("ask-label").hidden = d.kind !== "prompt";
    this.input.value = d.default ?? "";
    announce(`${title}: ${short(d.message, 200)}`);
    if (this.engaged()) (d.kind === "prompt" ? this.input : byId("ask-yes")).focus();
  }

  /** @param {boolean} yes */
  async #answer(yes) {
    const tab = this.app.state()?.selected;
    if (!tab || !this.app.may()) return;
    const prompt = !byId("ask-label").hidden;
    if (yes && prompt && !(await this.app.act({ verb: "fill", tab, ref: "dialog-prompt", value: this.input.value }))) return;
    await this.app.act({ verb: "click", tab, ref: yes || byId("ask-no").hidden ? "dialog-accept" : "dialog-dismiss" });
  }
}
