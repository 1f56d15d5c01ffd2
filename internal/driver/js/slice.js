// The walk as a whole. A large page is read in slices, so that the page is never
// held for long (SNAP-6): when the time of a slice is over, each element on the way
// down notes which of its children is next and what it has so far; the page has its
// turn; and the next slice goes down the same way and on from there. When the page
// has changed meanwhile, the walk begins again, so that it tells of one state.
const SLICE = 30; // ms
const EVERY = 127; // elements between looks at the clock, less one; all bits set
const RESTARTS = 2; // what changes more often is read as it is, as far as the way still leads on
const GAPS = 1000; // ms given to a busy page in all; then the rest is read at once

// stops looks at the clock: whether the walk has to end here, or to pause. It
// pauses only where it has come further than the slice before.
const stops = () => {
  const now = performance.now();
  if (now > trip.until) return trip.late = true;
  if (now <= trip.pauseAt || trip.again !== null && trip.again.size > 0) return false;
  if (!trip.moved) { trip.moved = true; return false; }
  return trip.paused = true;
};

// hold notes where the walk has paused inside of el.
const hold = (el, next, out, owned) => { trip.marks.set(el, { next, out, owned, up: next.parentNode }); };

// resumes tells an element inside of which the walk has paused.
const resumes = (el) => trip.again !== null && trip.again.has(el);

// takeUp returns what was noted, and brings back what there was so far: once for
// all elements that share a list.
const takeUp = (el, out) => {
  const mark = trip.again.get(el);
  if (mark === undefined) return undefined;
  trip.again.delete(el);
  if (!trip.restored.has(mark.out)) {
    trip.restored.add(mark.out);
    for (const item of mark.out) out.push(item);
  }
  return mark;
};

// begin prepares to walk the document, or the subtree of element n when n is not
// 0; null when that is gone.
const begin = (n) => {
  prune();
  forget();
  const root = n ? elementOf(n) : document.body || document.documentElement;
  if (n && !root) return null;
  const origin = location.origin + '/';
  return { root, whole: !n, begun: false, hosts: [], owned: new Map(), roots: new Set(), modal: null, active: activeElement(), owners: false,
    depth: 0, steps: 0, size: 0, looked: 0, headers: new Map(), room: MAX_CHARS, full: false, late: false, hides: false, generators: none,
    until: Infinity, pauseAt: Infinity, every: EVERY, moved: false, paused: false, marks: new Map(), again: null, restored: null,
    origin, here: location.pathname + location.search + '#', plainBase: origin !== 'null/' && document.baseURI.startsWith(origin),
    ownBase: document.baseURI.split('#', 1)[0] === location.href.split('#', 1)[0],
    fieldsets: document.querySelector('fieldset[disabled]') !== null, drags: document.querySelector('[draggable="true"]') !== null };
};

const prepare = (root) => {
  trip.begun = true;
  collectOwned(document);
  trip.modal = trip.whole ? modalOf() : null;
  trip.generators = generatorsIn(root.getRootNode());
  trip.hides = document.querySelector(HIDES) !== null || (root.getRootNode() !== document && root.getRootNode().querySelector(HIDES) !== null);
};

// slice walks until the end, and returns the outline, or until it has to pause,
// and returns null.
const slice = (t) => {
  trip = t;
  Object.assign(t, { paused: false, moved: false, depth: 0, again: t.marks.size ? t.marks : null, marks: new Map(), restored: new Set() });
  const items = [];
  try {
    if (t.root) {
      if (!t.begun) prepare(t.root);
      const { generators } = t;
      visit(t.root, items, t.modal ? SHUT : 0, true);
      t.generators = generators;
      if (t.paused) return null;
    }
    const out = [];
    write(tidy(items), 0, out);
    pendingHosts = t.hosts;
    const busy = document.querySelector('[aria-busy="true"]') ? 1 : 0;
    const head = [pendingHosts.length, document.readyState, busy, t.late ? 2 : t.full || t.room < 0 ? 1 : 0].join(FIELD);
    return (out.length ? head + FIELD + out.join(FIELD) : head).toWellFormed();
  } finally {
    trip = null;
  }
};

// sound tells whether the way down still leads to where the walk has paused.
const sound = (t) => {
  for (const [el, { next, up }] of t.marks) if (!el.isConnected || next.parentNode !== up) return false;
  return true;
};

const WATCHED = { subtree: true, childList: true, characterData: true, attributes: true };

// breath gives the page its turn.
const breath = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

// Walking is one walk, slice by slice. Most are over with the first.
class Walking {
  constructor(n, length, every) {
    Object.assign(this, { n, length, every, spent: 0, gaps: 0, tries: 0, pauses: 0, trip: null });
  }

  // begin is false when the element is gone.
  begin() {
    this.trip = begin(this.n);
    if (this.trip) this.trip.every = this.every;
    return this.trip !== null;
  }

  next() {
    const t = this.trip;
    const at = performance.now();
    t.pauseAt = this.tries > RESTARTS || this.gaps > GAPS ? Infinity : at + this.length;
    t.until = at + MAX_TIME - this.spent;
    const text = slice(t);
    this.spent += performance.now() - at;
    return text;
  }

  async rest() {
    for (;;) {
      let stirred = false;
      const watch = new MutationObserver(() => { stirred = true; });
      try {
        while (!stirred) {
          for (const root of [document, ...this.trip.roots]) watch.observe(root, WATCHED);
          const at = performance.now();
          await breath();
          this.pauses++;
          this.gaps += performance.now() - at;
          if (this.tries === RESTARTS ? !sound(this.trip) : stirred || watch.takeRecords().length > 0) break;
          stirred = false;
          const text = this.next();
          if (text !== null) return text;
        }
      } finally {
        watch.disconnect();
      }
      this.tries++;
      if (!this.begin()) return 'gone';
      const text = this.next();
      if (text !== null) return text;
    }
  }
}

// walk reads the document, or the subtree of element n when n is not 0: at once
// when that is soon done, else in slices, of which the end is promised.
const walk = (n, length = SLICE, every = EVERY) => {
  const w = new Walking(n, length, every);
  if (!w.begin()) return 'gone';
  return w.next() ?? w.rest();
};

let pendingHosts = [];

// hosts are the elements of the last walk that may have a closed root.
const hosts = () => pendingHosts.map(([el]) => el);

// adopt takes a closed root; settleHosts remembers who has none.
const adopt = (host, root) => { closedRoots.set(host, root); };
const settleHosts = () => {
  for (const [el, looks] of pendingHosts) if (!closedRoots.has(el)) askedHosts.set(el, looks);
  pendingHosts = [];
};
