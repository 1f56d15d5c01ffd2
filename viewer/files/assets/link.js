// The view over WebSocket: frames and state come, acknowledgements and input go.
// A broken line is mended with growing pauses, under the same lease (VIEW-3).

import { Failure, failureOf, protocols, segment } from "./session.js";

/** @import * as T from "./types.js" */
/** @import { Session } from "./session.js" */

/**
 * Where the link stands.
 * @typedef {{phase: "opening"|"live"}} Working
 * @typedef {{phase: "waiting", tries: number, at: number, why: Failure}} Waiting the next try is at that time
 * @typedef {{phase: "ended", why: Failure}} Ended it tries no more by itself
 * @typedef {Working|Waiting|Ended} Status
 */

/**
 * @typedef {object} Listener
 * @property {(s: Status) => void} status
 * @property {(s: T.ViewState) => void} state
 * @property {(f: T.Frame, jpeg: Uint8Array<ArrayBuffer>) => void} frame
 * @property {(e: Failure) => void} note something failed that ends nothing
 */

const silence = 12_000; // without a word from the server for so long, ask
const patience = 6_000; // and for its answer wait so long
const longest = 15_000; // between two tries
const gap = 15_000; // a page that slept so long may have missed its end

/** Codes that trying again does not mend. */
const final = new Set(["unauthorized", "denied", "not_found", "retired", "destroyed", "invalid_input", "lease_ended", "busy"]);

export class Link {
  /** @type {WebSocket|null} */
  #ws = null;
  /** @type {Map<number, {resolve: (r: T.Result) => void, reject: (e: Failure) => void}>} */
  #open = new Map();
  #next = 0;
  #tries = 0;
  #timer = 0;
  #heard = Date.now();
  #asked = 0;
  #ticked = Date.now();
  #slept = 0;
  #closed = false;
  #beats = 0;

  /** @param {Session} session @param {T.ResourceKey} key @param {Listener} on @param {{window?: number}} [o] */
  constructor(session, key, on, o = {}) {
    this.session = session;
    this.key = key;
    this.on = on;
    this.window = o.window ?? 4;
    this.lease = "";
    /** @type {Status} */
    this.status = { phase: "opening" };
    this.retryNow = this.retryNow.bind(this);
  }

  start() {
    this.#beats = window.setInterval(() => this.#beat(), 1000);
    addEventListener("online", this.retryNow);
    void this.#connect(false);
  }

  /** Ends the link; the server releases the lease. */
  close() {
    this.#closed = true;
    clearInterval(this.#beats);
    clearTimeout(this.#timer);
    removeEventListener("online", this.retryNow);
    this.#drop();
    if (this.lease) this.session.close(this.lease);
    this.lease = "";
  }

  /** Tries at once, also after an end. */
  retryNow() {
    if (this.#closed || this.status.phase === "opening") return;
    if (this.status.phase === "live") {
      this.#ask(); // the network is another one: see whether the line is still there
      return;
    }
    if (this.status.phase === "ended") {
      if (this.status.why.code !== "busy") this.lease = "";
      this.#tries = 0;
    }
    clearTimeout(this.#timer);
    void this.#connect(true);
  }

  /** @param {T.FrameID} id */
  ack(id) {
    this.#send({ ack: id });
  }

  /** Sends an action that is not answered. @param {T.Action} action */
  cast(action) {
    this.#send({ do: { id: 0, action } });
  }

  /** Sends an action, in order with the others, and waits for what came of it. @param {T.Action} action @returns {Promise<T.Result>} */
  do(action) {
    const id = ++this.#next;
    return new Promise((resolve, reject) => {
      if (!this.#send({ do: { id, action } })) {
        reject(new Failure({ code: "transport_failure", message: "There is no connection now.", retryable: true }));
        return;
      }
      this.#open.set(id, { resolve, reject });
    });
  }

  /** Runs one action outside the order of input. @param {T.Action} action @param {{call?: string, signal?: AbortSignal}} [o] */
  act(action, o = {}) {
    if (!this.lease) return Promise.reject(new Failure({ code: "transport_failure", message: "There is no connection now.", retryable: true }));
    return this.session.act(this.lease, action, o);
  }

  /** @param {unknown} message @returns {boolean} */
  #send(message) {
    if (this.#ws?.readyState !== WebSocket.OPEN) return false;
    this.#ws.send(JSON.stringify(message));
    return true;
  }

  /** @param {Status} s */
  #set(s) {
    this.status = s;
    if (!this.#closed) this.on.status(s);
  }

  /** @param {boolean} again take the lease's stream over from what may be left of it */
  async #connect(again) {
    if (this.status.phase !== "waiting") this.#set({ phase: "opening" });
    try {
      const old = this.lease;
      if (!old) this.lease = await this.session.lease(this.key);
      if (this.#closed) return;
      this.#dial(again || this.lease === old);
    } catch (err) {
      this.#broken(failureOf(err));
    }
  }

  /** @param {boolean} take */
  #dial(take) {
    const url = new URL(`/v1/leases/${segment(this.lease)}/view`, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.search = `window=${this.window}${take ? "&take=1" : ""}`;
    const ws = new WebSocket(url, protocols(this.session.page));
    ws.binaryType = "arraybuffer";
    this.#ws = ws;
    this.#heard = Date.now();
    this.#asked = 0;
    let opened = false;
    ws.onopen = () => { opened = true; };
    ws.onmessage = (m) => {
      if (this.#ws === ws) this.#take(m.data);
    };
    ws.onclose = () => {
      if (this.#ws !== ws) return;
      this.#drop();
      void this.#lost(opened);
    };
  }

  /** @param {ArrayBuffer|string} data */
  #take(data) {
    this.#heard = Date.now();
    this.#asked = 0;
    if (this.status.phase !== "live") {
      this.#tries = 0;
      this.#set({ phase: "live" });
    }
    if (typeof data !== "string") {
      const n = new DataView(data).getUint32(0);
      const header = new TextDecoder().decode(new Uint8Array(data, 4, n));
      this.on.frame(JSON.parse(header), new Uint8Array(data, 4 + n));
      return;
    }
    const m = JSON.parse(data);
    if (m.state) this.on.state(m.state);
    if (m.error) this.on.note(new Failure(m.error));
    if (m.answer) {
      const waiter = this.#open.get(m.answer.id);
      this.#open.delete(m.answer.id);
      if (m.answer.error) waiter?.reject(new Failure(m.answer.error));
      else waiter?.resolve(m.answer.result ?? {});
    }
    if (m.end) {
      this.#drop();
      this.#over(new Failure(m.end));
    }
  }

  /** The server said why there is no more. @param {Failure} why */
  #over(why) {
    // What ended while this machine slept is no decision against this person.
    if (why.code === "lease_ended" && Date.now() - this.#slept < gap) {
      this.lease = "";
      this.#broken(new Failure({ code: "transport_failure", message: "The connection was asleep.", retryable: true }));
      return;
    }
    this.#broken(why);
  }

  /** The line broke without a word. @param {boolean} opened */
  async #lost(opened) {
    const broke = new Failure({ code: "transport_failure", message: "The connection to the server was lost.", retryable: true });
    if (opened || !this.lease) {
      this.#broken(broke);
      return;
    }
    try { // a refused upgrade does not say why; the lease does
      await this.session.get(`/v1/leases/${segment(this.lease)}`);
      this.#broken(broke);
    } catch (err) {
      const f = failureOf(err);
      if (["lease_ended", "not_found", "unauthorized"].includes(f.code)) this.lease = "";
      this.#broken(f.code === "unauthorized" ? broke : f.code === "lease_ended" || f.code === "not_found" ? broke : f);
    }
  }

  /** @param {Failure} why */
  #broken(why) {
    if (this.#closed) return;
    if (final.has(why.code)) {
      this.#set({ phase: "ended", why });
      return;
    }
    const pause = this.#tries === 0 && why.code !== "runtime_stopped" ? 150 : Math.min(longest, 400 * 2 ** Math.min(this.#tries, 8)) * (0.75 + Math.random() / 2);
    this.#tries++;
    this.#set({ phase: "waiting", tries: this.#tries, at: Date.now() + pause, why });
    this.#timer = window.setTimeout(() => void this.#connect(true), pause);
  }

  /** Lets the socket go; what waits for an answer will get none. */
  #drop() {
    const ws = this.#ws;
    this.#ws = null;
    if (ws) {
      ws.onopen = ws.onmessage = ws.onclose = null;
      ws.close();
    }
    for (const w of this.#open.values()) w.reject(new Failure({ code: "completion_unknown", message: "The connection was lost; this may or may not have happened.", retryable: true }));
    this.#open.clear();
  }

  /** A line whose other end is gone looks like a page where nothing changes: ask (B080). */
  #beat() {
    const now = Date.now();
    if (now - this.#ticked > gap) this.#slept = now;
    this.#ticked = now;
    if (this.#ws?.readyState !== WebSocket.OPEN) return;
    if (this.#asked && now - this.#asked > patience) {
      this.#drop();
      this.#broken(new Failure({ code: "transport_failure", message: "The server does not answer.", retryable: true }));
    } else if (!this.#asked && now - this.#heard > silence) this.#ask();
  }

  /** Asks for nothing: also that is answered. */
  #ask() {
    if (!this.#asked && this.#send({ do: { id: ++this.#next } })) this.#asked = Date.now();
  }
}
