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
        for (const s of rule.selectorText.split(',')) if (GENERATED.test(s)) out.selectors.push(s.replace(/::?(before|after)\b/gi, '').trim() || '*');
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
      facts = { length: rules.length, all: false, selectors: [] };
      readRules(rules, facts);
      sheetFacts.set(sheet, facts);
    }
  } catch {
    facts = { all: true, selectors: [] };
  }
  if (facts.all) out.all = true;
  for (const s of facts.selectors) out.selectors.push(s);
};

let generatedMay = new WeakMap(); // root → test of its elements, for one reading

const none = () => false;
const all = () => true;

// generatorsIn tells which elements of a document or shadow tree may have
// generated text.
const generatorsIn = (root) => {
  let test = generatedMay.get(root);
  if (!test) {
    const out = { all: false, selectors: [] };
    for (const s of root.styleSheets || []) readSheet(s, out);
    for (const s of root.adoptedStyleSheets || []) readSheet(s, out);
    if (out.selectors.some((s) => /:host|::|&/.test(s))) out.all = true;
    const list = out.selectors.join(',');
    try { if (list) document.documentElement.matches(list); } catch { out.all = true; }
    test = out.all ? all : list ? (e) => e.matches(list) : none;
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
  let text = '';
  for (const m of content.matchAll(/"((?:[^"\\]|\\.)*)"/g)) text += m[1].replace(/\\(.)/g, '$1');
  text = text.replace(/[\ue000-\uf8ff]/g, '');
  return (style.display.startsWith('inline') && !slash) || !text ? text : ' ' + text + ' ';
};

const quietlyHidden = (el) => {
  const s = getComputedStyle(el);
  return s.display === 'none' || s.display === '' || s.visibility !== 'visible' || attr(el, 'aria-hidden') === 'true';
};

const REPLACED = new Set(['img', 'svg', 'input', 'select', 'textarea', 'button', 'canvas', 'video', 'iframe', 'object', 'meter', 'progress']);

const contentText = (el, o) => {
  const generates = generatorsIn(el.getRootNode())(el);
  const owns = attr(el, 'aria-owns');
  const shallow = el.firstElementChild === null && !rootOf(el) && el.localName !== 'slot';
  if (shallow && !generates && !owns) return el.textContent;
  let out = generates ? generated(el, '::before') : '';
  const pieces = [...contentsOf(el)];
  if (owns) pieces.push(...byIds(el, owns));
  const inner = o.inside && !o.direct ? o : { seen: o.seen, hidden: o.hidden, referred: o.referred, inside: true, direct: false };
  for (const node of pieces) {
    if (node.nodeType === 3) { out += node.data; continue; }
    if (node.nodeType !== 1) continue;
    if (node.localName === 'br') { out += ' '; continue; }
    const style = getComputedStyle(node);
    const display = style.display;
    if (!o.hidden && (display === 'none' || display === '' || style.visibility !== 'visible' || attr(node, 'aria-hidden') === 'true')) continue;
    const text = nameFrom(node, inner);
    if (!text) continue;
    out += (display === 'inline' && !REPLACED.has(node.localName)) || display === 'contents' ? text : ' ' + text + ' ';
  }
  return generates ? out + generated(el, '::after') : out;
};

const embeddedValue = (el, role) => {
  switch (role) {
    case 'textbox': case 'searchbox':
      if (el.type === 'password') return '•'.repeat(el.value.length);
      return 'value' in el ? el.value : contentText(el, { seen: new Set(), inside: true });
    case 'combobox': case 'listbox':
      if (el.localName === 'select') return [...el.selectedOptions].map((x) => x.label || x.textContent).join(' ');
      return 'value' in el ? el.value : null;
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
    case 'svg': return childText(el, 'title', o) || (role === 'img' ? attr(el, 'xlink:title') || '' : '');
    case 'title': case 'desc': return el.namespaceURI.endsWith('svg') ? el.textContent : '';
  }
  return '';
};

// nameFrom walks the steps 2A to 2I. o.inside: on the way through the content
// of something named; o.direct: named by a reference; o.seen: not twice.
function nameFrom(el, o) {
  if (o.seen.has(el) || o.seen.size > 4000) return '';
  const tag = el.localName;
  if (tag === 'script' || tag === 'style' || tag === 'template' || tag === 'noscript') return '';
  if (!o.hidden && o.direct && quietlyHidden(el)) return '';
  o.seen.add(el);
  const role = roleOf(el, tag);
  const by = attr(el, 'aria-labelledby');
  if (by && !o.referred) {
    const texts = [];
    for (const target of byIds(el, by)) {
      const seen = new Set();
      const text = squeeze(nameFrom(target, { seen, inside: true, direct: true, referred: true, hidden: quietlyHidden(target) }));
      if (text) texts.push(text);
    }
    if (texts.length) return texts.join(' ');
  }
  if (o.inside && !o.direct) {
    const value = embeddedValue(el, role);
    if (value !== null) return value;
  }
  const label = (attr(el, 'aria-label') || '').trim();
  if (label && !(NO_NAME.has(role) && !o.inside)) return label;
  if (role !== 'none' || tag === 'img') {
    const native = nativeName(el, tag, role, o);
    if (native.trim()) return native;
  }
  if (o.inside || FROM_CONTENT.has(role)) {
    if (tag !== 'iframe' && tag !== 'select' && tag !== 'textarea' && tag !== 'svg' && tag !== 'object') {
      const text = contentText(el, o);
      if (text.trim()) return text;
    } else if (tag === 'svg') {
      const text = contentText(el, o);
      if (text.trim()) return text;
    }
  }
  const title = attr(el, 'title');
  if (title && title.trim() && !(NO_NAME.has(role) && !o.inside)) return title;
  if (tag === 'input' || tag === 'textarea' || el.isContentEditable) {
    return attr(el, 'placeholder') || attr(el, 'aria-placeholder') || '';
  }
  return '';
}

const nameOf = (el) => bound(squeeze(nameFrom(el, { seen: new Set() })));
