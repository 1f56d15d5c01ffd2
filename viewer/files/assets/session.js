// A person's session with the server: the cookie is the browser's, the page's own
// secret lives in memory only and goes with every request (API-3).

/** @import * as T from "./types.js" */

/** Failure is an answer of the server that is no success, or none at all. */
export class Failure extends Error {
  /** @param {T.WireError} e @param {number} [status] HTTP status, 0 when there was no answer */
  constructor(e, status = 0) {
    super(e.message);
    this.name = "Failure";
    this.code = e.code;
    this.status = status;
    this.retryable = e.retryable ?? false;
    this.recovery = e.recovery ?? "none";
    this.details = e.details ?? {};
  }
}

/** What is said of a server that does not answer. */
const unreachable = { code: "transport_failure", message: "The server cannot be reached.", retryable: true, recovery: "retry" };

/** @param {unknown} err @returns {Failure} */
export function failureOf(err) {
  if (err instanceof Failure) return err;
  if (err instanceof DOMException && err.name === "AbortError") return new Failure({ code: "cancelled", message: "This was given up." });
  return new Failure(unreachable);
}

/** @param {Response} r @returns {Promise<Failure>} */
async function failed(r) {
  try {
    const e = await r.json();
    if (typeof e?.code === "string" && typeof e?.message === "string") return new Failure(e, r.status);
  } catch {} // no body of ours
  return new Failure({ code: r.status >= 500 ? "transport_failure" : "internal", message: `The server answered ${r.status}.`, retryable: r.status >= 500 }, r.status);
}

/** The secret of a session in a frame of another site's page, to which no cookie is sent; it lives in memory only. */
let framed = "";

/** @param {string} path @param {RequestInit} init @returns {Promise<Response>} */
async function ask(path, init) {
  if (framed) init = { ...init, headers: { ...init.headers, "Reins-Session": framed } };
  /** @type {Response} */
  let r;
  try {
    r = await fetch(path, { credentials: "same-origin", cache: "no-store", referrerPolicy: "no-referrer", ...init });
  } catch (err) {
    throw failureOf(err);
  }
  if (!r.ok) throw await failed(r);
  return r;
}

/** @param {string} path @param {unknown} body @returns {Promise<any>} */
async function postBare(path, body) {
  const r = await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return r.status === 204 ? null : r.json();
}

/** @param {any} s as the server has it @returns {T.SessionInfo} */
const infoOf = (s) => ({ ...s, resource: s.resource ? { project: s.resource.project, resource: s.resource.id } : null });

/** Spends the secret of a join link. @param {string} secret @returns {Promise<T.SessionInfo>} */
export async function join(secret) {
  const a = await postBare("/people/join", { secret });
  framed = a.key ?? "";
  return infoOf(a.session);
}

/** The secret that the address brought, which leaves it at once. */
export function takeSecret() {
  const secret = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname + location.search);
  return secret;
}

/** The subprotocols by which a page's WebSocket is known. @param {string} page */
export const protocols = (page) => ["reins.view.v1", "reins.page." + page, ...(framed ? ["reins.session." + framed] : [])];

/** @param {string} id */
export const segment = (id) => (id === "." || id === ".." ? "~" + id : encodeURIComponent(id));

/** @param {T.ResourceKey} key */
export const apiPath = (key) => `/v1/projects/${segment(key.project)}/resources/${segment(key.resource)}`;

/** @param {T.ResourceKey} key */
export const pagePath = (key) => `/r/${segment(key.project)}/${segment(key.resource)}`;

/** Session is what this page may do, and as whom. */
export class Session {
  /** @param {string} page @param {T.SessionInfo} info */
  constructor(page, info) {
    this.page = page;
    this.info = info;
    /** Milliseconds that the server's clock is ahead of ours. */
    this.skew = 0;
    this.bestTrip = Infinity;
  }

  /** Opens the session that the cookie names; unauthorized without one. @returns {Promise<Session>} */
  static async open() {
    const a = await postBare("/people/page", {});
    return new Session(a.page, infoOf(a.session));
  }

  /** Takes a new secret for this page, as after a restart of the server. */
  async renew() {
    const a = await postBare("/people/page", {});
    this.page = a.page;
    this.info = infoOf(a.session);
  }

  /** The server's time now, in milliseconds since the epoch. */
  now() {
    return Date.now() + this.skew;
  }

  /** @param {string} path @param {RequestInit & {headers?: Record<string, string>}} [init] @returns {Promise<Response>} */
  async request(path, init = {}) {
    const once = () => ask(path, { ...init, headers: { ...init.headers, "Reins-Page": this.page } });
    try {
      return await once();
    } catch (err) {
      // A restarted server knows the cookie still, but not this page.
      if (!(err instanceof Failure) || err.status !== 401) throw err;
      await this.renew();
      return once();
    }
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    return (await this.request(path)).json();
  }

  /** @param {string} path @param {unknown} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
  async post(path, body = {}, signal = undefined) {
    const began = Date.now();
    const r = await this.request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: signal ?? null });
    const text = await r.text();
    const answer = text ? JSON.parse(text) : {};
    const now = answer?.state?.now;
    if (typeof now === "string") this.#clock(Date.parse(now), began);
    return answer;
  }

  /** Learns the server's clock from the quickest answer. @param {number} server @param {number} began */
  #clock(server, began) {
    const trip = Date.now() - began;
    if (!(trip < this.bestTrip) || Number.isNaN(server)) return;
    this.bestTrip = trip;
    this.skew = server - (began + trip / 2);
  }

  /** Opens a resource to look at and act on. @param {T.ResourceKey} key @returns {Promise<string>} the lease */
  async lease(key) {
    return (await this.post("/people/open", { project: key.project, resource: key.resource })).lease;
  }

  /** Says that a lease is not needed any more, also while the page goes away. @param {string} lease */
  close(lease) {
    const init = { method: "POST", keepalive: true, headers: { "Content-Type": "application/json", "Reins-Page": this.page }, body: JSON.stringify({ lease }) };
    void ask("/people/close", init).catch(() => {}); // it ends by itself too
  }

  /** Runs one action under a lease. @param {string} lease @param {T.Action} action @param {{call?: string, signal?: AbortSignal}} [o] @returns {Promise<T.Result>} */
  async act(lease, action, o = {}) {
    return (await this.post(`/v1/leases/${segment(lease)}/operations`, o.call ? { action, call: o.call } : { action }, o.signal)).result ?? {};
  }

  /** Ends the session. */
  async leave() {
    await this.request("/people/session", { method: "DELETE" });
  }

  /**
   * Follows a stream of events until the signal: EventSource can send no header.
   * @param {string} path @param {(event: any) => void} onEvent @param {AbortSignal} signal
   */
  async follow(path, onEvent, signal) {
    const r = await this.request(path, { headers: { Accept: "text/event-stream" }, signal });
    const reader = r.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const part = await reader?.read();
      if (!part || part.done) return;
      const blocks = (rest + part.value.replaceAll("\r", "")).split("\n\n");
      rest = (blocks.pop() ?? "").slice(-1_000_000);
      for (const block of blocks) {
        const data = block.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5)).join("\n");
        if (data.trim()) onEvent(JSON.parse(data));
      }
    }
  }
}
