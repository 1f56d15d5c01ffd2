// The page of one browser: puts its parts together.

import { Ask } from "./ask.js";
import { Attention } from "./attention.js";
import { Chrome } from "./chrome.js";
import { coverOf, ended, putCover } from "./cover.js";
import { announce, attr, byId, choice, choose, el, moves, reconcile, say } from "./dom.js";
import { Keys } from "./keys.js";
import { Link } from "./link.js";
import { Marks } from "./marks.js";
import { Picture } from "./picture.js";
import { Pilot } from "./pilot.js";
import { Pointers } from "./pointer.js";
import { Failure, Session, apiPath, failureOf, join, takeSecret } from "./session.js";
import { Side } from "./side.js";
import { Touches } from "./touch.js";
import { initials, lasting } from "./words.js";

/** @import * as T from "./types.js" */
/** @import { Status } from "./link.js" */

const mac = /Mac|iPhone|iPad/.test(navigator.platform);
const viewportPause = 180; // ms that a window must keep its size before it is told
const hiddenPause = 4_000; // ms in the background after which its size counts no more
const hintStays = 5_000;
const oddPause = 2_000; // ms that a picture of before a change may be the last one

/** @returns {T.ResourceKey|null} what the address names */
function keyOfAddress() {
  const m = /^\/r\/([^/]+)\/([^/]+)\/?$/.exec(location.pathname);
  if (!m) return null;
  /** @param {string|undefined} s */
  const id = (s) => decodeURIComponent(s ?? "").replace(/^~(\.\.?)$/, "$1");
  return { project: id(m[1]), resource: id(m[2]) };
}

class Page {
  /** @type {T.ViewState|null} */
  state = null;
  lastInput = 0;
  #hintTimer = 0;
  #sizeTimer = 0;
  #hiddenTimer = 0;
  #asked = "";
  #odd = 0;
  #mended = -1; // the revision of the viewport for which the picture was started anew
  #calls = 0;

  /** @param {Session} session @param {T.ResourceKey} key @param {boolean} embedded */
  constructor(session, key, embedded) {
    this.session = session;
    this.key = key;
    this.link = new Link(session, key, {
      status: (s) => this.#status(s),
      state: (s) => this.#state(s),
      frame: (f, jpeg) => this.picture.show(f, jpeg),
      note: (f) => { if (f.code !== "invalid_input") this.hint(f.code === "frame_too_large" ? "A picture was too large to send. The next one comes." : f.message); },
    });
    this.picture = new Picture(byId("stage"), byId("glass"), /** @type {HTMLCanvasElement} */ (byId("canvas")), {
      done: (id) => this.link.ack(id), painted: () => this.#painted(), now: () => session.now(),
    });
    this.picture.resized = () => {
      this.picture.lend(byId("request").offsetHeight);
      this.#sizeSoon();
    };
    this.keysArea = /** @type {HTMLTextAreaElement} */ (byId("keys"));
    const app = {
      act: (/** @type {T.Action} */ a) => this.act(a), hint: (/** @type {string} */ t) => this.hint(t), may: () => this.may(true),
      now: () => session.now(), state: () => this.state, me: () => session.info.actor,
    };
    this.marks = new Marks(() => session.now());
    this.attention = new Attention();
    this.chrome = new Chrome(app, () => this.engage());
    this.ask = new Ask(app, () => this.engaged);
    this.side = new Side({ ...app, lease: () => this.link.lease, blob: async (p) => (await session.request(p)).blob() }, embedded);
    this.pilot = new Pilot({ ...app, live: () => this.link.status.phase === "live", call: (a, o) => this.#call(a, o), lastInput: () => this.lastInput, helped: () => this.engage() });
    this.#input();
    this.#menu();
    setInterval(() => this.#tick(), 500);
    addEventListener("pagehide", (e) => { if (!e.persisted) this.link.close(); });
    addEventListener("pageshow", (e) => { if (e.persisted) this.link.retryNow(); });
    document.addEventListener("visibilitychange", () => this.#visible());
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => this.#sizeSoon());
  }

  get engaged() {
    return document.activeElement === this.keysArea;
  }

  engage() {
    if (!this.engaged) this.keysArea.focus({ preventScroll: true });
  }

  #input() {
    const stage = byId("stage");
    const desk = {
      picture: this.picture, may: () => this.may(true), mayQuietly: () => this.may(false), engaged: () => this.engaged, engage: () => this.engage(),
      send: (/** @type {T.Action} */ a, answered = false) => this.#send(a, answered),
    };
    const surface = byId("glass");
    this.pointers = new Pointers(desk, surface, mac);
    this.touches = new Touches(desk, surface);
    this.keys = new Keys(desk, this.keysArea, mac, {
      leave: () => { this.keysArea.blur(); byId("take").focus(); announce("You left the page"); },
      shortcut: (name) => (name === "address" ? this.chrome.focusAddress() : this.chrome.go(name)),
      copy: (kind) => void this.#copy(kind),
    });
    surface.addEventListener("pointermove", (e) => this.keys?.watch(e));
    // Nothing stays held down when the person is elsewhere (B084).
    addEventListener("blur", () => this.#release());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.#release(); });
    this.keysArea.addEventListener("focus", () => { byId("caption").hidden = false; });
    this.keysArea.addEventListener("blur", () => { byId("caption").hidden = true; });
    byId("keyboard").addEventListener("click", () => (this.engaged ? this.keysArea.blur() : this.keysArea.focus()));
    byId("keyboard").addEventListener("pointerdown", (e) => e.preventDefault());
    byId("unzoom").addEventListener("click", () => this.picture.unzoom());
    stage.addEventListener("scroll", () => stage.scrollTo(0, 0)); // what has the focus is scrolled into view otherwise
    visualViewport?.addEventListener("resize", () => this.#keyboardShown());
  }

  /** A keyboard on the screen must not hide what is typed into. */
  #keyboardShown() {
    const v = visualViewport;
    const lost = v ? innerHeight - v.height : 0;
    const tap = this.touches?.last;
    if (!v || lost < 120 || !this.engaged || !tap) {
      if (lost < 120) this.picture.lift(0);
      return;
    }
    const r = byId("glass").getBoundingClientRect();
    const y = r.top + (tap.y / this.picture.viewport.height) * r.height;
    this.picture.lift(Math.max(0, y - v.height * 0.6));
  }

  #release() {
    this.pointers?.release();
    this.touches?.release();
    this.keys?.release();
  }

  #menu() {
    const match = /** @type {HTMLInputElement} */ (byId("match"));
    match.checked = choice("match", true);
    match.addEventListener("change", () => { choose("match", match.checked); this.#size(); });
    byId("refresh").addEventListener("click", () => void this.act({ verb: "refresh" }));
    byId("leave").addEventListener("click", () => void this.session.leave().catch(() => {}).then(() => location.assign("/")));
    byId("end-browser").addEventListener("click", () => {
      byId("menu").hidePopover();
      const sure = /** @type {HTMLDialogElement} */ (byId("sure"));
      sure.showModal();
      sure.onclose = () => { if (sure.returnValue === "yes") void this.#life("terminate"); };
    });
  }

  /** @param {"start"|"terminate"} what */
  async #life(what) {
    try {
      await this.session.post(`${apiPath(this.key)}/${what}`);
    } catch (err) {
      this.hint(failureOf(err).message);
    }
  }

  /** Whether this person's input goes anywhere now. @param {boolean} tell says why not */
  may(tell) {
    const why = this.link.status.phase !== "live" ? "There is no connection now. What you do here goes nowhere."
      : this.state?.state !== "running" ? "No browser runs now." : this.pilot.forbids;
    if (why && tell) this.hint(why);
    return !why;
  }

  /** @param {T.Action} a @param {boolean} answered */
  #send(a, answered) {
    if (a.verb !== "pointer" || a.kind !== "move") this.lastInput = Date.now();
    if (!a.tab) return;
    if (!answered) this.link.cast(a);
    else this.link.do(a).catch((/** @type {Failure} */ f) => this.#refused(f));
  }

  /** @param {Failure} f */
  #refused(f) {
    switch (f.code) {
      case "invalid_state": return; // the page had another size or tab by then: the next picture shows it
      case "transport_failure":
      case "completion_unknown":
      case "cancelled": return; // the pill says it
      case "human_controlled": this.hint(this.pilot.forbids || f.message); return;
      case "dialog_open": this.hint("The page asks something first. Answer it above."); return;
    }
    this.hint(f.message);
  }

  /** @param {"copy"|"cut"} kind */
  async #copy(kind) {
    const tab = this.picture.frame?.tab ?? "";
    this.lastInput = Date.now();
    const text = this.link.do({ verb: "clipboard", kind, tab }).then((r) => r.clipboard ?? "");
    try {
      const blob = text.then((t) => new Blob([t], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
      if (await text) this.hint(kind === "copy" ? "Copied." : "Cut.");
    } catch {
      try {
        const t = await text;
        if (!t) return;
        const area = /** @type {HTMLTextAreaElement} */ (byId("copied-text"));
        area.value = t;
        /** @type {HTMLDialogElement} */ (byId("copied")).showModal();
        area.select();
      } catch (err) {
        this.#refused(failureOf(err));
      }
    }
  }

  /** @param {T.Action} a @param {{signal?: AbortSignal}} [o] */
  #call(a, o = {}) {
    return this.link.act(a, { ...o, call: `${Date.now().toString(36)}${(this.#calls++).toString(36)}` });
  }

  /** Runs an action and tells the person when it fails. @param {T.Action} a @returns {Promise<T.Result|null>} */
  async act(a) {
    this.lastInput = Date.now();
    try {
      return await this.link.act(a);
    } catch (err) {
      this.#refused(failureOf(err));
      return null;
    }
  }

  /** @param {string} text */
  hint(text) {
    say(byId("hint"), text);
    clearTimeout(this.#hintTimer);
    this.#hintTimer = window.setTimeout(() => say(byId("hint"), ""), hintStays);
  }

  #sizeSoon() {
    clearTimeout(this.#sizeTimer);
    this.#sizeTimer = window.setTimeout(() => this.#size(), viewportPause);
  }

  /** Says what size this window has, or that it does not matter (VPT-1). @param {boolean} [hidden] */
  #size(hidden = false) {
    if (this.link.status.phase !== "live" || visualViewport && innerHeight - visualViewport.height > 120 && this.engaged) return;
    const fits = /** @type {HTMLInputElement} */ (byId("match")).checked && !hidden;
    const a = fits ? { verb: "set_viewport", ...this.picture.wanted } : { verb: "set_viewport" };
    const told = JSON.stringify(a);
    if (told === this.#asked) return;
    this.#asked = told;
    this.link.do(a).then((r) => r.viewport && this.picture.setViewport(r.viewport), () => { this.#asked = ""; });
  }

  /** A window that nobody looks at makes nobody's picture small. */
  #visible() {
    clearTimeout(this.#hiddenTimer);
    if (document.hidden) this.#hiddenTimer = window.setTimeout(() => this.#size(true), hiddenPause);
    else this.#size();
  }

  /** @param {Status} s */
  #status(s) {
    if (s.phase === "live") {
      this.#asked = "";
      this.#sizeSoon(); // once what came with the first state has found its place
    }
    if (s.phase === "ended") {
      this.keysArea.blur();
      announce(ended(s.why).title, true);
    }
    this.#tick();
  }

  /** @param {T.ViewState} s */
  #state(s) {
    const before = this.state;
    this.state = s;
    const gone = s.state !== "running" || before && before.incarnation !== s.incarnation;
    if (gone && this.picture.frame) {
      this.picture.clear();
      this.marks.clear();
    }
    this.picture.setViewport(s.viewport);
    this.chrome.update(s);
    this.ask.update(s);
    this.side.update(s);
    this.marks.update(s, this.picture.viewport);
    this.#people(s);
    this.#tick();
  }

  #painted() {
    clearTimeout(this.#odd);
    if (this.picture.odd && this.#mended !== this.picture.viewport.revision) this.#odd = window.setTimeout(() => {
      this.#mended = this.picture.viewport.revision;
      void this.link.act({ verb: "refresh" }).catch(() => {});
    }, oddPause);
    if (this.state) this.marks.update(this.state, this.picture.viewport);
    this.#cover();
  }

  /** @param {T.ViewState} s */
  #people(s) {
    const all = [...(s.participants ?? [])].sort((a, b) => Number(!!b.mine) - Number(!!a.mine) || a.role.localeCompare(b.role));
    /** @type {Map<string, T.Participant & {times: number}>} */
    const by = new Map();
    for (const p of all) {
      const k = `${p.role} ${p.actor} ${!!p.mine}`;
      const known = by.get(k);
      if (known) known.times++;
      else by.set(k, { ...p, times: 1 });
    }
    const acts = s.control.state === "human" ? s.control.actor : s.operation?.actor;
    reconcile(byId("people"), [...by].slice(0, 6), ([k]) => k, () => el("li", {}, el("span", { "aria-hidden": "true" }), el("span", { class: "hidden" })), (e, [, p]) => {
      const what = `${p.mine ? "You, " : ""}${p.actor}${p.role === "agent" ? ", an agent" : p.watching ? ", watching" : ""}${p.times > 1 ? `, ${p.times} times` : ""}`;
      e.className = [p.role === "agent" ? "agent" : "", p.mine ? "mine" : "", p.actor === acts ? "acts" : ""].filter(Boolean).join(" ");
      if (e.firstElementChild) say(e.firstElementChild, initials(p.actor));
      if (e.lastElementChild) say(e.lastElementChild, what);
      e.title = what;
    });
  }

  #cover() {
    const f = this.picture.frame;
    const c = coverOf(this.link.status, this.state, !!f, Date.now());
    const glass = byId("glass");
    glass.classList.toggle("unseen", !f);
    // What is shown and what is acted on must not differ unseen (FRM-12).
    glass.classList.toggle("old", this.link.status.phase !== "live" || !!f && !!this.state && f.tab !== this.state.selected);
    byId("unzoom").hidden = this.picture.zoom <= 1.01;
    putCover(byId("cover"), c, (name) => this.#coverAction(name));
  }

  /** @param {string} name */
  #coverAction(name) {
    switch (name) {
      case "retry": this.link.retryNow(); break;
      case "start": void this.#life("start"); break;
      case "reload": this.chrome.go("reload"); break;
      case "open": void this.act({ verb: "open_tab" }); break;
    }
  }

  #tick() {
    this.#cover();
    this.pilot.tick();
    const s = this.link.status;
    const pace = this.picture.pace;
    const running = this.state?.state === "running";
    document.body.classList.toggle("out", !this.state);
    const text = s.phase === "live" ? running ? "Live" : "Connected"
      : s.phase === "waiting" ? "Reconnecting" : s.phase === "ended" ? "Ended" : "Connecting";
    attr(byId("pill"), "data-is", s.phase);
    say(byId("pill-text"), text);
    say(byId("pill-pace"), s.phase !== "live" || !running ? "" : pace.still ? "· still" : `· ${pace.rate}/s · ${pace.delay} ms`);
    if (byId("line").matches(":popover-open")) this.#facts();
    const tab = this.state?.tabs?.find((t) => t.tab === this.state?.selected);
    this.attention.update([tab?.title, this.key.resource, "Reins"].filter(Boolean).join(" – "), this.state?.control.requests ?? [], this.key.resource);
  }

  #facts() {
    const f = this.picture.frame;
    const v = this.picture.viewport;
    const pace = this.picture.pace;
    const s = this.link.status;
    const facts = {
      State: s.phase === "live" ? "connected" : s.phase === "waiting" ? `trying again, ${s.tries}` : s.phase,
      "Frame rate": pace.still ? "the page is still" : `${pace.rate} a second`,
      Delay: pace.still ? "none while it is still" : `${pace.delay} ms from the page to here`,
      Page: `${Math.round(v.width)} × ${Math.round(v.height)}${v.scale !== 1 ? ` at ${v.scale}` : ""}`,
      Picture: f ? `${f.width} × ${f.height} pixels, shown at ${Math.round(this.picture.fit * this.picture.zoom * 100)} %` : "none",
      Session: `${this.session.info.actor}, for ${lasting(Date.parse(this.session.info.expires) - this.session.now())} more`,
    };
    reconcile(byId("line-facts"), Object.entries(facts).flatMap(([k, t]) => [["dt", k, k], ["dd", k, t]]), ([tag, k]) => `${tag} ${k}`,
      ([tag]) => document.createElement(tag ?? "dd"), (e, [, , t]) => say(e, t ?? ""));
  }

  start() {
    this.link.start();
    if (!moves()) document.body.classList.add("calm");
  }
}

async function main() {
  const embedded = new URLSearchParams(location.search).get("embed") === "1";
  document.body.classList.toggle("embed", embedded);
  const key = keyOfAddress();
  say(byId("name"), key?.resource ?? "Reins");
  const cover = byId("cover");
  if (!key) {
    putCover(cover, ended(new Failure({ code: "not_found", message: "" })), () => location.assign("/"));
    return;
  }
  document.title = `${key.resource} – Reins`;
  let secret = embedded ? takeSecret() : "";
  for (let tries = 0; ; tries++) {
    putCover(cover, coverOf({ phase: "opening" }, null, false, 0), () => {});
    try {
      if (secret) {
        await join(secret);
        secret = "";
      }
      new Page(await Session.open(), key, embedded).start();
      return;
    } catch (err) {
      const f = failureOf(err);
      if (!f.retryable) {
        // The page around the frame can give it another link.
        if (embedded && f.code === "unauthorized") parent.postMessage({ source: "reins", need: "link", ...key }, "*");
        byId("pill-text").textContent = "Not signed in";
        attr(byId("pill"), "data-is", "ended");
        putCover(cover, ended(f), () => location.reload());
        return;
      }
      const pause = Math.min(15_000, 500 * 2 ** Math.min(tries, 5));
      putCover(cover, coverOf({ phase: "waiting", tries: tries + 2, at: Date.now() + pause, why: f }, null, false, Date.now()), () => location.reload());
      await new Promise((r) => setTimeout(r, pause));
    }
  }
}

void main();
