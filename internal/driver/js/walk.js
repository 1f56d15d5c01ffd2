// The walk: one pass over the flat tree, out comes one string (SNAP-7) of fields
// with U+007F between them: four of a header, then seven of each entry of the
// outline, which are depth, flags, role, number, name, states and value. No field
// can hold that character or a line end, because control characters in page text
// are squeezed; a line end inside of a value travels as U+2028. On the way to the
// driver, JSON leaves U+007F as it is, where it would write a tab as two
// characters. Flags: i = can be acted on, t = text, f = frame, u = address.
const FIELD = '\u007f';
const TEXT = FIELD + 't' + FIELD + 'text' + FIELD + '0' + FIELD + FIELD + FIELD;
const ADDRESS = FIELD + 'u' + FIELD + '/url' + FIELD + '0' + FIELD + FIELD + FIELD;
const MAX_ENTRIES = 200000;
const MAX_DEPTH = 700; // below it, text only: the parser itself nests no deeper than 512
const MAX_OPTIONS = 60;
const MAX_AREAS = 1000;
const MAX_CHARS = 4000000; // of all that a walk returns
const MAX_TIME = 4500; // ms; a page must not be held for longer, whatever is in it
const MAX_HOSTS = 256;


const hostLooks = (el) => {
  const r = el.getBoundingClientRect();
  return r.width + 'x' + r.height + ':' + el.childElementCount;
};

// mayHost finds elements that may have a closed shadow root: the driver asks
// the browser about these few.
const mayHost = (el, tag) => {
  const own = tag.includes('-');
  if (!own && !HOSTS.has(tag)) return;
  if (trip.hosts.length >= MAX_HOSTS || rootOf(el)) return;
  if (!(own && el.matches(':defined'))) {
    const child = el.firstElementChild;
    if (child ? getComputedStyle(child).display !== '' : el.firstChild !== null && !own) return;
    if (!child && !own && (el.offsetHeight < 4 || el.offsetWidth < 4)) return;
  }
  const looks = hostLooks(el);
  if (askedHosts.get(el) === looks || resumes(el)) return;
  trip.hosts.push([el, looks]);
};

const modalOf = () => {
  let found = null;
  for (const d of document.querySelectorAll('dialog:modal')) {
    if (!found || found.contains(d) || d.contains(document.activeElement)) found = d;
  }
  return found;
};

const MAX_OWNED = 10000;

const collectOwned = (root) => {
  for (const [el, owner] of ownedIn(root)) if (!trip.owned.has(el)) trip.owned.set(el, owner);
  trip.owners = trip.owned.size > 0;
};

// What holds on the way down is a set of bits: one number, not an object, for
// each element.
const VISIBLE = 1;   // of the element whose contents are visited
const POINTER = 2;   // the pointer already shows a hand there
const ACTED = 4;     // inside something that can be acted on
const PRE = 8;       // line ends count
const SHUT = 16;     // outside of the open modal dialog
const DISABLED = 32; // by aria-disabled of something around
const CONTROL = 64;  // inside a label
const EDITABLE = 128;
// BEFORE and AFTER are 256 and 512.
const GRAB = 1024 | 2048 | 4096; // the pointer already shows that it can be dragged, in one of three ways

// An inline text piece is a string; '\n' in it is the border of a block. Where the
// walk has paused in here, it goes on behind what is in out already (slice.js).
const visitAll = (el, out, st, tag = el.localName, bits = bitsOfTag(tag)) => {
  const mark = trip.again === null ? undefined : takeUp(el, out);
  if (st & BEFORE && !mark) out.push(generated(el, '::before'));
  const root = bits & ROOTED ? rootOf(el) : null;
  const before = trip.generators;
  if (root) {
    trip.generators = generatorsIn(root);
    trip.fieldsets = true;
    if (!trip.roots.has(root)) {
      trip.roots.add(root);
      collectOwned(root);
      trip.hides = trip.hides || root.querySelector(HIDES) !== null;
    }
  }
  if (!mark?.owned) visitOwn(el, root, out, st & ~GENERATES, tag, mark);
  trip.generators = before;
  if (trip.paused) return;
  if (trip.owners && el.hasAttribute('aria-owns')) {
    let passed = !mark?.owned;
    for (const owned of byIds(el, attr(el, 'aria-owns'))) {
      if (!(passed = passed || owned === mark.next) || trip.owned.get(owned) !== el) continue;
      visit(owned, out, st & ~GENERATES, true);
      if (trip.paused) { hold(el, owned, out, true); return; }
    }
  }
  if (st & AFTER) out.push(generated(el, '::after'));
};

const visitOwn = (el, root, out, st, tag, mark) => {
  if (tag === 'slot') {
    let passed = !mark;
    for (const node of contentsOf(el)) {
      if (!(passed = passed || node === mark.next)) continue;
      child(node, out, st);
      if (trip.paused) { hold(el, node, out, false); return; }
    }
    return;
  }
  const shut = tag === 'details' && !el.open; // what is in it may be shown all the same: its summary
  for (let node = mark ? mark.next : (root || el).firstChild; node; node = node.nextSibling) {
    if (shut && !(node.nodeType === 1 && node.checkVisibility())) continue;
    child(node, out, st);
    if (trip.paused) { hold(el, node, out, false); return; }
  }
};

const child = (node, out, st) => {
  const type = node.nodeType;
  if (type === 1) visit(node, out, st);
  else if (type === 3 && st & VISIBLE) {
    if (trip.room < 0) return;
    const data = node.data;
    trip.room -= data.length;
    out.push(st & PRE || !data.includes('\n') ? data : data.replace(/\n/g, ' '));
  }
};

// GRABS are the pointers of what is dragged, or dragged from.
const GRABS = new Map([['grab', 1024], ['move', 2048], ['crosshair', 4096]]);

// SEEN asks whether an element has a box and is not made invisible.
const SEEN = { visibilityProperty: true };

const border = (out) => { if (out.length && out[out.length - 1] !== '\n') out.push('\n'); };

function visit(el, out, above, viaOwner = false) {
  if (trip.late || trip.paused || (++trip.steps & trip.every) === 0 && stops()) return;
  const tag = el.localName;
  const bits = bitsOfTag(tag);
  if (bits & SKIP || (trip.owners && !viaOwner && trip.owned.has(el))) return;
  if (tag === 'br') { out.push('\n'); return; }
  const plain = !el.hasAttributes() && tag !== 'body';
  if (!plain && trip.hides) {
    if (attr(el, 'aria-hidden') === 'true' && tag !== 'body' && tag !== 'html') return;
    if (el.hasAttribute('inert') && !(trip.modal && holds(el, trip.modal))) return;
  }
  let st = above & (ACTED | PRE | SHUT | DISABLED | CONTROL | EDITABLE);
  let style = null;
  let block = false;
  if (bits & CONTROLS && !(st & SHUT) && el.checkVisibility(SEEN) && bitsOfRole(roleOf(el, tag)) & ACTS) {
    // It becomes an entry, whatever its style: neither borders nor the pointer matter.
    st |= VISIBLE;
  } else {
    style = getComputedStyle(el);
    const display = style.display;
    if (display === 'none') return;
    if (display === '') { if (!(st & SHUT)) unslotted(el); return; }
    if (style.visibility === 'visible') st |= VISIBLE;
    if (!(st & ACTED)) { const { cursor } = style; if (cursor === 'pointer') st |= POINTER; else st |= GRABS.get(cursor) ?? 0; }
    block = display !== 'inline' && display !== 'contents' && !display.startsWith('inline');
  }
  if (trip.depth > MAX_DEPTH) { out.push('\n', el.innerText ?? '', '\n'); return; }
  if (el === trip.modal) st &= ~SHUT;
  if (tag === 'pre') st |= PRE;
  if (trip.generators !== none) st |= trip.generators(el);
  if (block && !resumes(el)) border(out);
  trip.depth++;
  const { depth, generators } = trip;
  try {
    if (st & SHUT) visitAll(el, out, st & ~VISIBLE, tag, bits);
    else element(el, tag, bits, style, st, above, out, plain);
  } catch {
    // An element of another namespace that only has the name of a control.
    trip.depth = depth;
    trip.generators = generators;
    if (depth < MAX_DEPTH / 2) visitAll(el, out, st);
  }
  trip.depth--;
  if (block && !trip.paused) border(out);
}

// unslotted is an element that no slot takes in: its parent has a shadow root,
// perhaps a closed one.
const unslotted = (el) => {
  const p = el.parentElement;
  if (p && !trip.hosts.some(([host]) => host === p)) mayHost(p, p.localName);
};

// ACTIVE is what may be acted on, or made not to be, by an attribute.
const ACTIVE = '[contenteditable],[tabindex],[draggable],[onclick],[aria-sort],[aria-disabled]';
const HIDES = '[aria-hidden],[inert]';

// element adds el to out as an entry, or its contents when it is only layout.
const element = (el, tag, bits, style, st, above, out, plain) => {
  const first = el.firstElementChild;
  const role = plain && (tag === 'div' || tag === 'span') ? 'generic' : roleOf(el, tag);
  if (tag === 'label') { label(el, st, out); return; }
  const traits = bitsOfRole(role);
  const acts = (traits & ACTS) !== 0;
  let editable = false;
  let clickable = false;
  if (!plain && (tag === 'a' || tag === 'body' || el.matches(ACTIVE))) {
    const ce = attr(el, 'contenteditable');
    editable = ce !== null && ce !== 'false' && !(above & EDITABLE);
    if (tag === 'body' && document.designMode === 'on') editable = true;
    if (editable) st |= EDITABLE;
    clickable = !acts && ((el.hasAttribute('tabindex') && el.tabIndex >= 0) || attr(el, 'draggable') === 'true' || el.hasAttribute('onclick') || el.hasAttribute('aria-sort') ||
      (tag === 'a' && scripted(el)));
    if (isTrue(el, 'aria-disabled')) st |= DISABLED;
  }
  const pointed = (st & POINTER) !== 0 && !(above & (ACTED | CONTROL)) && tag !== 'html' && tag !== 'body' &&
    ((above & POINTER) === 0 || piece(el, style.display));
  const place = trip.drags && style !== null && traits & FOLDS && tag !== 'body' && framed(style);
  const grabbed = (st & GRAB & ~above) !== 0 && !(above & (ACTED | CONTROL)) && tag !== 'html' && tag !== 'body';
  const boxed = !acts && (editable || clickable || pointed || grabbed || place);
  if (first === null) {
    if (bits & ROOTED && (el.firstChild === null || bits & OWN)) mayHost(el, tag);
  } else {
    if ((style ?? getComputedStyle(el)).contentVisibility === 'hidden') return;
    // A first child that is never shown cannot tell that it is not in a slot.
    if (bits & OWN || (bits & ROOTED && bitsOfTag(first.localName) & SKIP && getComputedStyle(first).display === '')) mayHost(el, tag);
  }
  if (!boxed && traits & FOLDS) {
    const name = plain || role === 'none' || role === 'generic' ? '' : bound(squeeze(attr(el, 'aria-label') || ''));
    if (name && first !== null && st & VISIBLE) entry(el, { tag, bits, role, traits, acts, boxed, editable, pointed, plain, first }, st, out);
    else if (name) out.push(name);
    else visitAll(el, out, st, tag, bits);
    return;
  }
  if (!(st & VISIBLE)) { visitAll(el, out, st, tag, bits); return; }
  entry(el, { tag, bits, role, traits, acts, boxed, editable, pointed, plain, first }, st, out);
};

// framed tells boxes that are seen as places: where something can be dragged,
// one of them may be where to.
const framed = (style) => style.display !== 'inline' && style.display !== 'contents' &&
  ((style.borderTopStyle !== 'none' && style.borderTopWidth !== '0px') || !CLEAR.has(style.backgroundColor));

const CLEAR = new Set(['rgba(0, 0, 0, 0)', 'transparent']);

// scripted tells links without an address that a script makes something of,
// such as the arrows of calendars, from the anchors of old pages.
const scripted = (el) => !el.hasAttribute('href') && !el.hasAttribute('name') && (el.hasAttribute('class') || el.hasAttribute('title'));

// piece tells the parts of a box with a hand for a pointer that are things to
// press of their own: short, and side by side like the buttons of a bar.
const piece = (el, shown) => {
  if (shown === 'inline' || shown === 'contents' || !short(el)) return false;
  for (const other of [el.previousElementSibling, el.nextElementSibling]) if (other && short(other) && beside(el, other)) return true;
  return false;
};

const short = (el) => {
  if (el.childElementCount >= 4) return false;
  const texts = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
  let s = '';
  while (texts.nextNode()) if ((s += texts.currentNode.data).length >= 60) return false;
  return s.trim() !== '';
};

const beside = (a, b) => {
  const p = a.getBoundingClientRect();
  const q = b.getBoundingClientRect();
  return (p.right <= q.left + 1 || q.right <= p.left + 1) && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > Math.min(p.height, q.height) / 2;
};

// Entry is one entry of the outline while it is made.
class Entry {
  constructor(role, name, states) {
    this.role = role;
    this.name = name;
    this.states = states;
    this.number = 0;
    this.value = '';
    this.url = '';
    this.flags = '';
    this.kids = [];
  }
}

const entry = (el, kind, st, out) => {
  const { tag, bits, role, traits, acts, boxed, plain } = kind;
  const disabled = (acts || tag === 'fieldset') && ((st & DISABLED) !== 0 || disabledHere(el, tag));
  const other = !plain && (el.hasAttribute('aria-label') || labelledBy(el) !== null);
  // Nothing but text is in it, and none that a style sheet adds.
  const bare = kind.first === null && !(st & GENERATES) && tag !== 'slot' && !(bits & ROOTED && rootOf(el)) && !(trip.owners && el.hasAttribute('aria-owns'));
  let named;
  if (traits & FOLDS || role === 'generic' || role === 'paragraph') named = other ? bound(squeeze(attr(el, 'aria-label') || '')) : '';
  else named = !other && bare && traits & BY_CONTENT && !(bits & TITLED) ? leafName(el, kind) : shortName(el, kind, other);
  const node = new Entry(traits & FOLDS && (boxed || !named) ? 'generic' : role, named, states(el, tag, role, disabled, plain));
  if (acts || boxed) node.flags = 'i';
  if (kind.editable && role !== 'textbox') node.states += ' [editable]';
  if (el === trip.active) node.states += ' [active]';
  if (acts || boxed || traits & PLACE || (trip.drags && role !== 'paragraph' && !(traits & FOLDS)) || ((st & (POINTER | ACTED)) === POINTER && role !== 'paragraph') || (role === 'group' && tag === 'details')) node.number = numberOf(el);
  if (acts) st |= ACTED;
  const special = SPECIAL[tag];
  const full = special !== undefined && special(el, node, st);
  if (!full && bare && traits & SAYS_ALL && named && !other) { // its name says it all
    node.value = lines(shownValue(el, tag, role));
    out.push(node);
    return;
  }
  if (!full) visitAll(el, node.kids, st, tag, bits);
  if (trip.paused) return;
  if (!node.value) node.value = lines(shownValue(el, tag, role));
  finish(el, node, kind, other, out);
};

// leafName is the name of an element that has only text in it and no label of
// its author's.
const leafName = (el, kind) => {
  if (kind.role === 'row' || kind.tag === 'button' && labelsOf(el)?.length) return shortName(el, kind, false);
  const text = squeeze(leafText(el));
  return text ? bound(text) : nameOf(el);
};

// shortName leaves out what the entry's content says anyway.
const shortName = (el, kind, other) => {
  const { role } = kind;
  if (!other && (kind.traits & CELL || role === 'row' || role === 'listitem')) {
    return role === 'row' || role === 'listitem' || kind.first ? '' : nameOf(el);
  }
  return nameOf(el);
};

const finish = (el, node, kind, other, out) => {
  const { tag, role, traits } = kind;
  let kids = tidy(node.kids);
  if (traits & SAYS_ALL && node.name) {
    kids = kids.filter((k) => typeof k === 'string' ? other && k.length > 2 && !node.name.includes(k) : holdsActed(k) || other);
  }
  if (role === 'img' && node.name) kids = kids.filter((k) => typeof k !== 'string' && holdsActed(k));
  if (role === 'figure' || tag === 'fieldset' || role === 'table') kids = kids.filter((k) => k !== node.name);
  if ((role === 'group' && tag !== 'details' || role === 'img') && !node.name && !node.flags) {
    out.push('\n', ...kids.flatMap((k) => [k, '\n']));
    return;
  }
  if (kids.length === 1 && typeof kids[0] === 'string') {
    const cell = (traits & CELL) !== 0;
    if (cell && !node.name) node.name = bound(kids[0]);
    else if (kids[0] !== node.name && !node.value) node.value = kids[0];
    if (node.value === kids[0] || node.name === kids[0] || cell) kids = [];
  }
  node.kids = kids;
  if (!node.name && !node.value && !kids.length && (node.flags === 'i' || traits & CELL) && !TYPES.has(tag) && !(kind.boxed && attr(el, 'title'))) node.states += looks(el);
  if (!node.name && kind.acts && TYPES.has(tag)) node.states += columnOf(el);
  const acted = node.flags !== '' || node.number !== 0 && traits & PLACE && role !== 'figure' && role !== 'img';
  if (!acted && !kids.length && !node.name && !node.value && !(traits & CELL && node.states) && role !== 'separator') return;
  if (role === 'paragraph' && !node.flags && !node.name && kids.length && kids.every((k) => typeof k !== 'string')) { out.push(...kids); return; }
  if (kind.pointed && !kind.acts && node.role === 'generic' && !node.name && kids.length === 1 && kids[0].flags === 'i' && kids[0].role !== 'generic') {
    out.push(kids[0]);
    return;
  }
  if (kind.boxed && node.role === 'generic' && !node.name && !node.value && !kids.length) {
    node.name = squeeze(attr(el, 'title') || '');
    if (!node.name && slight(el)) return;
  }
  out.push(node);
};

// slight tells a box of which nothing can be seen; drawings have no client size.
const slight = (el) => {
  if (el.clientWidth >= 2 && el.clientHeight >= 2) return false;
  if (!el.namespaceURI.endsWith('svg')) return true;
  const r = el.getBoundingClientRect();
  return r.width < 2 || r.height < 2;
};

const holdsActed = (k) => k.flags === 'i' || k.role === 'iframe' || k.kids.some((x) => typeof x !== 'string' && holdsActed(x));

// tidy joins inline pieces, splits at block borders, and drops white space.
const tidy = (items) => {
  if (items.length === 1 && typeof items[0] === 'string' && items[0].length < 2000 && !items[0].includes('\n')) {
    const s = squeeze(items[0]);
    return s ? [s] : [];
  }
  const out = [];
  let text = '';
  const flush = () => {
    if (!text) return;
    for (const piece of text.includes('\n') ? text.split('\n') : [text]) {
      let s = squeeze(piece);
      while (s.length > 2000) {
        let cut = s.lastIndexOf(' ', 2000);
        if (cut < 1000) { cut = 2000; const c = s.charCodeAt(cut - 1); if (c >= 0xd800 && c < 0xdc00) cut--; }
        out.push(s.slice(0, cut));
        s = s.slice(cut).trim();
      }
      if (s) out.push(s);
    }
    text = '';
  };
  for (const item of items) {
    if (typeof item !== 'string') { flush(); out.push(item); } else if (text || item !== '\n' && item !== ' ') text += item;
  }
  flush();
  return out;
};

// label leaves its text to the control that it names; when that control has no
// box of its own, the label stands for it.
const label = (el, st, out) => {
  const control = el.control;
  const shown = control && isShown(control) && !control.closest('[aria-hidden="true"],[inert]');
  const states_ = control && !shown && /^(checkbox|radio|file)$/.test(control.type);
  if (states_) {
    const role = roleOf(control);
    const node = new Entry(role, nameOf(control) || nameOf(el), states(control, 'input', role, disabledHere(control, 'input')));
    Object.assign(node, { number: numberOf(el), value: lines(shownValue(control, 'input', role)), flags: 'i' });
    visitAll(el, node.kids, st | ACTED);
    if (trip.paused) return;
    node.kids = tidy(node.kids).filter((k) => typeof k !== 'string');
    out.push(node);
    return;
  }
  if (!shown || control.hasAttribute('aria-label') || control.hasAttribute('aria-labelledby') || control.localName === 'button' || el.hasAttribute('aria-label') ||
    control.type === 'hidden' || !trip.whole) {
    visitAll(el, out, st | CONTROL);
    return;
  }
  const kids = [];
  visitAll(el, kids, st | CONTROL);
  if (trip.paused) return;
  for (const k of kids) if (typeof k !== 'string') out.push(k);
};

const write = (items, depth, out) => {
  for (const k of items) {
    if (out.length >= MAX_ENTRIES || trip.size > MAX_CHARS) { trip.full = true; return; }
    if (typeof k === 'string') { trip.size += k.length; out.push(depth + TEXT + k); continue; }
    trip.size += k.name.length + k.states.length + k.value.length + k.url.length;
    out.push(depth + FIELD + k.flags + FIELD + k.role + FIELD + k.number + FIELD + k.name + FIELD + k.states + FIELD + k.value);
    if (k.url) out.push((depth + 1) + ADDRESS + k.url);
    if (k.kids.length) write(k.kids, depth + 1, out);
  }
};
