// Roles: WAI-ARIA 1.2 and HTML-AAM.
const ROLES = new Set(('alert alertdialog application article banner blockquote button caption cell checkbox code ' +
  'columnheader combobox complementary contentinfo definition deletion dialog directory document emphasis feed figure ' +
  'form generic grid gridcell group heading img image insertion link list listbox listitem log main mark marquee math menu ' +
  'menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation ' +
  'progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton ' +
  'status strong subscript suggestion superscript switch tab table tablist tabpanel term textbox time timer toolbar ' +
  'tooltip tree treegrid treeitem comment').split(' '));

const ACTED_ON = new Set(('button checkbox combobox gridcell link listbox menuitem menuitemcheckbox menuitemradio option ' +
  'radio scrollbar searchbox slider spinbutton switch tab textbox treeitem file color').split(' '));

const GLOBAL_ARIA = ['aria-atomic', 'aria-busy', 'aria-controls', 'aria-current', 'aria-describedby', 'aria-details',
  'aria-flowto', 'aria-keyshortcuts', 'aria-label', 'aria-labelledby', 'aria-live', 'aria-owns', 'aria-relevant',
  'aria-roledescription'];

const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', number: 'spinbutton', file: 'file', color: 'color', hidden: '',
};

const SIMPLE = new Map(Object.entries({
  div: 'generic', span: 'generic', a: null, area: null, aside: null, header: null, footer: null, form: null, section: null,
  img: null, input: null, li: null, select: null, summary: null, table: null, tbody: 'rowgroup', thead: 'rowgroup',
  tfoot: 'rowgroup', tr: null, td: null, th: null, svg: null, embed: 'iframe', object: 'iframe',
  article: 'article', blockquote: 'blockquote', button: 'button', caption: 'caption', code: 'code', dd: 'definition',
  del: 'deletion', details: 'group', dfn: 'term', dialog: 'dialog', dt: 'term', em: 'emphasis', fieldset: 'group',
  figcaption: 'caption', figure: 'figure', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading',
  h6: 'heading', hr: 'separator', ins: 'insertion', legend: 'legend', main: 'main', mark: 'mark', math: 'math',
  menu: 'list', meter: 'meter', nav: 'navigation', ol: 'list', optgroup: 'group', option: 'option', output: 'status',
  p: 'paragraph', progress: 'progressbar', search: 'search', strong: 'strong', sub: 'subscript', sup: 'superscript',
  textarea: 'textbox', time: 'time', ul: 'list', iframe: 'iframe', frame: 'iframe',
  canvas: 'canvas', video: 'video', audio: 'audio', address: 'group', hgroup: 'group', dir: 'list', s: 'deletion', dl: null,
  g: null, image: null, circle: null, ellipse: null, line: null, path: null, polygon: null, polyline: null, rect: null,
}));

const focusable = (el, tag) => {
  if (el.hasAttribute('tabindex')) return true;
  switch (tag) {
    case 'a': case 'area': return el.hasAttribute('href');
    case 'button': case 'input': case 'select': case 'textarea': return !el.disabled;
    case 'summary': case 'iframe': return true;
  }
  const ce = attr(el, 'contenteditable');
  return ce !== null && ce !== 'false';
};

const sectioned = (el) => closest(flatParent(el), (p) => /^(article|aside|main|nav|section)$/.test(p.localName) ||
  /^(article|complementary|main|navigation|region)$/.test(attr(p, 'role') || ''));

const insideSection = (el) => closest(flatParent(el), (p) => /^(article|aside|nav|section)$/.test(p.localName)) !== null;

const named = (el) => {
  if ((attr(el, 'aria-label') || '').trim() || (attr(el, 'title') || '').trim()) return true;
  const by = labelledBy(el);
  return by !== null && byIds(el, by).length > 0;
};

const inputRole = (el) => {
  const type = el.type;
  if (type in INPUT_ROLES) return type === 'checkbox' && el.hasAttribute('switch') ? 'switch' : INPUT_ROLES[type];
  const list = el.hasAttribute('list') && el.list !== null && /^(text|search|tel|url|email)$/.test(type);
  if (list) return 'combobox';
  return type === 'search' ? 'searchbox' : 'textbox';
};

// layoutTable tells tables that only arrange things.
let tableKind = new WeakMap(); // for one reading
const layoutTable = (table) => {
  if (tableKind.has(table)) return tableKind.get(table);
  let layout = false;
  const role = attr(table, 'role');
  if (role === 'none' || role === 'presentation') layout = true;
  else if (!role && !table.caption && !table.tHead && !table.tFoot && !named(table) && !(Number(table.border) > 0) &&
    !table.querySelector('th,colgroup,col,[scope],[headers]')) {
    const rows = table.rows;
    let width = 0;
    for (let i = 0; i < rows.length && i < 20; i++) width = Math.max(width, rows[i].cells.length);
    layout = rows.length < 2 || width < 2 || table.querySelector('table') !== null || table.parentElement?.closest('table') !== null;
  }
  tableKind.set(table, layout);
  return layout;
};

// tableOf finds the table that a cell or row is of.
const tableOf = (el) => {
  const native = el.parentElement?.closest('table,[role]');
  if (native && native.localName === 'table') return native;
  return closest(flatParent(el), (p) => p.localName === 'table' || /^(table|grid|treegrid)$/.test(attr(p, 'role') || ''));
};

// partsOf tells what cells of a table are: '' in one that only arranges
// things, 'grid' or 'table'.
const partsOf = (table) => {
  const role = attr(table, 'role') || '';
  if (table.localName === 'table' && layoutTable(table) && !/grid|table/.test(role)) return '';
  return /grid/.test(role) ? 'grid' : 'table';
};

let kinParts = new WeakMap(); // parent → what its cells or rows are, for one reading
let rowHeads = new WeakMap(); // row → whether it has ordinary cells, for one reading

// partsAround tells what a cell or row is part of: '' for nothing.
const partsAround = (el, kin) => {
  let parts = kinParts.get(kin);
  if (parts === undefined) {
    const table = tableOf(el);
    parts = table ? partsOf(table) : '';
    kinParts.set(kin, parts);
  }
  return parts;
};

const tablePart = (el, tag) => {
  const kin = el.parentElement;
  const parts = kin ? partsAround(el, kin) : '';
  if (!parts) return 'generic';
  if (tag === 'tr') return 'row';
  if (tag === 'td') return parts === 'grid' ? 'gridcell' : 'cell';
  const scope = (attr(el, 'scope') || '').toLowerCase();
  if (scope.startsWith('row')) return 'rowheader';
  if (scope.startsWith('col')) return 'columnheader';
  let plain = rowHeads.get(kin);
  if (plain === undefined) {
    plain = kin.querySelector(':scope > td') !== null && !el.closest('thead');
    rowHeads.set(kin, plain);
  }
  return plain ? 'rowheader' : 'columnheader';
};

const svgNamed = (el) => {
  if (named(el)) return true;
  for (const c of el.children) if (c.localName === 'title' && c.textContent.trim()) return true;
  return false;
};

const nativeRole = (el, tag) => {
  const known = SIMPLE.get(tag);
  if (known) return known;
  if (known === undefined) return 'generic';
  switch (tag) {
    case 'a': return el.hasAttribute('href') || el.hasAttribute('xlink:href') ? 'link' : 'generic';
    case 'area': return el.hasAttribute('href') ? 'link' : 'generic';
    case 'aside': return !insideSection(el) || named(el) ? 'complementary' : 'generic';
    case 'header': return sectioned(el) ? 'generic' : 'banner';
    case 'footer': return sectioned(el) ? 'generic' : 'contentinfo';
    case 'form': return named(el) ? 'form' : 'generic';
    case 'section': return named(el) ? 'region' : 'generic';
    case 'img': {
      const alt = attr(el, 'alt');
      return alt !== null && !alt.trim() && !named(el) ? 'none' : 'img';
    }
    case 'input': return inputRole(el);
    case 'li': {
      const p = flatParent(el);
      const role = p && p.nodeType === 1 ? attr(p, 'role') : null;
      if (role === 'none' || role === 'presentation') return 'generic';
      return 'listitem';
    }
    case 'select': return el.multiple || el.size > 1 ? 'listbox' : 'combobox';
    case 'summary': return el.parentElement?.localName === 'details' ? 'button' : 'generic';
    case 'table': return layoutTable(el) ? 'generic' : 'table';
    case 'tr': case 'td': case 'th': return tablePart(el, tag);
    case 'svg': return svgNamed(el) ? 'img' : 'generic';
    case 'dl': return named(el) ? 'list' : 'generic';
    case 'g': case 'image': case 'circle': case 'ellipse': case 'line': case 'path': case 'polygon': case 'polyline': case 'rect':
      if (!el.namespaceURI.endsWith('svg') || !svgNamed(el)) return 'generic';
      return tag === 'g' ? 'group' : tag === 'image' ? 'img' : 'graphics-symbol';
  }
  return 'generic';
};

const roleOf = (el, tag = el.localName) => {
  const given = attr(el, 'role');
  if (given) {
    for (const token of given.toLowerCase().split(/\s+/)) {
      if (!ROLES.has(token)) continue;
      if (token === 'none' || token === 'presentation') {
        if (focusable(el, tag) || GLOBAL_ARIA.some((a) => el.hasAttribute(a))) break;
        return 'none';
      }
      if (token === 'image') return 'img';
      if (token === 'directory') return 'list';
      if (token === 'cell' && el.parentElement && partsAround(el, el.parentElement) === 'grid') return 'gridcell';
      if ((token === 'region' || token === 'form') && !named(el)) continue;
      if (tag === 'input' && el.type === 'file') break;
      return token;
    }
  }
  return nativeRole(el, tag);
};
