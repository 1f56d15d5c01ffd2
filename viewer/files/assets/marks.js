// The agent's next action, shown where it happens: a quiet box and a pointer over
// the picture.

import { byId, say } from "./dom.js";

/** @import * as T from "./types.js" */

const stays = 1600; // ms that a mark is seen after its action

export class Marks {
  #operation = "";
  #gone = 0;
  #at = "";

  constructor() {
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
    const op = s.operation;
    const last = op?.box ? op : s.activities?.findLast((a) => a.box && a.ended && a.operation === this.#operation);
    if (!last?.box || last.tab && last.tab !== s.selected || last.role === "human") {
      this.box.hidden = true;
      return;
    }
    if (op?.box && op.operation !== this.#operation) {
      this.#operation = op.operation;
      this.box.hidden = true; // its arrival is shown anew
      void this.box.offsetWidth;
    }
    place(this.box, view, last.box.x - 3, last.box.y - 3, last.box.width + 6, last.box.height + 6);
    if (op?.box) {
      clearTimeout(this.#gone);
      this.#gone = 0;
      this.box.classList.remove("gone");
      this.box.hidden = false;
    } else this.#gone ||= window.setTimeout(() => { this.box.classList.add("gone"); this.#gone = 0; }, stays);
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
