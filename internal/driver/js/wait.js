// Waiting (verb wait_for): what is waited for is looked at again when the page
// has changed, at the next picture; nothing is asked on a clock.
const waits = new Map(); // by ID: what ends the wait

const STIRS = ['transitionend', 'transitioncancel', 'animationstart', 'animationend', 'load', 'input', 'change', 'toggle', 'focusin',
  'focusout', 'scroll', 'resize', 'readystatechange', 'slotchange', 'invalid'];

// shows tells whether a text can be seen or is the name or value of something.
const shows = async (text) => {
  const want = squeeze(text).toLowerCase();
  const all = (await walk(0)).toLowerCase();
  if (!all.includes(want)) return false;
  const f = all.split(FIELD);
  for (let i = 4; i + 6 < f.length; i += 7) { // behind the header, entry by entry
    if (f[i + 1] !== 'u' && (f[i + 4].includes(want) || squeeze(f[i + 6]).includes(want))) return true;
  }
  return false;
};

const STATES = {
  visible: (el) => shownNow(el) && boxesOf(el).length > 0,
  enabled: (el) => disabledReason(el) === '',
  disabled: (el) => disabledReason(el) !== '',
  checked: (el) => checkedOf(meant(el)) === 'true',
  unchecked: (el) => checkedOf(meant(el)) === 'false',
};

// awaits waits until test() is not undefined, at most ms, or until it is told
// to stop.
const awaits = (id, ms, watched, test) => new Promise((done) => {
  let ended = false;
  let due = true; // a look is due, or under way
  let missed = false; // something changed during one
  let cost = 0;
  let last = 0;
  const roots = new Set();
  const end = (result) => {
    if (ended) return;
    ended = true;
    waits.delete(id);
    clearTimeout(late);
    changes.disconnect();
    sizes.disconnect();
    for (const type of STIRS) removeEventListener(type, stir, { capture: true });
    done(result);
  };
  const look = async () => {
    missed = false;
    if (ended) return;
    const began = performance.now();
    const result = await test();
    last = performance.now();
    cost = last - began;
    due = false;
    if (result !== undefined) { end(result); return; }
    watchRoots();
    if (missed) stir();
  };
  // A large page that changes all the time is looked at for a sixth of the time.
  const stir = () => {
    missed = due;
    if (due || ended) return;
    due = true;
    const rest = 5 * cost - (performance.now() - last);
    if (rest > 16) later(() => frame().then(look), rest);
    else frame().then(look);
  };
  const changes = new MutationObserver(stir);
  const sizes = new ResizeObserver(stir);
  const watchRoots = () => {
    const add = (root) => {
      if (roots.has(root)) return;
      roots.add(root);
      changes.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
    };
    add(document);
    for (const el of document.querySelectorAll('*')) {
      const root = rootOf(el);
      if (root) add(root);
    }
  };
  const late = later(() => end({}), ms);
  waits.set(id, () => end({}));
  for (const type of STIRS) addEventListener(type, stir, { capture: true, passive: true });
  if (watched) sizes.observe(watched);
  look();
});

const untilText = (id, ms, text, gone) => awaits(id, ms, null, async () => (await shows(text) === !gone ? { met: true } : undefined));

const untilState = (id, ms, n, state) => {
  const first = elementOf(n);
  return awaits(id, ms, first, () => {
    const el = elementOf(n);
    if (state === 'hidden') return !el || !STATES.visible(el) ? { met: true } : undefined;
    if (!el) return { gone: true };
    return STATES[state](el) ? { met: true } : undefined;
  });
};

const unwait = (id) => { waits.get(id)?.(); };
