// An agent that asks for a person must not be missed: the title, the icon of the
// tab, a sound if it may be heard, a notification if it was granted.

import { byId, choice, choose } from "./dom.js";
import { short } from "./words.js";

const calm = "/assets/icon.svg";
const calling = "/assets/icon-calls.svg";

export class Attention {
  /** @type {AudioContext|null} */
  #audio = null;
  /** @type {Set<string>} */
  #told = new Set();
  /** @type {Notification|null} */
  #note = null;
  #title = "Reins";
  #calls = false;
  #blink = false;

  constructor() {
    this.sound = /** @type {HTMLInputElement|null} */ (document.getElementById("sound"));
    this.notify = /** @type {HTMLInputElement|null} */ (document.getElementById("notify"));
    if (this.sound) {
      this.sound.checked = choice("sound", true);
      this.sound.addEventListener("change", () => { choose("sound", !!this.sound?.checked); if (this.sound?.checked) this.#ring(); });
    }
    this.#offer();
    // Browsers let sound be heard after somebody did something here.
    addEventListener("pointerdown", () => this.#wake(), { capture: true, once: true });
    addEventListener("keydown", () => this.#wake(), { capture: true, once: true });
    setInterval(() => this.#paint(), 1000);
  }

  #offer() {
    if (!this.notify) return;
    const can = "Notification" in window && Notification.permission !== "denied";
    this.notify.disabled = !can;
    this.notify.checked = can && Notification.permission === "granted" && choice("notify", true);
    if (!can) byId("notify-note").textContent = "This browser does not allow it here.";
    this.notify.addEventListener("change", async () => {
      if (!this.notify) return;
      if (this.notify.checked && Notification.permission !== "granted") this.notify.checked = await Notification.requestPermission() === "granted";
      choose("notify", this.notify.checked);
    });
  }

  #wake() {
    try {
      this.#audio ??= new AudioContext();
      void this.#audio.resume();
    } catch {} // there is no sound here
  }

  /** Two soft notes. */
  #ring() {
    const a = this.#audio;
    if (!a || a.state !== "running" || this.sound && !this.sound.checked) return;
    for (const [i, hz] of [660, 880].entries()) {
      const at = a.currentTime + i * 0.18;
      const tone = a.createOscillator();
      const gain = a.createGain();
      tone.frequency.value = hz;
      gain.gain.setValueAtTime(0, at);
      gain.gain.linearRampToValueAtTime(0.12, at + 0.02);
      gain.gain.exponentialRampToValueAtTime(0.001, at + 0.5);
      tone.connect(gain).connect(a.destination);
      tone.start(at);
      tone.stop(at + 0.55);
    }
  }

  /** @param {string} title of the page @param {{request: string, actor: string, reason: string}[]} requests @param {string} where */
  update(title, requests, where) {
    this.#title = title;
    this.#calls = requests.length > 0;
    for (const r of requests) {
      if (this.#told.has(r.request)) continue;
      this.#told.add(r.request);
      this.#ring();
      this.#tell(r, where);
    }
    if (!this.#calls) this.#note?.close();
    this.#paint();
  }

  /** @param {{request: string, actor: string, reason: string}} r @param {string} where */
  #tell(r, where) {
    if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted" || !choice("notify", true)) return;
    try {
      this.#note = new Notification(`${r.actor} needs you`, { body: `${short(r.reason, 140)}\n${where}`, tag: r.request, icon: calling });
      this.#note.onclick = () => { window.focus(); this.#note?.close(); };
    } catch {} // phones want a service worker for it
  }

  #paint() {
    this.#blink = this.#calls && document.hidden && !this.#blink;
    const title = this.#calls ? (this.#blink ? "● Needs you" : "(!) Needs you") + " – " + this.#title : this.#title;
    if (document.title !== title) document.title = title;
    const favicon = /** @type {HTMLLinkElement|null} */ (document.getElementById("favicon"));
    const want = this.#calls ? calling : calm;
    if (favicon && favicon.getAttribute("href") !== want) favicon.setAttribute("href", want);
  }
}
