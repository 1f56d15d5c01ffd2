// Where a pointer would act on an element (ACT-1), and the guards that keep
// input from landing on anything else.

// deepest is what the pointer would hit, down into shadow trees.
const deepest = (x, y) => {
  let el = document.elementFromPoint(x, y);
  for (;;) {
    const root = el && rootOf(el);
    const inner = root ? root.elementFromPoint(x, y) : null;
    if (!inner || inner === el || !root.contains(inner)) return el;
    el = inner;
  }
};

const ACTS_BY_ITSELF = 'a[href],button,input,select,textarea,summary,[tabindex],[contenteditable]';

// belongs tells whether pressing on target is pressing on el: its contents,
// its label, or the picture that it is an area of.
const belongs = (el, target) => {
  if (!target) return false;
  if (holds(el, target)) return true;
  const l = closest(target, (p) => p.localName === 'label');
  if (l && l.control === el) {
    const own = closest(target, (p) => p === l || p.matches(ACTS_BY_ITSELF));
    return own === l;
  }
  if (el.localName === 'area') {
    const map = el.closest('map');
    return target.localName === 'img' && target.useMap === '#' + map?.name;
  }
  return closedRoots.has(target) && holds(target, el);
};

// says names an element for a sentence, with the number of the nearest one
// that a snapshot could list.
const says = (el) => {
  if (!el) return { text: 'the edge of the page', number: 0 };
  const meant = closest(el, (p) => p.id || ACTED_ON.has(roleOf(p)) || PLACES.has(roleOf(p)) || p.parentElement === document.body) || el;
  const role = roleOf(meant);
  let text = meant.localName + (meant.id ? '#' + meant.id : '');
  if (role !== 'generic') text = role + ' ' + text;
  return { text: bound(text, 120), label: bound(squeeze(meant.getAttribute('aria-label') || meant.innerText || el.innerText || ''), 80), number: numberOf(meant) };
};

const disabledReason = (el) => {
  const tag = el.localName;
  if (el.matches(':disabled')) return 'it is disabled';
  const aria = closest(el, (p) => isTrue(p, 'aria-disabled'));
  if (aria) return aria === el ? 'it is disabled' : 'it is inside something disabled';
  if (closest(el, (p) => p.hasAttribute('inert'))) return 'it is inert';
  if (tag === 'option' && el.parentElement?.disabled) return 'its list is disabled';
  return '';
};

const boxesOf = (el) => {
  if (el.localName === 'area') return areaBoxes(el);
  let boxes = [...el.getClientRects()];
  if (!boxes.some((b) => b.width > 0 && b.height > 0)) {
    const range = document.createRange();
    range.selectNodeContents(el);
    boxes = [...range.getClientRects()];
  }
  return boxes.filter((b) => b.width > 0 && b.height > 0);
};

const areaBoxes = (el) => {
  const map = el.closest('map');
  const img = map && document.querySelector('img[usemap="' + CSS.escape('#' + map.name) + '"]');
  if (!img) return [];
  const r = img.getBoundingClientRect();
  const c = el.coords.split(',').map(Number);
  const at = (x, y, w, h) => [new DOMRect(r.x + img.clientLeft + x, r.y + img.clientTop + y, w, h)];
  switch (el.shape) {
    case 'circle': return at(c[0] - 1, c[1] - 1, 2, 2);
    case 'poly': {
      let x = 0;
      let y = 0;
      const n = Math.floor(c.length / 2);
      for (let i = 0; i < n; i++) { x += c[2 * i]; y += c[2 * i + 1]; }
      return at(x / n - 1, y / n - 1, 2, 2);
    }
    case 'default': return [r];
  }
  return at(c[0], c[1], c[2] - c[0], c[3] - c[1]);
};

const inView = (b) => {
  const x = Math.max(b.left, 0);
  const y = Math.max(b.top, 0);
  const right = Math.min(b.right, innerWidth);
  const bottom = Math.min(b.bottom, innerHeight);
  return right - x > 0.5 && bottom - y > 0.5 ? new DOMRect(x, y, right - x, bottom - y) : null;
};

// points are where to press, best first.
const points = (el, position) => {
  const boxes = boxesOf(el);
  if (position) {
    const r = el.getBoundingClientRect();
    return boxes.length ? [[r.x + position.x, r.y + position.y]] : [];
  }
  const out = [];
  const sorted = boxes.sort((a, b) => b.width * b.height - a.width * a.height).slice(0, 8);
  for (const b of sorted) {
    const v = inView(b);
    if (v) out.push([v.x + v.width / 2, v.y + v.height / 2]);
  }
  if (sorted.length) {
    const v = inView(sorted[0]);
    if (v) for (const [fx, fy] of [[0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.9]]) out.push([v.x + v.width * fx, v.y + v.height * fy]);
  }
  return out;
};

const placeOf = (el) => { const r = el.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; };

const isShown = (el) => el.checkVisibility({ visibilityProperty: true });

// look tries once: {x, y} to press at, or {why} not.
const look = (el, o) => {
  const labels = o.position || !el.labels || el.localName === 'button' ? [] : [...el.labels];
  const shown = el.localName === 'area' || isShown(el) || (o.arm === 'pointer' && labels.some(isShown));
  if (!shown) return { why: 'hidden', text: 'it is not shown' };
  const off = o.disabled ? '' : disabledReason(el);
  if (off) return { why: 'disabled', text: off };
  if (o.editable && (el.readOnly === true || isTrue(el, 'aria-readonly'))) return { why: 'readonly', text: 'it is read-only; if pressing it opens something to choose from, click it and choose there' };
  if (o.position) {
    const r = el.getBoundingClientRect();
    const { x, y } = o.position;
    if (x < 0 || y < 0 || x >= r.width || y >= r.height) return { why: 'position', text: 'the position lies outside of its box of ' + Math.round(r.width) + ' by ' + Math.round(r.height) };
  }
  const candidates = [...points(el, o.position)];
  for (const l of labels) candidates.push(...points(l, null));
  if (!boxesOf(el).length && !labels.some((l) => boxesOf(l).length)) return { why: 'hidden', text: 'it takes no room on the page' };
  let first = null;
  for (const [x, y] of candidates) {
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
    const hit = deepest(x, y);
    if (belongs(el, hit)) return { x, y };
    if (!first && hit) first = { hit, x, y };
  }
  if (o.soft && tiny(el)) { const r = el.getBoundingClientRect(); return { x: r.x, y: r.y }; }
  if (!first) return { why: 'outside', text: 'it cannot be scrolled into view' };
  if (holds(first.hit, el) && getComputedStyle(el).pointerEvents === 'none') return { why: 'pointer', text: 'it does not take the pointer' };
  return { why: 'covered', text: 'something covers it', by: says(first.hit), hit: first.hit };
};

// tiny tells an element that nobody can see, by itself or by the hair-thin box
// that clips it, as editors hide the field that takes their keys.
const thin = (el) => { const r = el.getBoundingClientRect(); return r.width < 5 || r.height < 5; };
const tiny = (el) => {
  if (thin(el) || getComputedStyle(el).opacity === '0') return true;
  for (let p = el.parentElement, i = 0; p && i < 3; p = p.parentElement, i++) {
    if (thin(p) && /hidden|clip/.test(getComputedStyle(p).overflow)) return true;
  }
  return false;
};

// animated tells whether an animation runs on el or something around it: one
// that has just begun may stand still for a moment.
const animated = (el) => document.getAnimations().some((a) => a.playState === 'running' && a.effect?.target && holds(a.effect.target, el));

const ALIGNMENTS = ['nearest', 'center', 'start', 'end'];

const hopeless = (hit) => {
  if (!hit) return false;
  const r = hit.getBoundingClientRect();
  return hit !== document.documentElement && hit !== document.body && r.width >= innerWidth * 0.9 && r.height >= innerHeight * 0.9 &&
    closest(hit, (p) => getComputedStyle(p).position === 'fixed' || p.matches(':modal')) !== null;
};

// A cover over the whole page that has stood there unmoved is not waited for to
// the end: it wants to be dealt with first. One that turns or counts may go by
// itself, and who asks for a long wait means it.
const COVERED = 1500;
const PATIENT = 5000;

const stands = (hit) => document.readyState === 'complete' && !document.getAnimations().some((a) => a.playState === 'running' && a.effect?.target && (holds(hit, a.effect.target) || holds(a.effect.target, hit)));

const same = (a, b) => a.every((v, i) => Math.abs(v - b[i]) < 0.5);

// ready waits until el can be acted on, at most o.ms. It returns what the
// driver needs to act, or why it cannot.
const ready = async (n, o) => {
  const began = performance.now();
  let scrolls = 0;
  let moved = 0;
  let rested = 0;
  let cover = null; // what covers the whole page, with its text, since when
  let small = 0; // since when it is too small
  let held = null; // a point that stays on something that keeps moving
  for (let before = null; ;) {
    const el = elementOf(n);
    if (!el) return { gone: true };
    if (el.localName === 'option' && el.closest('select')) return { ok: true, option: true, ...subject(el) };
    const late = performance.now() - began >= o.ms;
    let r = look(el, o);
    while ((r.why === 'outside' || r.why === 'covered') && scrolls < ALIGNMENTS.length && !hopeless(r.hit)) {
      (el.localName === 'area' ? el.closest('map') && document.querySelector('img[usemap="' + CSS.escape('#' + el.closest('map').name) + '"]') || el : el)
        .scrollIntoView({ block: ALIGNMENTS[scrolls], inline: scrolls ? 'center' : 'nearest', behavior: 'instant' });
      scrolls++;
      r = look(el, o);
    }
    if (r.why) {
      before = null;
      const over = r.why === 'covered' && o.ms <= PATIENT && hopeless(r.hit) && stands(r.hit) ? r.hit : null;
      if (!over || cover?.el !== over || cover.text !== over.textContent) cover = over && { el: over, text: over.textContent, since: performance.now() };
      if (cover && performance.now() - cover.since >= COVERED) return { why: r.why, text: r.text, by: r.by, ...subject(el) };
      // What a page has made too small to be pressed, for something of its own to
      // stand in its place, stays so.
      if (r.why === 'hidden' || r.why === 'disabled' || o.soft || o.ms > PATIENT || !tiny(el)) small = 0;
      else if (!small) small = performance.now();
      else if (performance.now() - small >= COVERED) return { why: 'unseen', text: 'nobody can see it to press it; fill it, or press what stands in its place', ...subject(el) };
      if (late || r.why === 'position') return { why: r.why, text: r.text, by: r.by, ...subject(el) };
    } else {
      const place = placeOf(el);
      if (o.soft && !animated(el)) return done(el, r, o); // keys do not need it to lie still
      if (before && same(before, place)) {
        if (++rested >= (animated(el) ? 4 : 1)) return done(el, r, o);
      } else rested = 0;
      if (before && rested === 0 && ++moved > 3) {
        if (held && belongs(el, deepest(held.x, held.y))) {
          if (++held.frames >= 8) return done(el, held, o);
        } else held = { x: r.x, y: r.y, frames: 0 };
      }
      if (before && late) return { why: 'moving', text: 'it keeps moving', ...subject(el) };
      before = place;
    }
    await frame();
  }
};

const subject = (el) => {
  forget();
  return { role: roleOf(el), name: bound(nameOf(el), 256) };
};

const done = (el, r, o) => {
  if (o.arm === 'pointer') arm(el, 'pointer');
  changed = entered = false;
  stillNow();
  baseline(el);
  watching = true;
  observer.observe(document, { subtree: true, childList: true, characterData: true });
  const a = activeElement();
  return { ok: true, x: r.x, y: r.y, place: placeOf(el), tag: el.localName, focus: a ? numberOf(a) : 0, busy: busyParts(), ...subject(el) };
};

// through says where a point inside the frame of element n lies in this
// document, and whether the pointer gets to the frame there.
const through = (n, x, y) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  const r = el.getBoundingClientRect();
  const sx = el.offsetWidth ? r.width / el.offsetWidth : 1;
  const sy = el.offsetHeight ? r.height / el.offsetHeight : 1;
  const s = getComputedStyle(el);
  const px = r.x + (el.clientLeft + parseFloat(s.paddingLeft)) * sx + x * sx;
  const py = r.y + (el.clientTop + parseFloat(s.paddingTop)) * sy + y * sy;
  if (px < 0 || py < 0 || px >= innerWidth || py >= innerHeight) return { why: 'outside', text: 'its frame is scrolled out of view', x: px, y: py };
  const hit = deepest(px, py);
  if (!belongs(el, hit)) return { why: 'covered', text: 'something covers its frame', by: says(hit), x: px, y: py };
  return { ok: true, x: px, y: py };
};

// reveal scrolls an element of a frame into the view of all around it.
const reveal = (n, block) => {
  const el = elementOf(n);
  if (el) el.scrollIntoView({ block, inline: 'center', behavior: 'instant' });
};

// guard is armed for the time of one input; the first press that lands
// elsewhere is stopped before the page's own handlers see it.
let guard = null;

// A guard that nobody takes down, because its driver is gone, goes by itself:
// it must not stand in the way of a person.
const GUARDED = 6000;

const arm = (el, kind) => { guard = { el, kind, until: performance.now() + GUARDED, seen: false, clicked: kind !== 'pointer', blocked: null }; };
const onGuard = () => (guard && performance.now() < guard.until ? guard : null);

const swallow = (e) => { e.preventDefault(); e.stopImmediatePropagation(); };

// savesFile tells a click on a link that the browser will take as a download:
// nothing else says so until the download begins, which may be later than all
// that the page does.
const savesFile = (e) => e.composedPath().some((n) => n.nodeType === 1 && (n.localName === 'a' || n.localName === 'area') &&
  n.hasAttribute('download') && n.hasAttribute('href') && (n.protocol === 'blob:' || n.protocol === 'data:' || n.origin === location.origin));

const onPointer = (e) => {
  const g = onGuard();
  if (g && e.type === 'click' && savesFile(e)) g.file = e;
  if (!g || g.kind !== 'pointer' || !e.isTrusted) return;
  if (g.blocked) { swallow(e); return; }
  if (!g.seen) {
    if (e.type !== 'pointerdown' && e.type !== 'mousedown') return;
    const target = e.composedPath()[0];
    if (!belongs(g.el, target)) { g.blocked = says(target.nodeType === 1 ? target : target.parentElement); swallow(e); return; }
    g.seen = true;
  }
  if (e.type === 'click' || e.type === 'auxclick' || e.type === 'contextmenu') g.clicked = true;
};

const onKeys = (e) => {
  const g = onGuard();
  if (!g || g.kind === 'pointer' || !e.isTrusted || (g.seen && g.kind === 'first')) return;
  const target = e.composedPath()[0];
  if (g.kind !== 'bar' && (target === g.el || belongs(g.el, target) || (target.nodeType === 1 && holds(target, g.el) && target.isContentEditable))) { g.seen = true; return; }
  g.blocked ??= says(target.nodeType === 1 ? target : null);
  swallow(e);
};

for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu']) {
  window.addEventListener(type, onPointer, { capture: true, passive: false });
}
for (const type of ['keydown', 'keypress', 'beforeinput']) window.addEventListener(type, onKeys, { capture: true });

const disarm = () => {
  const g = guard;
  guard = null;
  return g ? { late: !g.seen && performance.now() > g.until, seen: g.seen, clicked: g.clicked, blocked: g.blocked, file: !!g.file && !g.file.defaultPrevented } : { seen: true, clicked: true, blocked: null };
};

// focusOn gives the element the focus. A first key that would land elsewhere
// is stopped; once one has landed, the page may move the focus on.
const focusOn = (n, kind = 'first') => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  if (activeElement() !== el) el.focus({ preventScroll: true });
  if (!el.isConnected) return { gone: true }; // the page put another in its place
  arm(el, kind);
  const a = activeElement();
  return { ok: a === el || holds(el, a) };
};

// caretAtEnd is focusOn for adding text: a field that had the focus already
// keeps its caret.
const caretAtEnd = (n) => {
  const had = activeElement() === elementOf(n);
  const r = focusOn(n);
  const el = elementOf(n);
  if (!r.ok || had) return r;
  if (el.isContentEditable) el.ownerDocument.getSelection().selectAllChildren(el), el.ownerDocument.getSelection().collapseToEnd();
  else if (typeof el.value === 'string') try { el.setSelectionRange(el.value.length, el.value.length); } catch { /* no caret in this kind */ }
  return r;
};

const busyParts = () => document.querySelectorAll('[aria-busy="true"]').length;

// toggles is what one press may turn over, in words; '' for most elements.
const toggles = (el) => {
  el = meant(el);
  const out = [];
  if (kindOf(el) === 'check') out.push({ true: 'checked', false: 'not checked' }[checkedOf(el)] ?? 'half checked');
  if (el.localName === 'summary') out.push(el.parentElement?.open ? 'expanded' : 'collapsed');
  for (const [name, is, not] of [['aria-pressed', 'pressed', 'not pressed'], ['aria-expanded', 'expanded', 'collapsed'], ['aria-selected', 'selected', 'not selected']]) {
    const v = attr(el, name);
    if (v === 'true') out.push(is);
    else if (v === 'false') out.push(not);
  }
  return out.join(', ');
};

// What the next input is held against: its element, what that was, and how many
// timers the page had set.
let subject_ = null;
let toggled = '';
let timersBefore = 0;
const baseline = (el) => {
  subject_ = el;
  toggled = el ? toggles(el) : '';
  timersBefore = pageTimers();
};

// An input that set a timer of the page is likely to show only when that runs
// out, as in fields that filter once typing has ended. Where nothing came of it
// twice, it is not waited for again.
const DEBOUNCE = 600;
const VAIN = 2;
const vain = new WeakMap(); // element → waits that nothing came of

const waitedInVain = (el) => vain.get(el) || 0;

const belated = async (ms) => {
  const el = subject_ || activeElement();
  if (!entered || !el || pageTimers() <= timersBefore || waitedInVain(el) >= VAIN) return;
  const stirred = await new Promise((done) => {
    const end = (v) => { clearTimeout(late); stirs.disconnect(); done(v); };
    const stirs = new MutationObserver(() => end(true));
    const late = later(() => end(false), Math.min(ms, DEBOUNCE));
    stirs.observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['class', 'style', 'hidden', 'open', 'aria-busy'] });
  });
  if (stirred) await painted();
  else vain.set(el, waitedInVain(el) + 1);
};

// after waits for a picture that shows what the input did, or for two when it
// has not shown anything yet, for what comes of it when a timer runs out, and for
// parts of the page that began to say that they are busy, at most ms; then it
// tells how the page stands (ACT-6).
const after = async (busyBefore, ms) => {
  const began = performance.now();
  await painted();
  if (!(watching && changed) && !entered) await painted();
  // What a page does about being scrolled comes after the picture of it.
  while (scrolled && performance.now() - began < GLIDE) {
    scrolled = false;
    await painted();
  }
  await belated(ms - (performance.now() - began));
  while (busyParts() > busyBefore && performance.now() - began < ms) await frame();
  return standing();
};

// changed tells whether the document has changed since the last input was
// made ready.
let changed = true;
let watching = false; // changed is about the last input
let entered = false; // a control has taken input since
let scrolled = false; // something has scrolled since, or since the last picture waited for
let rolling = false; // something scrolled by itself when the last input was made ready
const scrollTimes = [-Infinity, -Infinity, -Infinity, -Infinity]; // when something scrolled last
const GLIDE = 500; // ms that scrolling to a place may take
window.addEventListener('scroll', () => {
  scrolled = !rolling;
  scrollTimes.shift();
  scrollTimes.push(performance.now());
}, { capture: true, passive: true });
for (const type of ['input', 'change']) window.addEventListener(type, () => { entered = true; }, { capture: true, passive: true });
// stillNow has what scrolls from now on count as the input's, where nothing
// scrolls by itself.
const stillNow = () => {
  scrolled = false;
  rolling = performance.now() - scrollTimes[0] < 100;
};
const observer = new MutationObserver(() => { changed = true; observer.disconnect(); });

const standing = () => {
  const a = activeElement();
  const out = { busy: busyParts(), focus: 0, title: bound(document.title), changed, now: '' };
  if (subject_?.isConnected) {
    const now = toggles(subject_);
    if (now !== toggled) out.now = now;
  }
  observer.disconnect();
  changed = true;
  watching = entered = false;
  stillNow();
  if (a && a !== document.body && a !== document.documentElement) {
    out.focus = numberOf(a);
    Object.assign(out, subject(a));
    out.frame = a.localName === 'iframe' || a.localName === 'frame';
  }
  baseline(out.focus ? a : null);
  return out;
};

// rectOf is where an element is in the document, for a picture of it.
const rectOf = async (n) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  if (!el.checkVisibility()) return { why: 'hidden', text: 'it is not shown', ...subject(el) };
  const r0 = el.getBoundingClientRect();
  if (r0.top < 0 || r0.left < 0 || r0.bottom > innerHeight || r0.right > innerWidth) {
    el.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
    await frame();
  }
  const r = el.getBoundingClientRect();
  return { ok: true, x: r.x, y: r.y, w: r.width, h: r.height, ...subject(el) };
};
