// Names: AccName 1.2.
const FROM_CONTENT = new Set(('button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox ' +
  'menuitemradio option radio row rowheader switch tab tooltip treeitem').split(' '));

const NO_NAME = new Set(['caption', 'code', 'deletion', 'emphasis', 'generic', 'insertion', 'none', 'paragraph',
  'presentation', 'strong', 'subscript', 'superscript', 'mark', 'legend']);

// Generated text. Style sheets that can be read say which elements may have
// some; where one cannot be read, every element is asked.
const sheetFacts = new WeakMap();
const GENERATED = /::?(before|after)\b/i;

// SILENT is content that says nothing: none, or the signs of an icon font, of
// which a sheet may have thousands.
const SILENT = /^(none|normal|"[\ue000-\uf8ff]*"|'')$/;

const readRules = (rules, out) => {
  for (const rule of rules) {
    if (rule.selectorText !== undefined) {
      if (GENERATED.test(rule.selectorText) && rule.style.content && !SILENT.test(rule.style.content)) {
        if (rule.parentRule && rule.parentRule.selectorText !== undefined) out.all = true;
        for (const s of rule.selectorText.split(',')) {
          const side = s.match(GENERATED);
          if (side) out[side[1].toLowerCase()].push(s.replace(/::?(before|after)\b/gi, '').trim() || '*');
        }
      }
      if (rule.cssRules && rule.cssRules.length) readRules(rule.cssRules, out);
    } else if (rule.styleSheet) readSheet(rule.styleSheet, out);
    else if (rule.cssRules) readRules(rule.cssRules, out);
  }
};

const readSheet = (sheet, out) => {
  let facts;
  try {
    const rules = sheet.cssRules;
    facts = sheetFacts.get(sheet);
    if (!facts || facts.length !== rules.length) {
      facts = { length: rules.length, all: false, before: [], after: [] };
      readRules(rules, facts);
      sheetFacts.set(sheet, facts);
    }
  } catch {
    facts = { all: true, before: [], after: [] };
  }
  if (facts.all) out.all = true;
  for (const side of ['before', 'after']) for (const s of facts[side]) out[side].push(s);
};

let generatedMay = new WeakMap(); // root → test of its elements, for one reading

// What an element may have generated, as bits that a walk carries along.
const BEFORE = 256;
const AFTER = 512;
const GENERATES = BEFORE | AFTER;

const none = () => 0;
const all = () => GENERATES;

// generatorsIn tells which elements of a document or shadow tree may have
// generated text, and where. Asking for the style of a part that there is not
// is dear.
const generatorsIn = (root) => {
  let test = generatedMay.get(root);
  if (!test) {
    const out = { all: false, before: [], after: [] };
    for (const s of root.styleSheets || []) readSheet(s, out);
    for (const s of root.adoptedStyleSheets || []) readSheet(s, out);
    if ([...out.before, ...out.after].some((s) => /:host|::|&/.test(s))) out.all = true;
    const [before, after, list] = [out.before, out.after, [...out.before, ...out.after]].map((l) => l.join(','));
    try { if (list) document.documentElement.matches(list); } catch { out.all = true; }
    test = out.all ? all : !list ? none : !after ? (e) => e.matches(before) ? BEFORE : 0 : !before ? (e) => e.matches(after) ? AFTER : 0 :
      (e) => e.matches(list) ? (e.matches(before) ? BEFORE : 0) | (e.matches(after) ? AFTER : 0) : 0;
    generatedMay.set(root, test);
  }
  return test;
};

const generated = (el, which) => {
  const style = getComputedStyle(el, which);
  let content = style.content;
  if (!content || content === 'none' || content === 'normal') return '';
  const slash = content.match(/"\s*\/\s*(".*)$/) || content.match(/\)\s*\/\s*(".*)$/);
  if (slash) content = slash[1];
  if (style.display === 'none' || style.visibility !== 'visible') return '';
  let text = content.includes('counter') && !slash ? counted(el, which) : undefined;
  if (text === undefined) {
    text = '';
    for (const m of content.matchAll(/"((?:[^"\\]|\\.)*)"/g)) text += m[1].replace(/\\(.)/g, '$1');
  }
  text = text.replace(/[\ue000-\uf8ff]/g, '');
  return (style.display.startsWith('inline') && !slash) || !text ? text : ' ' + text + ' ';
};

const quietlyHidden = (el) => {
  const s = getComputedStyle(el);
  return s.display === 'none' || s.display === '' || s.visibility !== 'visible' || attr(el, 'aria-hidden') === 'true';
};

// What one name gathers at most. It is printed far shorter; a page may have
// thousands of things named by one long text.
const NAME_TEXT = 4 * PAGE_STRING;
const NAME_PARTS = 1000;

const clipped = (data) => data.length > NAME_TEXT ? data.slice(0, NAME_TEXT) : data;

// leafText is the text of an element that has only text in it.
const leafText = (el) => {
  let node = el.firstChild;
  if (!node) return '';
  if (!node.nextSibling) return node.nodeType === 3 ? clipped(node.data) : '';
  let out = '';
  for (; node && out.length < NAME_TEXT; node = node.nextSibling) if (node.nodeType === 3) out += clipped(node.data);
  return out;
};

let ownedMaps = new WeakMap(); // root → element → its owner, for one reading

// hasBox tells whether an element is drawn; one that is "contents" has no box
// of its own, but what is in it has.
const hasBox = (el) => el.checkVisibility(SEEN) || getComputedStyle(el).display === 'contents';

// turns tells whether an owner is, by way of what owns it, inside of what it
// would own.
const turns = (map, el, owner) => {
  for (let n = 0; owner; owner = map.get(owner), n++) if (n > 100 || el.contains(owner)) return true;
  return false;
};

// ownedIn finds what aria-owns takes to another place. Who is hidden owns
// nothing, and what is hidden is not owned.
const ownedIn = (root) => {
  let map = ownedMaps.get(root);
  if (map) return map;
  map = new Map();
  for (const owner of root.querySelectorAll('[aria-owns]')) {
    if (map.size > MAX_OWNED) break;
    if (!hasBox(owner) || owner.closest('[aria-hidden="true"]')) continue;
    for (const el of byIds(owner, attr(owner, 'aria-owns'))) if (!map.has(el) && !turns(map, el, owner) && hasBox(el)) map.set(el, owner);
  }
  ownedMaps.set(root, map);
  return map;
};

// piecesOf is what an element holds, aria-owns counted.
const piecesOf = (el) => {
  const root = el.getRootNode();
  const owned = root.querySelectorAll ? ownedIn(root) : new Map();
  if (!owned.size) return contentsOf(el);
  const out = [];
  for (const node of contentsOf(el)) if (!owned.has(node)) out.push(node);
  if (el.hasAttribute('aria-owns')) for (const node of byIds(el, attr(el, 'aria-owns'))) if (owned.get(node) === el) out.push(node);
  return out;
};

// Widgets and parts of the page inside of something named, whose content is
// not a part of its name.
const NOT_IN_NAMES = new Set('menu menubar tree treegrid grid tablist radiogroup toolbar dialog alertdialog'.split(' '));

const REPLACED = new Set(['img', 'svg', 'input', 'select', 'textarea', 'button', 'canvas', 'video', 'iframe', 'object', 'meter', 'progress']);

const contentText = (el, o) => {
  const generates = generatorsIn(el.getRootNode())(el);
  if (!generates && el.firstElementChild === null && !rootOf(el) && el.localName !== 'slot' && !el.hasAttribute('aria-owns')) {
    return o.unseen ? '' : leafText(el);
  }
  let out = generates & BEFORE && !o.unseen ? generated(el, '::before') : '';
  const inner = o.inside && !o.direct && !o.unseen ? o : { seen: o.seen, hidden: o.hidden, referred: o.referred, origin: o.origin, inside: true };
  const branch = !o.inside && attr(el, 'role') === 'treeitem';
  for (const node of piecesOf(el)) {
    if (out.length > NAME_TEXT || o.seen.size > NAME_PARTS) break;
    if (node.nodeType === 3) { if (!o.unseen) out += clipped(node.data); continue; }
    if (node.nodeType !== 1) continue;
    if (node.localName === 'br') { out += ' '; continue; }
    const style = getComputedStyle(node);
    const display = style.display;
    if (!o.hidden) {
      if (display === 'none' || display === '' || attr(node, 'aria-hidden') === 'true') continue;
      if (style.visibility !== 'visible') { // what is in it may be seen all the same
        if (node.firstElementChild && !o.seen.has(node)) { o.seen.add(node); out += contentText(node, { ...inner, unseen: true }); }
        continue;
      }
    }
    if (branch && attr(node, 'role') === 'group') continue; // what is below it in its tree
    const text = nameFrom(node, inner);
    const inline = (display === 'inline' && !REPLACED.has(node.localName)) || display === 'contents';
    out += inline ? text : ' ' + text + ' ';
  }
  return generates & AFTER && !o.unseen ? out + generated(el, '::after') : out;
};

// chosenIn is the text of what is chosen in a list made of other elements.
const chosenIn = (el, o) => {
  const out = [];
  for (const option of el.querySelectorAll('[role~="option"][aria-selected="true"]')) {
    if (out.length < MAX_CHOSEN) out.push(squeeze(nameFrom(option, { seen: o.seen, inside: true })));
  }
  return out.join(' ');
};

const MAX_CHOSEN = 50;

const embeddedValue = (el, role, o) => {
  switch (role) {
    case 'textbox': case 'searchbox':
      if (el.type === 'password') return '•'.repeat(el.value.length);
      return 'value' in el ? clipped(el.value) : contentText(el, { seen: o.seen, inside: true });
    case 'combobox': case 'listbox': {
      if (el.localName === 'select') {
        const out = [];
        for (const x of el.selectedOptions) if (out.push(x.label || clipped(x.textContent)) === MAX_CHOSEN) break;
        return out.join(' ');
      }
      if ('value' in el) return clipped(el.value);
      const chosen = chosenIn(el, o);
      return chosen || role === 'listbox' ? chosen : contentText(el, { seen: o.seen, inside: true });
    }
    case 'slider': case 'spinbutton': case 'scrollbar': case 'progressbar': case 'meter':
      return attr(el, 'aria-valuetext') || attr(el, 'aria-valuenow') || ('value' in el ? String(el.value) : '');
  }
  return null;
};

let labelMaps = new WeakMap(); // root → control → its labels, for one reading

// labelsOf finds the labels of a control. The property of that name searches
// the whole document for each control, so a reading finds them all at once.
const labelsOf = (el) => {
  if (!trip) return el.labels;
  const root = el.getRootNode();
  let map = labelMaps.get(root);
  if (!map) {
    map = new Map();
    for (const l of root.querySelectorAll('label')) {
      const c = l.control;
      if (!c) continue;
      const known = map.get(c);
      if (known) known.push(l);
      else map.set(c, [l]);
    }
    labelMaps.set(root, map);
  }
  return map.get(el);
};

const forget = () => {
  counting = null;
  ownedMaps = new WeakMap();
  referredNames = new WeakMap();
  generatedMay = new WeakMap();
  labelMaps = new WeakMap();
  tableKind = new WeakMap();
  rowHeads = new WeakMap();
  kinParts = new WeakMap();
};

const labelText = (el, o) => {
  const labels = labelsOf(el);
  if (!labels || !labels.length) return '';
  const out = [];
  for (const l of labels) {
    if (quietlyHidden(l) && !o.hidden) continue;
    const text = squeeze(nameFrom(l, { seen: o.seen, inside: true }));
    if (text) out.push(text);
  }
  return out.join(' ');
};

const childText = (el, tag, o) => {
  for (const c of el.children) if (c.localName === tag) return tag === 'title' || !quietlyHidden(c) ? nameFrom(c, { seen: o.seen, inside: true }) : '';
  return '';
};

const nativeName = (el, tag, role, o) => {
  switch (tag) {
    case 'input':
      switch (el.type) {
        case 'submit': return labelText(el, o) || el.value || (el.hasAttribute('value') ? '' : 'Submit');
        case 'reset': return labelText(el, o) || el.value || (el.hasAttribute('value') ? '' : 'Reset');
        case 'button': return labelText(el, o) || el.value;
        case 'image': return labelText(el, o) || attr(el, 'alt') || attr(el, 'title') || attr(el, 'value') || 'Submit';
      }
      return labelText(el, o);
    case 'button': case 'select': case 'textarea': case 'meter': case 'output': case 'progress': return labelText(el, o);
    case 'img': case 'area': return attr(el, 'alt') || '';
    case 'fieldset': return childText(el, 'legend', o);
    case 'table': return el.caption ? nameFrom(el.caption, { seen: o.seen, inside: true }) : '';
    case 'figure': return childText(el, 'figcaption', o);
    case 'optgroup': return attr(el, 'label') || '';
    case 'option': return attr(el, 'label') || '';
    case 'a': return attr(el, 'xlink:title') || '';
    case 'g': case 'image': case 'circle': case 'ellipse': case 'line': case 'path': case 'polygon': case 'polyline': case 'rect': case 'text':
      return el.namespaceURI.endsWith('svg') ? childText(el, 'title', o) : '';
    case 'svg': return childText(el, 'title', o) || (role === 'img' ? attr(el, 'xlink:title') || '' : '');
    case 'title': case 'desc': return el.namespaceURI.endsWith('svg') ? el.textContent : '';
  }
  return '';
};

// labelledBy is what names an element by reference; many pages misspell it.
const labelledBy = (el) => attr(el, 'aria-labelledby') || attr(el, 'aria-labeledby');

let referredNames = new WeakMap(); // element → what it says when something is named by it, for one reading

// referredName is the text of an element that names another one.
const referredName = (target, el, o) => {
  const shared = trip !== null && !o.inside && !holds(target, el);
  let text = shared ? referredNames.get(target) : undefined;
  if (text === undefined) {
    const seen = o.inside ? o.seen : new Set();
    text = squeeze(nameFrom(target, { seen, inside: true, direct: true, referred: true, origin: el, hidden: quietlyHidden(target) }));
    if (shared) referredNames.set(target, text);
  }
  return text;
};

// nameFrom walks the steps 2A to 2I. o.inside: on the way through the content
// of something named; o.direct: named by a reference; o.origin: what is named
// by it; o.seen: not twice.
function nameFrom(el, o) {
  if (o.seen.has(el) || o.seen.size > NAME_PARTS) return '';
  const tag = el.localName;
  if (tag === 'script' || tag === 'style' || tag === 'template' || tag === 'noscript') return '';
  if (!o.hidden && o.direct && quietlyHidden(el)) return '';
  o.seen.add(el);
  const role = roleOf(el, tag);
  const by = o.referred ? null : labelledBy(el);
  if (by) {
    const texts = [];
    let length = 0;
    for (const target of byIds(el, by)) {
      const text = referredName(target, el, o);
      if (text) texts.push(text);
      if ((length += text.length) > NAME_TEXT) break;
    }
    if (texts.length) return texts.join(' ');
  }
  if (o.inside && el !== o.origin) {
    const value = embeddedValue(el, role, o);
    if (value || value !== null && role !== 'textbox' && role !== 'searchbox') return value;
  }
  const label = tag === 'slot' ? '' : (attr(el, 'aria-label') || '').trim();
  if (label && !(NO_NAME.has(role) && !o.inside)) return label;
  if (role !== 'none') {
    const native = nativeName(el, tag, role, o);
    if (native.trim()) return native;
  }
  let blank = '';
  if ((o.inside || FROM_CONTENT.has(role)) && !(NOT_IN_NAMES.has(role) && !o.direct) &&
    tag !== 'iframe' && tag !== 'select' && tag !== 'textarea' && tag !== 'object') {
    const text = contentText(el, o);
    if (text.trim()) return text;
    if (o.inside && text) blank = ' ';
  }
  const title = role === 'none' ? null : attr(el, 'title');
  if (title && title.trim() && !(NO_NAME.has(role) && !o.inside)) return title;
  if (tag === 'input' || tag === 'textarea' || role === 'textbox' || role === 'searchbox' || role === 'combobox') {
    return attr(el, 'placeholder') || attr(el, 'aria-placeholder') || '';
  }
  return blank;
}

const nameOf = (el) => bound(squeeze(nameFrom(el, { seen: new Set() })));
