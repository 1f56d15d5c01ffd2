// The agent's next action, shown where it happens: a quiet box and a pointer over
// the picture.

import { byId, say } from "./dom.js";

/** @import * as T from "./types.js" */

const stays = 1600; // ms that a mark is seen after its action

export class Marks {
  #operation = "";
  #gone = 0;
  #at = "";

  /** @param {() => number} now the server's time */
  constructor(now) {
    this.now = now;
    this.box = byId("box");
    this.cursor = byId("cursor");
  }

  /** @param {T.ViewState} s @param {T.Viewport} view what the picture shows */
  update(s, view) {
    this.#box(s, view);
    this.#pointer(s, view);
  }

  /** @param {T.ViewState} s @param {T.Viewport} view */
  #box(s, view) {
    // Quick actions are over before anybody is told of them.
    const op = s.operation?.box ? s.operation : s.activities?.findLast((a) => a.box && a.role === "agent");
    if (!op?.box || op.tab && op.tab !== s.selected || op.role === "human") {
      this.box.hidden = true;
      return;
    }
    if (op.operation !== this.#operation) {
      if (op.ended && this.now() - Date.parse(op.ended) > stays) return;
      this.#operation = op.operation;
      this.box.hidden = true; // its arrival is shown anew
      void this.box.offsetWidth;
      this.box.hidden = false;
      this.box.classList.remove("gone");
      clearTimeout(this.#gone);
      this.#gone = 0;
    }
    place(this.box, view, op.box.x - 3, op.box.y - 3, op.box.width + 6, op.box.height + 6);
    if (op.ended) this.#gone ||= window.setTimeout(() => this.box.classList.add("gone"), stays);
  }

  /** @param {T.ViewState} s @param {T.Viewport} view */
  #pointer(s, view) {
    const c = s.cursor;
    const shown = !!c && c.tab === s.selected && !s.participants?.some((p) => p.mine && p.actor === c.actor && p.role === c.role);
    this.cursor.hidden = !shown;
    if (!c || !shown) return;
    this.cursor.classList.toggle("person", c.role === "human");
    say(byId("cursor-name"), c.actor);
    place(this.cursor, view, c.x, c.y);
    const at = `${c.x} ${c.y} ${c.actor}`;
    if (at !== this.#at) this.cursor.classList.remove("gone");
    this.#at = at;
  }

  clear() {
    this.box.hidden = this.cursor.hidden = true;
  }
}

/** Places in shares of the picture, so that they hold at every scale. @param {HTMLElement} e @param {T.Viewport} v @param {number} x @param {number} y @param {number} [w] @param {number} [h] */
function place(e, v, x, y, w, h) {
  e.style.left = (x / v.width) * 100 + "%";
  e.style.top = (y / v.height) * 100 + "%";
  if (w !== undefined) e.style.width = (w / v.width) * 100 + "%";
  if (h !== undefined) e.style.height = (h / v.height) * 100 + "%";
}
