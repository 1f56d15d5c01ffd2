// The eyes and hands of the driver in one document. These files run, joined in
// the order base, role, name, counter, state, kinds, walk, slice, frames, look, special, act, control, world, in an isolated
// world of every frame: the page sees none of it. Reading never changes the page: no
// attribute, focus, scroll, style or event.
'use strict';

// Numbers of elements (SNAP-4). An element keeps its number for as long as its
// document lives; a number never comes to mean another element.
const numbers = new WeakMap();
const elements = new Map();
let lastNumber = 0;
let pruneAt = 4096;

const numberOf = (el) => {
  let n = numbers.get(el);
  if (n === undefined) {
    n = ++lastNumber;
    numbers.set(el, n);
    elements.set(n, new WeakRef(el));
  }
  return n;
};

// elementOf is null when the element is gone: collected, taken out of the
// document, or moved to another one.
const elementOf = (n) => {
  const el = elements.get(n)?.deref();
  return el && el.isConnected && el.ownerDocument === document ? el : null;
};

const prune = () => {
  if (elements.size < pruneAt) return;
  for (const [n, ref] of elements) if (!ref.deref()) elements.delete(n);
  pruneAt = 2 * elements.size + 4096;
};

let trip = null; // what one walk knows; null outside of one

// Closed shadow roots are null to this world until the driver hands them in.
const closedRoots = new WeakMap(); // host → root
const askedHosts = new WeakMap(); // host → what it looked like when it had none

const rootOf = (el) => el.shadowRoot || closedRoots.get(el) || null;

// up is the parent in the flat tree: through slots and hosts.
const up = (node) => {
  if (node.assignedSlot) return node.assignedSlot;
  const p = node.parentNode;
  if (!p) return null;
  return p.nodeType === 11 ? p.host || null : p;
};

// slotOf finds the slot of a child of a closed root's host, which
// assignedSlot keeps to itself.
const flatParent = (node) => {
  const p = up(node);
  if (p && p.nodeType === 1) {
    const root = closedRoots.get(p);
    if (root && node.getRootNode() !== root) {
      for (const s of root.querySelectorAll('slot')) if (s.assignedNodes().includes(node)) return s;
    }
  }
  return p;
};

const holds = (outer, node) => {
  for (let n = node; n; n = flatParent(n)) if (n === outer) return true;
  return false;
};

const closest = (el, test) => {
  for (let n = el; n && n.nodeType === 1; n = flatParent(n)) if (test(n)) return n;
  return null;
};

const contentsOf = (el) => {
  const root = rootOf(el);
  if (root) return root.childNodes;
  if (el.localName === 'slot') {
    const assigned = el.assignedNodes();
    if (assigned.length) return assigned;
  }
  return el.childNodes;
};

const attr = (el, name) => el.getAttribute(name);
// squeeze makes white space and control characters one space each run. Most
// text has nothing to squeeze, and is left as it is.
const UNEVEN = /[^\S ]|[\u0000-\u001f\u007f-\u009f]|  |^ | $/;
const squeeze = (s) => UNEVEN.test(s) ? s.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ').trim() : s;
const PAGE_STRING = 2048;

// bound cuts a page-made string, never through a character.
const bound = (s, max = PAGE_STRING) => {
  if (s.length <= max) return s;
  let end = max - 1;
  const c = s.charCodeAt(end - 1);
  if (c >= 0xd800 && c < 0xdc00) end--;
  return s.slice(0, end) + '…';
};

const MAX_IDS = 1000; // of one list of references

const byIds = (el, list) => {
  const root = el.getRootNode();
  const out = [];
  for (const id of list.split(/\s+/, MAX_IDS)) {
    const found = id && root.getElementById ? root.getElementById(id) : null;
    if (found) out.push(found);
  }
  return out;
};

const activeElement = () => {
  let a = document.activeElement;
  for (;;) {
    const inner = a && rootOf(a)?.activeElement;
    if (!inner) return a;
    a = inner;
  }
};

// Numbers of timers are given in a row to all worlds of a document, so that the
// next one tells how many there were. Own ones are counted, to leave them out.
let ownTimers = 0;
const later = (f, ms) => { ownTimers++; return setTimeout(f, ms); };
const pageTimers = () => {
  const id = later(() => {}, 0);
  clearTimeout(id);
  return id - ownTimers;
};

// frame ends with the next picture, or after a while where none is painted.
const frame = () => new Promise((done) => {
  const late = later(done, 250);
  requestAnimationFrame(() => { clearTimeout(late); done(); });
});

// painted ends when the next picture was made: what runs at its beginning, then
// style, layout and paint are one task, and the message comes after it.
const painted = () => new Promise((done) => {
  const late = later(done, 250);
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { clearTimeout(late); port1.close(); done(); };
    port2.postMessage(0);
  });
});
