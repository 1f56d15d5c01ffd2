// What stands in the place of the picture: one sentence on how things are, and
// what can be done.

import { el, icon } from "./dom.js";

/** @import * as T from "./types.js" */
/** @import { Failure } from "./session.js" */
/** @import { Status } from "./link.js" */

/**
 * @typedef {object} Cover
 * @property {string} key of two covers with the same key the second changes nothing
 * @property {string} [icon] or a turning wheel
 * @property {string} title
 * @property {string} text
 * @property {string} [command] what to type in a terminal
 * @property {{label: string, name: string}} [action]
 * @property {boolean} [over] the last picture stays visible below
 */

/** Why there is no way on, by code. @param {Failure} f @returns {Cover} */
export function ended(f) {
  const key = "ended " + f.code + f.message;
  switch (f.code) {
    case "unauthorized":
      return { key, icon: "door", title: "You need a link", text: "You are not signed in here, or your session is over. Ask for a new link from whoever runs this server, or print one with", command: "reins view" };
    case "denied":
      return { key, icon: "door", title: "You may not see this", text: f.message, action: { label: "Try again", name: "retry" } };
    case "not_found":
      return { key, icon: "window", title: "There is no such browser", text: "It was never there, it is gone, or it is not yours to see." };
    case "retired":
    case "destroyed":
      return { key, icon: "window", title: "This browser is gone for good", text: "It was retired. Files that were kept of it went with it." };
    case "busy":
      return { key, icon: "window", title: "You watch this in another window", text: "One window at a time has the picture.", action: { label: "Watch here", name: "retry" } };
    case "lease_ended":
      return { key, icon: "door", title: "Your access ended", text: "It was taken back, or another window of yours took over. What you did stays done; nothing of yours is held down.", action: { label: "Ask again", name: "retry" } };
  }
  return { key, icon: "open", title: "This cannot be shown", text: f.message, action: { label: "Try again", name: "retry" } };
}

/** @param {Status} s @param {T.ViewState|null} state @param {boolean} pictured @param {number} now @returns {Cover|null} */
export function coverOf(s, state, pictured, now) {
  if (s.phase === "ended") {
    const c = ended(s.why);
    return { ...c, over: pictured };
  }
  if (s.phase === "waiting" && (s.tries > 1 || !state)) {
    const left = Math.max(0, Math.ceil((s.at - now) / 1000));
    const what = s.why.code === "runtime_stopped" ? "The server stops or starts anew." : s.why.message;
    return { key: `waiting ${s.tries} ${left}`, title: "Reconnecting…", text: `${what} ${left > 1 ? `Next try in ${left} seconds.` : "Trying now."}`, action: { label: "Try now", name: "retry" }, over: pictured };
  }
  if (!state) return { key: "opening", title: "Connecting…", text: "Getting the picture." };
  switch (state.state) {
    case "starting": return { key: "starting", title: "The browser starts…", text: "Its picture comes in a moment." };
    case "stopping":
    case "destroying": return { key: "stopping", title: "The browser ends…", text: "It is being put away.", over: pictured };
    case "stopped": return { key: "stopped", icon: "window", title: "No browser runs now", text: "The agent's next action starts one. You can start it too.", action: { label: "Start the browser", name: "start" } };
    case "error": return { key: "error", icon: "open", title: "The browser broke", text: "It ended by a fault. A new one starts with the next action.", action: { label: "Start a new one", name: "start" } };
    case "destroyed": return { key: "destroyed", icon: "window", title: "This browser ended", text: "The agent's next action starts a new one.", action: { label: "Start a new one", name: "start" } };
  }
  const tab = state.tabs?.find((t) => t.tab === state.selected);
  if (!tab) return { key: "no tab", icon: "window", title: "No tab is open", text: "Open one, or wait for the agent.", action: { label: "Open a tab", name: "open" } };
  if (tab.crashed) return { key: "crashed", icon: "open", title: "This page crashed", text: "The browser goes on. Load the page again to see it.", action: { label: "Reload", name: "reload" }, over: pictured };
  if (!pictured) return { key: "first", title: "Almost there…", text: "Waiting for the first picture." };
  return null;
}

/** @param {HTMLElement} at @param {Cover|null} c @param {(name: string) => void} act */
export function putCover(at, c, act) {
  at.hidden = !c;
  if (!c) {
    if (at.firstChild) at.replaceChildren();
    delete at.dataset.key;
    return;
  }
  if (at.dataset.key === c.key) return;
  const same = at.dataset.title === c.title && at.firstChild;
  at.dataset.key = c.key;
  at.dataset.title = c.title;
  at.classList.toggle("over", !!c.over);
  if (same) { // only a count went on
    const p = at.querySelector("p");
    if (p) p.textContent = c.text;
    return;
  }
  const { action } = c;
  at.replaceChildren(el("div", {},
    c.icon ? icon(c.icon) : el("span", { class: "spinner" }),
    el("h2", {}, c.title), el("p", {}, c.text + " ", ...(c.command ? [el("code", {}, c.command)] : [])),
    ...(action ? [el("button", { type: "button", class: c.icon ? "primary" : "", onclick: () => act(action.name) }, action.label)] : [])));
}
