// Mouse, pen, wheel and fingers on the picture become raw input on the page (INP-1).

/** @import * as T from "./types.js" */
/** @import { Picture } from "./picture.js" */

/**
 * What input needs of the page.
 * @typedef {object} Desk
 * @property {Picture} picture
 * @property {() => boolean} may says whether input goes anywhere; when not, it tells the person why
 * @property {() => boolean} mayQuietly the same without a word
 * @property {() => boolean} engaged whether the person works on the picture
 * @property {() => void} engage
 * @property {(a: T.Action, answered?: boolean) => void} send
 */

const buttons = ["left", "middle", "right"];
const again = { ms: 500, px: 6 }; // presses that count as a double click
const line = 40; // CSS pixels of a wheel's line

/** @param {MouseEvent|KeyboardEvent} e @param {boolean} [mac] @returns {string[]|undefined} */
export function modifiersOf(e, mac = false) {
  const graph = e.getModifierState("AltGraph");
  const m = [];
  if (e.altKey && !graph) m.push("Alt");
  if (e.ctrlKey && !graph || mac && e.metaKey) m.push("Control");
  if (e.metaKey && !mac) m.push("Meta");
  if (e.shiftKey) m.push("Shift");
  return m.length ? m : undefined;
}

export class Pointers {
  /** @type {Map<string, {x: number, y: number}>} */
  #held = new Map();
  /** @type {T.Action|null} */
  #move = null;
  /** @type {T.Action|null} */
  #wheel = null;
  #frame = 0;
  #press = { at: 0, x: 0, y: 0, button: "", count: 0 };

  /** @param {Desk} desk @param {HTMLElement} surface @param {boolean} mac */
  constructor(desk, surface, mac) {
    this.desk = desk;
    this.mac = mac;
    this.surface = surface;
    surface.addEventListener("pointerdown", (e) => this.#down(e));
    surface.addEventListener("pointermove", (e) => this.#moved(e));
    surface.addEventListener("pointerup", (e) => this.#up(e));
    surface.addEventListener("pointercancel", () => this.release());
    surface.addEventListener("lostpointercapture", (e) => {
      if (e.pointerType !== "touch" && e.buttons === 0) this.release();
    });
    surface.addEventListener("wheel", (e) => this.#wheeled(e), { passive: false });
    surface.addEventListener("contextmenu", (e) => e.preventDefault());
    surface.addEventListener("mousedown", (e) => e.preventDefault()); // the focus stays where engage puts it
    surface.addEventListener("auxclick", (e) => e.preventDefault());
    surface.addEventListener("dragstart", (e) => e.preventDefault());
  }

  /** @param {string} kind @param {PointerEvent|WheelEvent} e @param {Record<string, unknown>} [more] @returns {T.Action} */
  #event(kind, e, more = {}) {
    const { frame } = this.desk.picture;
    const at = this.desk.picture.toPage(e.clientX, e.clientY);
    return {
      verb: "pointer", tab: frame?.tab ?? "", viewport: frame?.viewport ?? 0, kind,
      x: Math.round(at.x * 100) / 100, y: Math.round(at.y * 100) / 100, modifiers: modifiersOf(e, this.mac), ...more,
    };
  }

  /** @param {PointerEvent} e */
  #down(e) {
    if (e.pointerType === "touch") return;
    const button = buttons[e.button];
    e.preventDefault();
    if (!button || !this.desk.picture.holds(e.clientX, e.clientY) || !this.desk.may()) return;
    this.desk.engage();
    this.surface.setPointerCapture(e.pointerId);
    this.flush();
    const p = this.#press;
    const near = Math.hypot(e.clientX - p.x, e.clientY - p.y) <= again.px && e.timeStamp - p.at <= again.ms && p.button === button;
    this.#press = { at: e.timeStamp, x: e.clientX, y: e.clientY, button, count: near ? p.count % 3 + 1 : 1 };
    const event = this.#event("down", e, { button, count: this.#press.count });
    this.#held.set(button, { x: Number(event.x), y: Number(event.y) });
    this.desk.send(event, true);
  }

  /** @param {PointerEvent} e */
  #moved(e) {
    if (e.pointerType === "touch") return;
    // Mice tell further buttons by moves: pointerdown is for the first only.
    for (const [i, bit] of [[0, 1], [1, 4], [2, 2]]) {
      const button = buttons[i ?? 0] ?? "";
      const down = (e.buttons & (bit ?? 0)) !== 0;
      if (this.#held.size && down && !this.#held.has(button)) {
        this.#held.set(button, this.desk.picture.toPage(e.clientX, e.clientY));
        this.flush();
        this.desk.send(this.#event("down", e, { button, count: 1 }), true);
      } else if (!down && this.#held.has(button)) this.#lift(button, e);
    }
    // Who only looks must not move the agent's pointer: moves go while one works here.
    if (!this.#held.size && (!this.desk.engaged() || !this.desk.picture.holds(e.clientX, e.clientY))) return;
    if (!this.desk.mayQuietly()) return;
    this.#move = this.#event("move", e);
    this.#later();
  }

  /** @param {PointerEvent} e */
  #up(e) {
    if (e.pointerType === "touch") return;
    const button = buttons[e.button] ?? "";
    if (this.#held.has(button)) this.#lift(button, e);
    if (!e.buttons && this.surface.hasPointerCapture(e.pointerId)) this.surface.releasePointerCapture(e.pointerId);
  }

  /** @param {string} button @param {PointerEvent} e */
  #lift(button, e) {
    this.#held.delete(button);
    this.flush();
    this.desk.send(this.#event("up", e, { button, count: this.#press.button === button ? this.#press.count : 1 }), true);
  }

  /** @param {WheelEvent} e */
  #wheeled(e) {
    if (e.ctrlKey) return; // the person's own zoom
    e.preventDefault();
    if (!this.desk.picture.holds(e.clientX, e.clientY) || !this.desk.may()) return;
    const unit = e.deltaMode === 1 ? line : e.deltaMode === 2 ? this.desk.picture.viewport.height : 1;
    const before = this.#wheel;
    const event = this.#event("wheel", e);
    const turned = e.shiftKey && !e.deltaX ? { dx: e.deltaY * unit, dy: 0 } : { dx: e.deltaX * unit, dy: e.deltaY * unit };
    this.#wheel = { ...event, dx: Number(before?.dx ?? 0) + turned.dx, dy: Number(before?.dy ?? 0) + turned.dy };
    this.#later();
  }

  #later() {
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }

  /** Sends what was put together for this frame of the screen, in the order of things. */
  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { frame } = this.desk.picture;
    for (const a of [this.#move, this.#wheel]) if (a && frame && a.tab === frame.tab) this.desk.send({ ...a, viewport: frame.viewport });
    this.#move = this.#wheel = null;
  }

  /** Lets go of every button (B084). */
  release() {
    this.flush();
    const { frame } = this.desk.picture;
    for (const [button, at] of this.#held) this.desk.send({ verb: "pointer", kind: "up", button, tab: frame?.tab ?? "", viewport: frame?.viewport ?? 0, x: at.x, y: at.y }, true);
    this.#held.clear();
  }
}
