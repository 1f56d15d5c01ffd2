// Who acts, who has control and for how long, and what this person can do about
// it (CTL, B126); and agents that ask for a person (CTL-8, B127).

import { announce, attr, byId, say } from "./dom.js";
import { failureOf } from "./session.js";
import { clock, countdown, deed, lasting, short } from "./words.js";

/** @import * as T from "./types.js" */
/** @import { App } from "./chrome.js" */

const hold = 120_000; // ms of control at a time
const active = 15_000; // control goes on by itself while the last input is younger
const warn = 20_000; // before it ends

/** @typedef {"nobody"|"agent"|"pending"|"you"|"person"} Driver */

/** @typedef {App & {call: (a: T.Action, o?: {signal?: AbortSignal}) => Promise<T.Result>, live: () => boolean, lastInput: () => number, helped: () => void}} PilotApp */

export class Pilot {
  /** @type {AbortController|null} */
  #asking = null;
  /** @type {T.Control|null} the hold that an answer said is ours */
  #own = null;
  #renewing = false;
  #warned = false;
  #before = "";
  #helping = "";
  #told = new Set();

  /** @param {PilotApp} app */
  constructor(app) {
    this.app = app;
    byId("take").addEventListener("click", () => void this.#button());
    byId("extend").addEventListener("click", () => void this.#renew(true));
    byId("halt").addEventListener("click", () => void app.act({ verb: "stop_agents" }));
    byId("request-help").addEventListener("click", () => void this.#help());
    byId("request-decline").addEventListener("click", () => void this.#answer(true));
    byId("request-form").addEventListener("submit", (e) => { e.preventDefault(); void this.#answer(false); });
  }

  /** @returns {T.HumanRequest|undefined} the request that is shown */
  get request() {
    const all = this.app.state()?.control.requests ?? [];
    return all.find((r) => r.request === this.#helping) ?? all[0];
  }

  /** @returns {boolean} */
  get mine() {
    const c = this.app.state()?.control;
    if (!c || c.state !== "human") return false;
    return c.mine ?? (!!this.#own && this.#own.actor === c.actor && this.#own.since === c.since);
  }

  /** @returns {Driver} */
  get driver() {
    const c = this.app.state()?.control;
    if (!c || !this.app.live()) return "nobody";
    if (c.state === "human") return this.mine ? "you" : "person";
    if (this.#asking) return "pending";
    if (c.state === "human-pending") return c.mine ? "pending" : "person";
    return c.state === "agent-active" ? "agent" : "nobody";
  }

  /** Why this person's input does nothing now, or "". @returns {string} */
  get forbids() {
    const c = this.app.state()?.control;
    if (c?.state !== "human" || this.mine) return "";
    return `${c.actor ?? "Another person"} has control${c.expires ? " until " + clock(c.expires) : ""}. Until then your mouse and keyboard do nothing here.`;
  }

  async #button() {
    if (this.#asking) this.#asking.abort();
    else if (this.mine) await (this.#helping ? this.#answer(false) : this.app.act({ verb: "release_control" }));
    else if (byId("take").hasAttribute("aria-disabled")) this.app.hint(this.forbids || `${byId("take").title}.`);
    else await this.take();
  }

  /** Asks for control and waits for it. @returns {Promise<boolean>} */
  async take() {
    if (this.#asking) return false;
    if (this.mine) return true;
    const asking = this.#asking = new AbortController();
    this.tick();
    try {
      const r = await this.app.call({ verb: "request_control", hold_ms: hold }, { signal: asking.signal });
      this.#own = r.control ?? null;
      this.app.helped();
      return true;
    } catch (err) {
      const f = failureOf(err);
      if (f.code === "control_busy") this.app.hint("Another person has asked for control, or has it already.");
      else if (f.code !== "cancelled") this.app.hint(f.message);
      return false;
    } finally {
      this.#asking = null;
      this.tick();
    }
  }

  /** @param {boolean} byHand */
  async #renew(byHand) {
    if (this.#renewing) return;
    this.#renewing = true;
    const a = { verb: "renew_control", hold_ms: hold };
    const r = byHand ? await this.app.act(a) : await this.app.call(a).catch(() => null);
    if (r?.control) this.#own = r.control;
    if (r && byHand) announce(`You have control for ${lasting(hold)} more`);
    this.#renewing = false;
    this.tick();
  }

  async #help() {
    const r = this.request;
    if (!r || !(await this.take())) return;
    this.#helping = r.request;
    this.tick();
  }

  /** @param {boolean} decline */
  async #answer(decline) {
    const r = this.request;
    if (!r) return;
    const note = /** @type {HTMLInputElement} */ (byId("note"));
    const a = { verb: "answer_human", request: r.request, ...(note.value.trim() ? { note: note.value.trim() } : {}), ...(decline ? { decline: true } : {}) };
    if (!(await this.app.act(a))) return;
    note.value = "";
    this.#helping = "";
    announce(decline ? "You declined" : `${r.actor} goes on`);
  }

  /** Brings what is shown in line with the state and the time. */
  tick() {
    const s = this.app.state();
    const d = this.driver;
    document.body.dataset.driver = d;
    this.#words(s, d);
    this.#buttons(s, d);
    this.#ring(s?.control ?? null, d);
    this.#banner(s);
  }

  /** @param {T.ViewState|null} s @param {Driver} d */
  #words(s, d) {
    const c = s?.control;
    let title = "Nobody acts";
    let text = "You can use the page beside the agent, or take control so that it waits.";
    if (!this.app.live()) {
      title = "Not connected";
      text = "What happens there is not known here.";
    } else if (!s || s.state !== "running") text = "No browser runs.";
    else if (d === "agent") {
      const op = s.operation?.role === "agent" ? s.operation : undefined;
      title = op?.actor ?? "The agent";
      text = op ? deed(op) : "is working";
      if ((c?.active_agents ?? 0) > 1) text += `, and ${(c?.active_agents ?? 1) - 1} more at once`;
    } else if (d === "pending") {
      title = "Waiting for the agent";
      text = "You get control as soon as it has finished what it does now.";
    } else if (d === "you") {
      title = "You have control";
      text = this.#helping ? "Do what was asked, then hand back." : "Agents wait until you hand back.";
    } else if (d === "person") {
      title = c?.actor ?? "Another person";
      text = c?.state === "human" ? `has control${c.expires ? " until " + clock(c.expires) : ""}. You can watch.` : "is about to take control.";
    } else if (c?.availability === "degraded") text = "The browser is being connected anew.";
    say(byId("pilot-title"), title);
    say(byId("pilot-text"), text);
    const now = `${d} ${c?.actor ?? ""}`;
    if (["you", "person", "pending"].includes(d) && now !== this.#before) announce(`${title}: ${text}`);
    else if (["you"].includes(this.#before.split(" ")[0] ?? "") && d !== "you") announce("You do not have control any more");
    this.#before = now;
  }

  /** @param {T.ViewState|null} s @param {Driver} d */
  #buttons(s, d) {
    const take = byId("take");
    say(take, d === "pending" && this.#asking ? "Cancel" : d === "you" ? "Hand back" : "Take control");
    const can = !!s && this.app.live() && (s.state === "running" || d === "you") && d !== "person";
    attr(take, "aria-disabled", can ? null : "true");
    take.title = can ? "" : this.app.live() ? this.forbids || "No browser runs" : "Not connected";
    take.classList.toggle("primary", d !== "pending");
    byId("halt").hidden = !(d === "pending" || d === "agent");
    byId("extend").hidden = d !== "you";
  }

  /** @param {T.Control|null} c @param {Driver} d */
  #ring(c, d) {
    const ring = byId("ring");
    ring.hidden = !(this.app.live() && c?.expires && (c.state === "human" || c.state === "human-pending"));
    byId("pilot-dot").hidden = !ring.hidden;
    if (ring.hidden || !c?.expires) {
      this.#warned = false;
      return;
    }
    const left = Date.parse(c.expires) - this.app.now();
    const whole = c.state === "human" ? Math.max(hold, left) : Math.max(30_000, left);
    byId("ring-left").setAttribute("stroke-dashoffset", String(Math.round(100 - 100 * Math.min(1, Math.max(0, left / whole)))));
    byId("ring-text").textContent = countdown(left);
    const soon = d === "you" && left < warn;
    ring.classList.toggle("soon", soon);
    if (soon && !this.#warned) announce(`Your control ends in ${lasting(left)}`, true);
    this.#warned = soon;
    if (d === "you" && left > 0 && left < hold - active && Date.now() - this.app.lastInput() < active) void this.#renew(false);
  }

  /** @param {T.ViewState|null} s */
  #banner(s) {
    const all = s?.control.requests ?? [];
    if (this.#helping && !all.some((r) => r.request === this.#helping)) this.#helping = "";
    const r = this.request;
    const at = byId("request");
    at.hidden = !r;
    if (!r) return;
    const helping = this.#helping === r.request;
    const more = all.length > 1 ? ` (${all.length - 1} more wait)` : "";
    at.classList.toggle("helping", helping);
    say(byId("request-title"), (helping ? `You help ${r.actor}` : `${r.actor} needs you`) + more);
    say(byId("request-reason"), r.reason);
    const left = Date.parse(r.expires) - this.app.now();
    say(byId("request-time"), `Asked at ${clock(r.since)}. ${left > 0 ? `Waits ${left > 60_000 ? "about " : ""}${lasting(left > 60_000 ? Math.round(left / 60_000) * 60_000 : left)} more.` : "Its time is over."}`);
    byId("request-help").hidden = this.mine;
    byId("request-done").classList.toggle("primary", this.mine);
    say(byId("request-done"), this.mine ? "Done, hand back" : "Done, go on");
    if (this.mine && !this.#helping) this.#helping = r.request;
    if (!this.#told.has(r.request)) {
      this.#told.add(r.request);
      announce(`${r.actor} needs you: ${short(r.reason, 200)}`, true);
    }
  }
}
