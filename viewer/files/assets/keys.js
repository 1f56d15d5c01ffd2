// The keyboard: any layout, dead keys, input methods and keyboards on screens,
// through a hidden text field that holds the focus (INP-1, INP-3).

import { modifiersOf } from "./pointer.js";

/** @import { Desk } from "./pointer.js" */

/** @typedef {{key: string, code: string, location: number}} Held */

/** Keys that are this machine's own and mean nothing to a page. */
const local = /^(Unidentified|Process|Dead|AltGraph|CapsLock|NumLock|ScrollLock|PrintScreen|F11|F12|Fn.*|Hyper|Super|Audio.*|Brightness.*|Media.*|Launch.*|Browser.*|Power|Sleep|WakeUp|Eject)$/;
const modifiers = new Set(["Control", "Shift", "Alt", "Meta"]);
const twice = 700; // ms between two Escapes that lead out
const filler = "\u200b\u200b"; // so that keyboards on screens find something to delete

export class Keys {
  /** @type {Map<string, Held>} by code, or by key where a keyboard knows none */
  #held = new Map();
  #escaped = -Infinity;
  #composing = false;
  #composed = "";

  /**
   * @param {Desk} desk @param {HTMLTextAreaElement} area @param {boolean} mac
   * @param {{leave: () => void, shortcut: (name: string) => void, copy: (kind: "copy"|"cut") => void}} on
   */
  constructor(desk, area, mac, on) {
    this.desk = desk;
    this.area = area;
    this.mac = mac;
    this.on = on;
    area.addEventListener("keydown", (e) => this.#down(e));
    area.addEventListener("keyup", (e) => this.#up(e));
    area.addEventListener("beforeinput", (e) => this.#input(e));
    area.addEventListener("input", () => this.#reset());
    area.addEventListener("paste", (e) => this.#paste(e));
    area.addEventListener("compositionstart", () => { this.#composing = true; });
    area.addEventListener("compositionupdate", (e) => this.#compose(e.data));
    area.addEventListener("compositionend", (e) => this.#commit(e.data));
    area.addEventListener("blur", () => this.release());
    this.#reset();
  }

  /** The tab that is looked at. */
  get #tab() {
    return this.desk.picture.frame?.tab ?? "";
  }

  #reset() {
    if (this.#composing) return;
    this.area.value = filler;
    this.area.setSelectionRange(filler.length, filler.length);
  }

  /** @param {KeyboardEvent} e @returns {string} what the key types */
  #text(e) {
    if (e.key === "Enter") return "\r";
    if ([...e.key].length !== 1) return "";
    if (e.getModifierState("AltGraph")) return e.key;
    if (e.ctrlKey || e.metaKey || e.altKey && !this.mac) return "";
    return e.key;
  }

  /** @param {KeyboardEvent} e @returns {string} a shortcut that this page itself serves, or "" */
  #shortcut(e) {
    const main = this.mac ? e.metaKey : e.ctrlKey;
    if (e.key === "F5" || main && !e.shiftKey && e.key.toLowerCase() === "r") return "reload";
    if (main && !e.altKey && e.key.toLowerCase() === "l") return "address";
    if (e.altKey && !main && e.key === "ArrowLeft") return "back";
    if (e.altKey && !main && e.key === "ArrowRight") return "forward";
    return "";
  }

  /** @param {KeyboardEvent} e */
  #down(e) {
    if (e.isComposing || e.keyCode === 229) return; // an input method has it
    if (e.key === "Escape" && !e.repeat) {
      if (e.timeStamp - this.#escaped < twice) {
        e.preventDefault();
        this.on.leave();
        return;
      }
      this.#escaped = e.timeStamp;
    } else if (!modifiers.has(e.key)) this.#escaped = -Infinity;
    this.#sync(e);
    if (local.test(e.key)) return;
    const main = (this.mac ? e.metaKey : e.ctrlKey) && !e.getModifierState("AltGraph");
    if (main && /^[-+=0_]$/.test(e.key)) return; // the person's own zoom
    if (main && !e.altKey && e.key.toLowerCase() === "v") {
      if (!this.desk.may()) e.preventDefault();
      return; // the paste event brings the text
    }
    e.preventDefault();
    const shortcut = this.#shortcut(e);
    if (shortcut) {
      this.release();
      this.on.shortcut(shortcut);
      return;
    }
    if (modifiers.has(e.key) ? !this.desk.mayQuietly() : !this.desk.may()) return;
    if (main && !e.altKey && !e.shiftKey && /^[cx]$/i.test(e.key)) {
      if (!e.repeat) this.on.copy(e.key.toLowerCase() === "c" ? "copy" : "cut");
      return;
    }
    this.#press(e);
  }

  /** @param {KeyboardEvent} e */
  #press(e) {
    const key = this.mac && e.key === "Meta" ? "Control" : e.key;
    const held = { key, code: e.code, location: e.location };
    this.#held.set(e.code || e.key, held);
    const event = { verb: "key", kind: "down", tab: this.#tab, ...held, text: this.#text(e) || undefined, repeat: e.repeat || undefined, modifiers: this.#modifiers(e) };
    this.desk.send(event, !e.repeat);
  }

  /** @param {KeyboardEvent} e */
  #modifiers(e) {
    const m = modifiersOf(e, this.mac);
    // A Mac's Option makes letters; it is no Alt then.
    return this.mac && this.#text(e) ? m?.filter((x) => x !== "Alt") : m;
  }

  /** @param {KeyboardEvent} e */
  #up(e) {
    const name = e.code || e.key;
    const held = this.#held.get(name);
    if (held) {
      e.preventDefault();
      this.#lift(name, held, this.#modifiers(e));
    }
    // A Mac tells nothing of what is let go while Command is down.
    if (this.mac && e.key === "Meta") this.release();
  }

  /** @param {string} name @param {Held} held @param {string[]} [mods] */
  #lift(name, held, mods = undefined) {
    this.#held.delete(name);
    this.desk.send({ verb: "key", kind: "up", tab: this.#tab, ...held, modifiers: mods?.length ? mods : undefined }, true);
  }

  /** Lets go of modifiers whose release went to another window (B084). @param {KeyboardEvent|MouseEvent} e */
  #sync(e) {
    const graph = e.getModifierState("AltGraph");
    for (const [name, held] of this.#held) {
      if (!modifiers.has(held.key)) continue;
      const own = this.mac && held.code.startsWith("Meta") ? "Meta" : held.key;
      if (!e.getModifierState(own) || graph && (held.key === "Control" || held.key === "Alt")) this.#lift(name, held);
    }
  }

  /** @param {MouseEvent} e */
  watch(e) {
    this.#sync(e);
  }

  /** @param {string} text */
  #compose(text) {
    if (text === this.#composed || !this.desk.mayQuietly()) return;
    this.#composed = text;
    const length = text.length;
    this.desk.send({ verb: "insert_text", tab: this.#tab, text, compose: true, start: length, end: length });
  }

  /** @param {string} text */
  #commit(text) {
    this.#composing = false;
    this.#composed = "";
    if (this.desk.may()) this.desk.send(text ? { verb: "insert_text", tab: this.#tab, text } : { verb: "insert_text", tab: this.#tab, text: "", compose: true }, true);
    this.#reset();
  }

  /** What comes without keys: keyboards on screens, emoji pickers, dictation. @param {InputEvent} e */
  #input(e) {
    if (this.#composing || e.isComposing || e.inputType === "insertCompositionText") return;
    e.preventDefault();
    if (e.inputType === "insertFromPaste" || !this.desk.may()) return;
    const press = { insertLineBreak: "Enter", insertParagraph: "Enter", deleteContentBackward: "Backspace", deleteContentForward: "Delete", deleteWordBackward: "Backspace" }[e.inputType];
    if (press) this.tap(press, e.inputType === "deleteWordBackward" ? ["Control"] : undefined);
    else if (e.data) this.desk.send({ verb: "insert_text", tab: this.#tab, text: e.data }, true);
    this.#reset();
  }

  /** Presses a named key and lets it go. @param {string} key @param {string[]} [mods] */
  tap(key, mods = undefined) {
    const event = { verb: "key", tab: this.#tab, key, code: key, modifiers: mods };
    this.desk.send({ ...event, kind: "down", text: key === "Enter" ? "\r" : undefined }, true);
    this.desk.send({ ...event, kind: "up" }, true);
  }

  /** @param {ClipboardEvent} e */
  #paste(e) {
    e.preventDefault();
    const text = e.clipboardData?.getData("text/plain") ?? "";
    if (text && this.desk.may()) this.desk.send({ verb: "clipboard", kind: "paste", tab: this.#tab, text }, true);
  }

  /** Lets go of every key (B084). */
  release() {
    for (const [name, held] of this.#held) this.#lift(name, held);
  }
}
