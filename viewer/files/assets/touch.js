// Fingers on the picture. One is the page's: it taps, holds and scrolls there. Two
// are this window's: they enlarge the picture and move it about.

/** @import { Desk } from "./pointer.js" */

/** @typedef {{id: number, x: number, y: number, at: {x: number, y: number}, radius: number, force: number}} Finger */

export class Touches {
  /** @type {Map<number, Finger>} by the number of the pointer */
  #fingers = new Map();
  /** @type {"none"|"page"|"window"} */
  #whose = "none";
  #moved = false;
  #frame = 0;
  /** Where the last tap was, on the page; for what must not hide it. @type {{x: number, y: number}|null} */
  last = null;

  /** @param {Desk} desk @param {HTMLElement} surface */
  constructor(desk, surface) {
    this.desk = desk;
    surface.addEventListener("pointerdown", (e) => { if (e.pointerType === "touch") this.#down(e, surface); });
    surface.addEventListener("pointermove", (e) => { if (e.pointerType === "touch") this.#move(e); });
    surface.addEventListener("pointerup", (e) => { if (e.pointerType === "touch") this.#up(e); });
    surface.addEventListener("pointercancel", (e) => { if (e.pointerType === "touch") this.release(); });
  }

  /** @param {PointerEvent} e @param {number} id @returns {Finger} */
  #finger(e, id) {
    const at = this.desk.picture.toPage(e.clientX, e.clientY);
    return { id, x: e.clientX, y: e.clientY, at, radius: Math.min(100, e.width / 2), force: Math.min(1, e.pressure) };
  }

  /** @param {string} kind @param {boolean} [answered] */
  #send(kind, answered = false) {
    const { frame } = this.desk.picture;
    const points = [...this.#fingers.values()].map((f) => ({ id: f.id, x: f.at.x, y: f.at.y, radius: f.radius, force: f.force }));
    this.desk.send({ verb: "touch", kind, tab: frame?.tab ?? "", viewport: frame?.viewport ?? 0, points: kind === "cancel" || kind === "end" ? [] : points }, answered);
  }

  /** @param {PointerEvent} e @param {HTMLElement} surface */
  #down(e, surface) {
    e.preventDefault();
    if (this.#fingers.size >= 2) return;
    if (this.#fingers.size === 0 && !this.desk.picture.holds(e.clientX, e.clientY)) return;
    surface.setPointerCapture(e.pointerId);
    if (this.#fingers.size === 1) {
      if (this.#whose === "page") this.#send("cancel", true);
      this.#whose = "window";
    } else {
      this.#whose = this.desk.may() ? "page" : "none";
      this.last = this.desk.picture.toPage(e.clientX, e.clientY);
    }
    const used = new Set([...this.#fingers.values()].map((f) => f.id));
    this.#fingers.set(e.pointerId, this.#finger(e, used.has(0) ? 1 : 0));
    if (this.#whose === "page") this.#send("start", true);
  }

  /** @param {PointerEvent} e */
  #move(e) {
    const before = this.#fingers.get(e.pointerId);
    if (!before) return;
    if (this.#whose === "window") this.#pinch(e, before);
    this.#fingers.set(e.pointerId, this.#finger(e, before.id));
    if (this.#whose !== "page") return;
    this.#moved = true;
    this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  /** @param {PointerEvent} e @param {Finger} before */
  #pinch(e, before) {
    const other = [...this.#fingers.values()].find((f) => f !== before);
    if (!other) {
      this.desk.picture.pinch(1, e.clientX, e.clientY, e.clientX - before.x, e.clientY - before.y);
      return;
    }
    const was = Math.hypot(before.x - other.x, before.y - other.y);
    const is = Math.hypot(e.clientX - other.x, e.clientY - other.y);
    const mid = { x: (e.clientX + other.x) / 2, y: (e.clientY + other.y) / 2 };
    this.desk.picture.pinch(was > 0 ? is / was : 1, mid.x, mid.y, (e.clientX - before.x) / 2, (e.clientY - before.y) / 2);
  }

  #flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#moved && this.#whose === "page") this.#send("move");
    this.#moved = false;
  }

  /** @param {PointerEvent} e */
  #up(e) {
    if (!this.#fingers.has(e.pointerId)) return;
    if (this.#whose === "page") this.#flush();
    this.#fingers.delete(e.pointerId);
    if (this.#whose === "page") this.#send("end", true);
    if (this.#fingers.size === 0) this.#whose = "none";
  }

  /** Lifts every finger without a tap. */
  release() {
    if (this.#whose === "page" && this.#fingers.size) this.#send("cancel", true);
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#fingers.clear();
    this.#whose = "none";
  }
}
