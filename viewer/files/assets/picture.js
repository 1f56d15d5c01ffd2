// The live picture: JPEG frames on a canvas, one device pixel for each of theirs
// where the window allows it, and the way from a place on the screen to a place
// on the page.

import { moves } from "./dom.js";

/** @import * as T from "./types.js" */

const most = { width: 2560, height: 1600, pixels: 8_294_400 }; // FRM-7
const zoomMax = 6;

/** @typedef {{frame: T.Frame, jpeg: Uint8Array<ArrayBuffer>}} Coded */

/** @param {number} v @param {number} lo @param {number} hi */
const between = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

export class Picture {
  /** @type {Coded|null} */
  #next = null;
  #decoding = false;
  /** @type {Map<number, T.Viewport>} */
  #views = new Map();
  /** @type {T.Viewport} */
  #view = { revision: 0, width: 1280, height: 800, scale: 1 };
  /** @type {number[]} */
  #painted = [];
  #delay = 0;
  #zoom = 1;
  #pan = { x: 0, y: 0 };
  #epoch = 0;
  #lift = 0;

  /**
   * @param {HTMLElement} stage what it has to fit into
   * @param {HTMLElement} glass what lies exactly over the picture
   * @param {HTMLCanvasElement} canvas
   * @param {{done: (id: T.FrameID) => void, painted: (f: T.Frame) => void, now: () => number}} on
   *   done: a frame's place in the window is free again; painted: it can be seen
   */
  constructor(stage, glass, canvas, on) {
    this.stage = stage;
    this.glass = glass;
    this.canvas = canvas;
    this.on = on;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    /** @type {T.Frame|null} the frame that is shown */
    this.frame = null;
    this.room = { width: stage.clientWidth, height: stage.clientHeight };
    /** @type {(() => void)|null} */
    this.resized = null;
    this.lent = 0;
    this.coarse = matchMedia("(pointer: coarse)");
    new ResizeObserver(() => {
      this.room = { width: stage.clientWidth, height: stage.clientHeight };
      this.layout();
      this.resized?.();
    }).observe(stage);
    document.addEventListener("visibilitychange", () => void this.#decode());
  }

  /** @param {T.Viewport} v */
  setViewport(v) {
    this.#views.set(v.revision, v);
    if (this.#views.size > 16) this.#views.delete(Math.min(...this.#views.keys()));
    if (!this.frame) this.#view = v;
    else this.#settle(this.frame);
    this.layout();
  }

  /** Takes a frame. One that is not shown because a newer one is here counts as done. @param {T.Frame} frame @param {Uint8Array<ArrayBuffer>} jpeg */
  show(frame, jpeg) {
    if (this.#next) this.on.done(this.#next.frame.id);
    this.#next = { frame, jpeg };
    if (document.hidden) { // nobody looks: keep the newest for when somebody does
      this.on.done(frame.id);
      return;
    }
    void this.#decode();
  }

  /** Forgets the picture: what comes next is of another browser. */
  clear() {
    this.#epoch++;
    this.#next = null;
    this.frame = null;
    this.#painted = [];
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  async #decode() {
    while (this.#next && !this.#decoding && !document.hidden) {
      const { frame, jpeg } = this.#next;
      const epoch = this.#epoch;
      this.#next = null;
      this.#decoding = true;
      try {
        const bitmap = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
        if (epoch === this.#epoch) this.#paint(frame, bitmap);
        bitmap.close();
      } catch {} // no picture: the next one will be
      this.#decoding = false;
      this.on.done(frame.id);
    }
  }

  /** @param {T.Frame} frame @param {ImageBitmap} bitmap */
  #paint(frame, bitmap) {
    const c = this.canvas;
    if (c.width !== bitmap.width || c.height !== bitmap.height) {
      c.width = bitmap.width;
      c.height = bitmap.height;
    }
    this.context.drawImage(bitmap, 0, 0);
    this.frame = frame;
    if (this.#settle(frame)) this.layout();
    const now = performance.now();
    this.#painted.push(now);
    while (now - (this.#painted[0] ?? now) > 2000) this.#painted.shift();
    const delay = between(this.on.now() - Date.parse(frame.captured), 0, 60_000);
    this.#delay = this.#painted.length > 1 ? this.#delay * 0.8 + delay * 0.2 : delay;
    this.on.painted(frame);
  }

  /** Takes the viewport that a frame shows as the one of the picture. @param {T.Frame} f @returns {boolean} whether it is another */
  #settle(f) {
    const scale = this.#view.scale || 1;
    const v = this.#views.get(f.viewport) ?? { revision: f.viewport, width: f.width / scale, height: f.height / scale, scale };
    const changed = v.width !== this.#view.width || v.height !== this.#view.height;
    this.#view = v;
    return changed;
  }

  /** CSS pixels of the page that the picture shows. */
  get viewport() {
    return this.#view;
  }

  /** Whether the picture has another shape than the viewport that it says it shows: it is of before a change. */
  get odd() {
    const f = this.frame;
    return !!f && Math.abs(f.width * this.#view.height / (f.height * this.#view.width) - 1) > 0.02;
  }

  /** Frames in the last second, how old they were when they could be seen, and whether any came of late. */
  get pace() {
    const now = performance.now();
    const recent = this.#painted.filter((t) => now - t < 1000).length;
    return { rate: recent, delay: Math.round(this.#delay), still: now - (this.#painted.at(-1) ?? 0) > 1500 };
  }

  /** What viewport would fill this window sharply, within the bounds (VPT-1, VPT-3). @returns {{width: number, height: number, scale: number}} */
  get wanted() {
    const width = between(Math.floor(this.room.width), 200, 4096);
    const height = between(Math.floor(this.room.height + this.lent), 200, 4096);
    const scale = Math.min(devicePixelRatio || 1, 4, most.width / width, most.height / height, Math.sqrt(most.pixels / (width * height)));
    return { width, height, scale: Math.max(0.5, Math.floor(scale * 100) / 100) };
  }

  /** Says what height a message takes off the stage for now; the page keeps its size meanwhile. @param {number} px */
  lend(px) {
    if (px === this.lent) return;
    this.lent = px;
    if (this.#zoom === 1) this.#pan.y = this.#view.height; // its upper edge
    this.layout();
  }

  /** How much larger a CSS pixel of the page is than one of the screen. */
  get fit() {
    // Fingers can move a picture that is cut off; mice cannot.
    const height = this.room.height + (this.coarse.matches ? this.lent : 0);
    const s = Math.min(this.room.width / this.#view.width, height / this.#view.height);
    return s >= 1 && s < 1.02 ? 1 : Math.min(s, 2);
  }

  get zoom() {
    return this.#zoom;
  }

  /** Puts the picture into the middle of its room, on whole device pixels. */
  layout() {
    const s = this.fit * this.#zoom;
    const w = this.#view.width * s;
    const h = this.#view.height * s;
    const slack = { x: Math.max(0, (w - this.room.width) / 2), y: Math.max(0, (h - this.room.height) / 2) };
    this.#pan = { x: between(this.#pan.x, -slack.x, slack.x), y: between(this.#pan.y, -slack.y, slack.y) };
    const dpr = devicePixelRatio || 1;
    /** @param {number} v */
    const whole = (v) => Math.round(v * dpr) / dpr;
    const style = this.glass.style;
    style.left = whole((this.room.width - w) / 2 + this.#pan.x) + "px";
    style.top = whole((this.room.height - h) / 2 + this.#pan.y - this.#lift) + "px";
    style.width = whole(w) + "px";
    style.height = whole(h) + "px";
  }

  /** Enlarges about a place of the screen, and moves. @param {number} factor @param {number} x @param {number} y @param {number} dx @param {number} dy */
  pinch(factor, x, y, dx, dy) {
    const before = this.#zoom;
    this.#zoom = between(before * factor, 1, zoomMax);
    const r = this.stage.getBoundingClientRect();
    const cx = x - r.left - this.room.width / 2;
    const cy = y - r.top - this.room.height / 2;
    const f = this.#zoom / before;
    this.#pan = { x: cx - (cx - this.#pan.x) * f + dx, y: cy - (cy - this.#pan.y) * f + dy };
    this.layout();
  }

  /** Shifts the picture up, out of the way of a keyboard on the screen. @param {number} px */
  lift(px) {
    if (Math.abs(px - this.#lift) < 1) return;
    this.#lift = px;
    this.layout();
  }

  unzoom() {
    this.#zoom = 1;
    this.#pan = { x: 0, y: 0 };
    this.glass.classList.toggle("gliding", moves());
    this.layout();
    setTimeout(() => this.glass.classList.remove("gliding"), 250);
  }

  /** Where on the page a place of the screen is, in CSS pixels of the page. @param {number} x @param {number} y @returns {{x: number, y: number}} */
  toPage(x, y) {
    const r = this.glass.getBoundingClientRect();
    return { x: ((x - r.left) / r.width) * this.#view.width, y: ((y - r.top) / r.height) * this.#view.height };
  }

  /** @param {number} x @param {number} y on the screen @returns {boolean} */
  holds(x, y) {
    const r = this.glass.getBoundingClientRect();
    return x >= r.left && x < r.right && y >= r.top && y < r.bottom;
  }
}
