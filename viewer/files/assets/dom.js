// Small things that every page needs of the document.

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {Record<string, unknown>} [props] properties, or attributes when a name holds a dash @param {...(Node|string)} children @returns {HTMLElementTagNameMap[K]} */
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === false && k.includes("-")) continue;
    if (k === "class") e.className = String(v);
    else if (k.includes("-") || k === "role" || k === "for") e.setAttribute(k, String(v));
    else Reflect.set(e, k, v);
  }
  e.append(...children);
  return e;
}

/** @template {HTMLElement} [E=HTMLElement] @param {string} id @returns {E} */
export function byId(id) {
  const e = document.getElementById(id);
  if (!e) throw new Error(`the page has no #${id}`);
  return /** @type {E} */ (e);
}

/** An icon of icons.svg. @param {string} name @returns {SVGSVGElement} */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(ns, "use");
  use.setAttribute("href", `/assets/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

/** Sets a text only when it is another: screen readers hear each change. @param {Element} e @param {string} text */
export function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

/** @param {Element} e @param {string} name @param {string|null} value */
export function attr(e, name, value) {
  if (value === null) {
    if (e.hasAttribute(name)) e.removeAttribute(name);
  } else if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

/**
 * Tells screen readers something. What is said twice in a row is heard twice.
 * @param {string} text @param {boolean} [urgent]
 */
export function announce(text, urgent = false) {
  const region = byId(urgent ? "urgent" : "polite");
  region.replaceChildren(el("p", {}, text));
}

/** @returns {boolean} whether things may move */
export const moves = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Brings a list of children in line with items, reusing those of the same key.
 * @template I @param {Element} parent @param {I[]} items @param {(item: I) => string} key
 * @param {(item: I) => HTMLElement} make @param {(e: HTMLElement, item: I) => void} update
 */
export function reconcile(parent, items, key, make, update) {
  /** @type {Map<string, HTMLElement>} */
  const old = new Map();
  for (const c of parent.children) if (c instanceof HTMLElement && c.dataset.key !== undefined) old.set(c.dataset.key, c);
  /** @type {Element|null} */
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let e = old.get(k);
    old.delete(k);
    if (!e) {
      e = make(item);
      e.dataset.key = k;
    }
    update(e, item);
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

/** A stored choice of this person, for this browser. @param {string} name @param {boolean} fallback */
export function choice(name, fallback) {
  try {
    const v = localStorage.getItem("reins." + name);
    return v === null ? fallback : v === "yes";
  } catch {
    return fallback; // storage is off, as in a frame of another site
  }
}

/** @param {string} name @param {boolean} value */
export function choose(name, value) {
  try {
    localStorage.setItem("reins." + name, value ? "yes" : "no");
  } catch {} // it lasts as long as the page then
}
