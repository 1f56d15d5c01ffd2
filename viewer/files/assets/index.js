// All browsers that this person may see; who waits for a person comes first.

import { Attention } from "./attention.js";
import { ended, putCover } from "./cover.js";
import { announce, attr, byId, el, icon, reconcile, say } from "./dom.js";
import { Failure, Session, apiPath, failureOf, pagePath, segment } from "./session.js";
import { Thumbs } from "./thumbs.js";
import { clock, lasting, short } from "./words.js";

/** @import * as T from "./types.js" */

const poll = 20_000; // ms between looks when nothing is told
const settle = 150; // ms in which changes are put together

/** @typedef {{info: T.ResourceInfo, requests: T.HumanRequest[]}} Row */

/** @param {T.ResourceKey} k */
const nameOf = (k) => `${k.project}/${k.resource}`;

/** @param {T.ResourceInfo} r @param {string} me @returns {{tone: string, text: string}} */
function standing(r, me) {
  const c = r.control;
  switch (r.state) {
    case "starting": return { tone: "up", text: "Starting…" };
    case "stopping":
    case "destroying": return { tone: "", text: "Ending…" };
    case "error": return { tone: "bad", text: "Broke; the next action starts a new one" };
    case "stopped":
    case "destroyed": return { tone: "", text: "No browser runs" };
  }
  switch (c.state) {
    case "human": return c.actor === me ? { tone: "you", text: "You have control" } : { tone: "person", text: `${c.actor ?? "A person"} has control${c.expires ? " until " + clock(c.expires) : ""}` };
    case "human-pending": return { tone: "person", text: `${c.actor ?? "A person"} is taking control` };
    case "agent-active": return { tone: "agent", text: "An agent is working" };
  }
  const since = r.started_at ? Date.now() - Date.parse(r.started_at) : 0;
  return { tone: "up", text: since > 60_000 ? `Up for ${lasting(since)}` : "Up" };
}

class Index {
  /** @type {Map<string, T.ResourceInfo[]>} */
  #lists = new Map();
  #due = 0;
  /** @type {Set<string>} */
  #busy = new Set();
  /** @type {Map<string, string>} what failed, by resource */
  #failed = new Map();
  #told = new Set();

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.attention = new Attention();
    this.thumbs = new Thumbs(session);
    say(byId("who"), session.info.actor);
    byId("leave").hidden = false;
    byId("leave").addEventListener("click", () => void session.leave().catch(() => {}).then(() => location.reload()));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) void this.load(); });
  }

  /** @returns {string[]} */
  get projects() {
    const s = this.session.info;
    return s.resource ? [s.resource.project] : s.projects ?? [];
  }

  start() {
    void this.load();
    setInterval(() => { if (!document.hidden) void this.load(); }, poll);
    for (const p of this.projects) void this.#follow(p);
  }

  /** @param {string} project */
  async #follow(project) {
    for (let tries = 0; ; tries++) {
      const began = Date.now();
      try {
        await this.session.follow(`/v1/projects/${segment(project)}/events`, () => this.#soon(), new AbortController().signal);
      } catch (err) {
        if (["denied", "not_found"].includes(failureOf(err).code)) return; // looking now and then has to do
      }
      if (Date.now() - began > 30_000) tries = 0;
      await new Promise((r) => setTimeout(r, Math.min(30_000, 500 * 2 ** Math.min(tries, 6))));
    }
  }

  #soon() {
    this.#due ||= window.setTimeout(() => { this.#due = 0; void this.load(); }, settle);
  }

  async load() {
    try {
      const one = this.session.info.resource;
      if (one) this.#lists.set(one.project, [await this.session.get(apiPath(one))]);
      else for (const p of this.projects) this.#lists.set(p, (await this.session.get(`/v1/projects/${segment(p)}/resources`)).resources ?? []);
      byId("notice").hidden = true;
    } catch (err) {
      const f = failureOf(err);
      if (f.code === "unauthorized") {
        this.#nothing(f);
        return;
      }
      say(byId("notice"), `${f.message} What you see may be old.`);
      byId("notice").hidden = false;
    }
    this.#show();
  }

  /** @param {Failure} f */
  #nothing(f) {
    this.thumbs.keep([]);
    byId("list").replaceChildren();
    putCover(byId("cover"), ended(f), () => location.reload());
  }

  #show() {
    const all = [...this.#lists.values()].flat().map((info) => ({ info, requests: info.control.requests ?? [] }));
    const needs = all.filter((r) => r.requests.length).sort((a, b) => (a.requests[0]?.since ?? "").localeCompare(b.requests[0]?.since ?? ""));
    const up = all.filter((r) => !r.requests.length && ["running", "starting"].includes(r.info.state));
    const down = all.filter((r) => !needs.includes(r) && !up.includes(r));
    const groups = [
      { key: "needs", title: needs.length === 1 ? "An agent waits for a person" : `${needs.length} agents wait for a person`, rows: needs },
      { key: "up", title: "Running", rows: up }, { key: "down", title: "Not running", rows: down },
    ].filter((g) => g.rows.length);
    attr(byId("list"), "aria-busy", "false");
    say(byId("count"), all.length ? `${all.length}, ${up.length + needs.length} up` : "");
    putCover(byId("cover"), all.length ? null : {
      key: "empty", icon: "window", title: "No browsers yet",
      text: "Each agent gets one of its own. Connect an MCP client, or start the walk with", command: "reins demo",
    }, () => {});
    reconcile(byId("list"), groups, (g) => g.key, (g) => el("section", { class: "group " + g.key, "aria-labelledby": "group-" + g.key }, el("h2", { id: "group-" + g.key }), el("div", { class: "cards" })), (e, g) => {
      const [h, cards] = [e.firstElementChild, e.lastElementChild];
      if (h) say(h, g.title);
      if (cards) reconcile(cards, g.rows, (r) => nameOf(r.info.key), (r) => this.#make(r), (c, r) => this.#update(c, r));
    });
    this.#call(needs);
    this.thumbs.keep(all.filter((r) => r.info.state === "running").map((r) => nameOf(r.info.key)));
  }

  /** @param {Row[]} needs */
  #call(needs) {
    const requests = needs.flatMap((r) => r.requests);
    this.attention.update("Browsers – Reins", requests, needs.map((r) => r.info.key.resource).join(", "));
    for (const r of needs) {
      for (const q of r.requests) {
        if (this.#told.has(q.request)) continue;
        this.#told.add(q.request);
        announce(`${q.actor} in ${r.info.key.resource} needs a person: ${short(q.reason, 160)}`, true);
      }
    }
  }

  /** @param {Row} row */
  #make({ info }) {
    const k = info.key;
    const name = this.projects.length > 1 ? nameOf(k) : k.resource;
    const start = el("button", { type: "button", class: "start", "aria-label": `Start ${name}`, onclick: () => void this.#do(k, "start") }, "Start");
    const end = el("button", { type: "button", class: "quiet end", "aria-label": `End ${name}`, onclick: () => this.#sure(k) }, "End");
    const card = el("article", { class: "browser-card" },
      el("div", { class: "thumb" }, el("span", { class: "thumb-empty" }, icon("window"), el("span", {}, "")), el("canvas", { "aria-hidden": "true" })),
      el("div", { class: "card-words" },
        el("h3", {}, el("a", { href: pagePath(k), title: name }, name)),
        el("p", { class: "title" }),
        el("p", { class: "card-state" }, el("span", { class: "dot", "aria-hidden": "true" }), el("span")),
        el("p", { class: "reason", hidden: true }), el("p", { role: "alert" })),
      el("div", { class: "card-foot" }, el("span", { class: "soft here" }), el("span", { class: "grow" }), start, end));
    this.thumbs.add(nameOf(k), k, card);
    return card;
  }

  /** @param {HTMLElement} card @param {Row} row */
  #update(card, { info, requests }) {
    const name = nameOf(info.key);
    const { tone, text } = standing(info, this.session.info.actor);
    /** @param {string} s @returns {HTMLElement} */
    const part = (s) => /** @type {HTMLElement} */ (card.querySelector(s));
    card.dataset.tone = tone;
    card.classList.toggle("needs", requests.length > 0);
    say(part(".card-state span:last-child"), text);
    const reason = part(".reason");
    const first = requests[0];
    reason.hidden = !first;
    if (first) reason.replaceChildren(el("strong", {}, `${first.actor} asks: `), first.reason);
    const running = info.state === "running";
    const busy = this.#busy.has(name);
    part(".start").hidden = !["stopped", "destroyed", "error"].includes(info.state);
    part(".end").hidden = !["running", "error"].includes(info.state);
    for (const b of [part(".start"), part(".end")]) attr(b, "aria-disabled", busy ? "true" : null);
    say(part(".here"), info.participants ? `${info.participants} here` : "");
    say(part(".thumb-empty span"), running ? "" : info.state === "starting" ? "Starting…" : "No picture");
    say(part("[role=alert]"), this.#failed.get(name) ?? "");
    if (!running) card.querySelector(".thumb")?.classList.remove("seen");
  }

  /** @param {T.ResourceKey} k */
  #sure(k) {
    const sure = /** @type {HTMLDialogElement} */ (byId("sure"));
    say(byId("sure-text"), `The tabs of ${k.resource} and what is signed in there are lost. The agent's next action starts a new one.`);
    sure.returnValue = "";
    sure.showModal();
    sure.onclose = () => { if (sure.returnValue === "yes") void this.#do(k, "terminate"); };
  }

  /** @param {T.ResourceKey} k @param {"start"|"terminate"} what */
  async #do(k, what) {
    const name = nameOf(k);
    if (this.#busy.has(name)) return;
    this.#busy.add(name);
    this.#failed.delete(name);
    this.#show();
    try {
      await this.session.post(`${apiPath(k)}/${what}`);
      announce(what === "start" ? `${k.resource} is up` : `${k.resource} ended`);
    } catch (err) {
      this.#failed.set(name, failureOf(err).message);
    }
    this.#busy.delete(name);
    await this.load();
  }
}

async function main() {
  for (let tries = 0; ; tries++) {
    try {
      new Index(await Session.open()).start();
      return;
    } catch (err) {
      const f = failureOf(err);
      attr(byId("list"), "aria-busy", "false");
      putCover(byId("cover"), ended(f), () => location.reload());
      if (!f.retryable) return;
      await new Promise((r) => setTimeout(r, Math.min(15_000, 1000 * 2 ** Math.min(tries, 4))));
      putCover(byId("cover"), null, () => {});
    }
  }
}

void main();
