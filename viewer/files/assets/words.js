// What happens, in plain sentences.

/** @import * as T from "./types.js" */

/** Names of roles as people say them. @type {Record<string, string>} */
const roles = {
  textbox: "field", searchbox: "search field", combobox: "list", listbox: "list", checkbox: "check box", radio: "choice", switch: "switch",
  menuitem: "menu entry", menuitemcheckbox: "menu entry", menuitemradio: "menu entry", tab: "tab", option: "option", slider: "slider",
  spinbutton: "number field", img: "picture", image: "picture", generic: "", none: "", gridcell: "cell", columnheader: "column", rowheader: "row",
  treeitem: "entry", listitem: "entry", heading: "heading", file: "file field", button: "button", link: "link",
};

/** @param {string} s @param {number} most */
export function short(s, most) {
  const all = [...s.replace(/\s+/g, " ").trim()];
  return all.length > most ? all.slice(0, most - 1).join("").trimEnd() + "…" : all.join("");
}

/** @param {T.Target|undefined} t */
function thing(t) {
  if (!t || (!t.role && !t.name)) return "something";
  const role = roles[t.role] ?? t.role;
  if (!t.name) return role ? `a ${role}` : "something";
  return `${role ? role + " " : ""}“${short(t.name, 60)}”`;
}

/** An address as people read it. @param {string|undefined} url @param {number} [most] */
export function place(url, most = 60) {
  if (!url) return "a page";
  if (url === "about:blank") return "an empty page";
  try {
    const u = new URL(url);
    if (u.protocol !== "http:" && u.protocol !== "https:") return short(url, most);
    return short(u.host + (u.pathname === "/" ? "" : u.pathname), most);
  } catch {
    return short(url, most);
  }
}

/**
 * What verbs are called: under way, done, and after "could not". {t} is the target.
 * @type {Record<string, [now: string, done: string, not: string]>}
 */
const verbs = {
  snapshot: ["is reading the page", "read the page", "read the page"],
  read: ["is reading the text", "read the text", "read the text"],
  screenshot: ["is taking a screenshot", "took a screenshot", "take a screenshot"],
  click: ["is clicking {t}", "clicked {t}", "click {t}"],
  fill: ["is filling {t}", "filled {t}", "fill {t}"],
  type: ["is typing into {t}", "typed into {t}", "type into {t}"],
  press: ["is pressing a key on {t}", "pressed a key on {t}", "press a key on {t}"],
  press_key: ["is pressing a key", "pressed a key", "press a key"],
  hover: ["is pointing at {t}", "pointed at {t}", "point at {t}"],
  drag: ["is dragging {t}", "dragged {t}", "drag {t}"],
  scroll: ["is scrolling", "scrolled", "scroll"],
  wait_for: ["is waiting for the page", "waited for the page", "wait any longer for the page"],
  console: ["is looking at the console", "looked at the console", "look at the console"],
  network: ["is looking at the requests", "looked at the requests", "look at the requests"],
  pdf: ["is saving the page as PDF", "saved the page as PDF", "save the page as PDF"],
  open_tab: ["is opening a tab", "opened a tab", "open a tab"],
  select_tab: ["is going to another tab", "went to another tab", "go to another tab"],
  close_tab: ["is closing a tab", "closed a tab", "close a tab"],
  list_tabs: ["is looking at the tabs", "looked at the tabs", "look at the tabs"],
  pointer: ["is using the mouse", "used the mouse", "use the mouse"],
  touch: ["is touching the page", "touched the page", "touch the page"],
  input: ["is using the page", "used the page", "use the page"],
  key: ["is typing", "typed", "type"],
  insert_text: ["is typing", "typed", "type"],
  clipboard: ["is using the clipboard", "used the clipboard", "use the clipboard"],
  set_viewport: ["is changing the size", "changed the size of the page", "change the size of the page"],
  request_human: ["is waiting for a person", "asked for a person", "get a person"],
  request_control: ["is asking for control", "took control", "take control"],
  renew_control: ["is extending control", "kept control", "keep control"],
  release_control: ["is handing back", "handed back control", "hand back control"],
  stop_agents: ["is stopping the agent", "stopped the agent", "stop the agent"],
  answer_human: ["is answering the agent", "answered the agent", "answer the agent"],
  delete_artifact: ["is deleting a file", "deleted a file", "delete a file"],
  read_artifact: ["is reading a file", "read a file", "read a file"],
  start: ["is starting the browser", "started the browser", "start the browser"],
  stop: ["is stopping the browser", "stopped the browser", "stop the browser"],
  terminate: ["is ending the browser", "ended the browser", "end the browser"],
  releaseParticipant: ["is letting go", "let go of what was held down", "let go of what was held down"],
};

/** Ends of failures, where a code says more than its message. @type {Record<string, string>} */
const reasons = {
  not_actionable: "it is hidden, moving, disabled or covered", stale_ref: "it is gone", timeout: "it took too long",
  human_controlled: "a person has control", human_control_conflict: "a person asked for control", navigation_blocked: "the address is not allowed",
  navigation_failed: "the page did not answer", egress_denied: "the network said no", dialog_open: "the page asks something first",
  denied: "it is not allowed", page_crashed: "the page crashed", browser_ended: "the browser ended", observe_again: "the page may be another one now",
  cancelled: "it was given up", invalid_state: "the page had changed", quota_exceeded: "a limit is reached", lease_ended: "its access ended",
};

/** Verbs that say little to people; the list leaves them out. */
const quiet = new Set(["control", "list_artifacts", "read_artifact", "set_viewport", "refresh", "list_tabs", "renew_control", "releaseParticipant", "inspect", "viewport"]);

/** @param {T.Activity} a */
export const worthTelling = (a) => !quiet.has(a.verb) || a.outcome === "failed" && a.role === "agent";

/** Whether an activity only looks. @param {T.Activity} a */
export const onlyLooks = (a) => ["snapshot", "read", "screenshot", "console", "network", "wait_for", "list_tabs"].includes(a.verb);

/** @param {T.Activity} a @returns {[now: string, done: string, not: string]} */
function forms(a) {
  if (a.verb === "navigate") {
    switch (a.url) {
      case "back": return ["is going back", "went back", "go back"];
      case "forward": return ["is going forward", "went forward", "go forward"];
      case "reload": return ["is reloading the page", "reloaded the page", "reload the page"];
    }
    const p = place(a.url);
    return [`is opening ${p}`, `opened ${p}`, `open ${p}`];
  }
  if (a.verb === "egress") return ["is connecting", a.detail ? `connected: ${short(a.detail, 80)}` : "connected", a.detail ? `reach ${short(a.detail, 80)}` : "reach a site"];
  if (a.verb === "open_tab" && a.url) return [`is opening ${place(a.url)} in a tab`, `opened ${place(a.url)} in a tab`, `open ${place(a.url)} in a tab`];
  const known = verbs[a.verb];
  if (!known) return [`is at ${a.verb}`, `did ${a.verb}`, `do ${a.verb}`];
  const t = thing(a.target);
  const bare = t === "something" && ["type", "press"].includes(a.verb);
  /** @param {string} s */
  const put = (s) => bare ? s.replace(/ (into|on) \{t\}/, "") : s.replace("{t}", t);
  return [put(known[0]), put(known[1]), put(known[2])];
}

/** What an actor did, without its name. @param {T.Activity} a */
export function deed(a) {
  const [now, done, not] = forms(a);
  switch (a.outcome) {
    case "failed": return `could not ${not}${a.code && reasons[a.code] ? ": " + reasons[a.code] : ""}`;
    case "cancelled": return `was stopped before it could ${not}`;
    case "unknown": return `may have ${done.replace(/^went /, "gone ").replace(/^took /, "taken ")}: the browser was lost meanwhile`;
  }
  return a.ended || a.outcome ? done : now;
}

/** A length of time, read at a glance: "0:47", "12:05". @param {number} ms */
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const h = Math.floor(s / 3600);
  const rest = `${String(Math.floor(s / 60) % 60)}:${String(s % 60).padStart(2, "0")}`;
  return h ? `${h}:${rest.padStart(5, "0")}` : rest;
}

/** A length of time in words. @param {number} ms */
export function lasting(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return s === 1 ? "1 second" : `${s} seconds`;
  const m = Math.round(s / 60);
  if (m < 60) return m === 1 ? "1 minute" : `${m} minutes`;
  const h = Math.round(m / 60);
  if (h < 48) return h === 1 ? "1 hour" : `${h} hours`;
  return `${Math.round(h / 24)} days`;
}

/** @param {string|number} t */
export const clock = (t) => new Date(t).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** @param {number} n bytes */
export function size(n) {
  if (n < 1000) return `${n} bytes`;
  const units = ["KB", "MB", "GB"];
  let v = n / 1000;
  let u = 0;
  while (v >= 1000 && u < units.length - 1) { v /= 1000; u++; }
  return `${v < 10 ? v.toFixed(1) : Math.round(v)} ${units[u]}`;
}

/** First letters, for a round mark. @param {string} actor */
export function initials(actor) {
  const parts = actor.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const first = [...(parts[0] ?? actor)][0] ?? "?";
  const second = parts.length > 1 ? [...(parts[parts.length - 1] ?? "")][0] ?? "" : "";
  return (first + second).toUpperCase();
}

/**
 * What the typed text of an address bar means, or null when it is none.
 * @param {string} text
 */
export function address(text) {
  const t = text.trim();
  if (!t) return null;
  if (/^(https?:\/\/|about:blank$)/i.test(t)) return t;
  if (/^[a-z][a-z0-9+.-]*:(?!\d+(\/|$))/i.test(t)) return t; // another scheme: the server says what it thinks of it
  if (/\s/.test(t)) return null;
  const host = t.split(/[/?#]/)[0] ?? "";
  const local = /^(localhost|\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])(:\d+)?$/i.test(host);
  if (local) return "http://" + t;
  return /\.|:\d+$/.test(host) ? "https://" + t : null;
}
