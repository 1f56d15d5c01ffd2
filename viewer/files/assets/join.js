// Spends a join link's secret. It is in the fragment, so that neither servers on
// the way nor previews of links see it, and leaves the address at once (API-3).

import { byId, say } from "./dom.js";
import { Session, failureOf, join, pagePath, takeSecret } from "./session.js";

/** @import * as T from "./types.js" */

/** @param {string} title @param {string} text @param {string} [label] @param {() => void} [go] */
function tell(title, text, label, go) {
  say(byId("title"), title);
  const p = byId("text");
  p.textContent = "";
  for (const [i, part] of text.split("`").entries()) {
    const e = document.createElement(i % 2 ? "code" : "span");
    e.textContent = part;
    p.append(e);
  }
  document.title = `${title} – Reins`;
  const button = byId("go");
  button.hidden = !label;
  say(button, label ?? "");
  button.onclick = go ?? null;
  byId("card").setAttribute("aria-busy", "false");
}

/** @param {T.SessionInfo} s */
const home = (s) => location.replace(s.resource ? pagePath(s.resource) : "/");

/** @param {string} secret */
async function spend(secret) {
  try {
    home(await join(secret));
  } catch (err) {
    const f = failureOf(err);
    if (f.retryable || f.code === "transport_failure") {
      tell("The server cannot be reached", "Your link was not used up. See that you are online, then try again.", "Try again", () => void spend(secret));
      return;
    }
    tell("This link does not open any more", "A link works once and for a short time, and this one was used or is too old. Ask for a new one, or print it with `reins view`.");
    await already();
  }
}

/** Somebody who is signed in needs no link. */
async function already() {
  try {
    const { info } = await Session.open();
    const button = byId("go");
    button.hidden = false;
    say(button, `Go on as ${info.actor}`);
    button.onclick = () => home(info);
  } catch {} // not signed in: the sentence stands
}

const secret = takeSecret();
if (secret) void spend(secret);
else {
  tell("This link is not whole", "The part after # is missing. Open the link as it was given to you, or ask for a new one.");
  void already();
}
