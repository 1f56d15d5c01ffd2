// Small live pictures of many browsers. Each is a view of its own that takes its
// time over every frame: the server fits its pace to that (FRM-11).

import { Link } from "./link.js";

/** @import * as T from "./types.js" */
/** @import { Session } from "./session.js" */

const pace = 1500; // ms between two frames
const most = 12; // at a time
const width = 640; // pixels of a small picture

/** @typedef {{key: T.ResourceKey, card: HTMLElement, seen: boolean, link: Link|null}} Thumb */

export class Thumbs {
  /** @type {Map<string, Thumb>} */
  #all = new Map();
  /** @type {Set<string>} */
  #running = new Set();

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.watch = new IntersectionObserver((entries) => {
      for (const e of entries) for (const t of this.#all.values()) if (t.card === e.target) t.seen = e.isIntersecting;
      this.#settle();
    }, { rootMargin: "120px" });
    document.addEventListener("visibilitychange", () => this.#settle());
    addEventListener("pagehide", () => this.keep([]));
  }

  /** @param {string} name @param {T.ResourceKey} key @param {HTMLElement} card */
  add(name, key, card) {
    const old = this.#all.get(name);
    if (old) {
      old.link?.close();
      this.watch.unobserve(old.card);
    }
    this.#all.set(name, { key, card, seen: false, link: null });
    this.watch.observe(card);
  }

  /** Says whose browsers run. @param {string[]} names */
  keep(names) {
    this.#running = new Set(names);
    for (const [name, t] of this.#all) {
      if (t.card.isConnected || this.#running.has(name)) continue;
      t.link?.close();
      this.watch.unobserve(t.card);
      this.#all.delete(name);
    }
    this.#settle();
  }

  /** Opens what can be seen and closes the rest. */
  #settle() {
    let open = 0;
    for (const [name, t] of this.#all) {
      const wanted = t.seen && this.#running.has(name) && !document.hidden && open < most;
      if (wanted) open++;
      if (wanted && !t.link) this.#open(t);
      else if (!wanted && t.link) {
        t.link.close();
        t.link = null;
      }
    }
  }

  /** @param {Thumb} t */
  #open(t) {
    const canvas = /** @type {HTMLCanvasElement} */ (t.card.querySelector("canvas"));
    const title = t.card.querySelector(".title");
    const link = t.link = new Link(this.session, t.key, {
      status: () => {},
      note: () => {},
      state: (s) => {
        const tab = s.tabs?.find((x) => x.tab === s.selected);
        if (title && title.textContent !== (tab?.title ?? "")) title.textContent = tab?.title ?? "";
      },
      frame: (f, jpeg) => {
        setTimeout(() => link.ack(f.id), pace);
        void this.#draw(t, canvas, jpeg);
      },
    }, { window: 1 });
    link.start();
  }

  /** @param {Thumb} t @param {HTMLCanvasElement} canvas @param {Uint8Array<ArrayBuffer>} jpeg */
  async #draw(t, canvas, jpeg) {
    try {
      const bitmap = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }), { resizeWidth: width, resizeQuality: "medium" });
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
      canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
      bitmap.close();
      t.card.querySelector(".thumb")?.classList.add("seen");
    } catch {} // the next one will be a picture
  }
}
