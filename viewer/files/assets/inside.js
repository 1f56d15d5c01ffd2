// The inspector: what runs in the browser's cell, whom it is connected to, and what
// lies in its download folder. It only looks (VIEW-6).

import { byId, el, say } from "./dom.js";
import { clock, size } from "./words.js";

/** @import * as T from "./types.js" */
/** @import { App } from "./chrome.js" */

const each = 3000; // milliseconds between two looks, while the panel is open

export class Inside {
  #timer = 0;
  #open = false;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  /** Looks again and again while the panel is open. @param {boolean} open */
  show(open) {
    this.#open = open;
    clearTimeout(this.#timer);
    if (open) void this.#look();
  }

  async #look() {
    const r = document.hidden ? null : await this.app.act({ verb: "inspect" });
    if (r?.inspection) this.#tell(r.inspection);
    else if (!document.hidden) say(byId("inside-when"), "It cannot be looked into now.");
    if (this.#open) this.#timer = window.setTimeout(() => void this.#look(), each);
  }

  /** @param {T.Inspection} i */
  #tell(i) {
    const processes = i.processes ?? [], connections = i.connections ?? [], files = i.files ?? [];
    const memory = processes.reduce((sum, p) => sum + p.memory, 0);
    say(byId("inside-when"), i.incarnation ? `As of ${clock(Date.now())}${i.left ? `; ${i.left} more are not shown` : ""}` : "No browser runs now.");
    say(byId("inside-processes-title"), processes.length ? `Processes (${processes.length}, ${size(memory)})` : "Processes");
    say(byId("inside-connections-title"), `Connections to the network (${connections.length})`);
    say(byId("inside-files-title"), `Download folder (${files.length})`);
    rows("inside-processes", [...processes].sort((a, b) => b.memory - a.memory).map((p) => [p.name, `${p.pid}`, size(p.memory)]), "None.");
    rows("inside-connections", connections.map((c) => [`${c.host}:${c.port}`, `since ${clock(c.since)}`, `↑ ${size(c.up)} ↓ ${size(c.down)}`]), "None is open.");
    rows("inside-files", files.map((f) => [f.name, clock(f.modified), size(f.size)]), "It is empty.");
  }
}

/** @param {string} id @param {string[][]} all @param {string} none */
function rows(id, all, none) {
  const made = all.map(([name, more, amount]) => el("li", {}, el("span", { class: "label", title: name ?? "" }, name ?? ""), el("small", {}, more ?? ""), el("small", {}, amount ?? "")));
  byId(id).replaceChildren(...(made.length ? made : [el("li", { class: "none" }, none)]));
}
