// What something without any text looks like: icons by picture, sprite, font or
// style sheet, marks and colours. It is said as a state of what has neither name
// nor content, so that a bin can be told from a pen, and a tick from a cross.
const MAX_LOOKED = 3000; // entries of one walk
const LARGE = 200; // CSS pixels; what is larger is no icon
const MAX_PIECES = 12; // elements of one entry

// ICON finds the word behind the prefix of an icon set.
const ICON = /^(?:[a-z]+[-_])*?(?:icons?|ico|glyphicon|fa|bi|mdi|ti|ri|lucide|tabler|feather|ph|uil|bx|bxs|codicon|octicon|symbol)(?:[-_]+icon)?[-_]+([a-z][\w-]*)$/i;
const SETS = /^(?:fw|lg|xs|sm|md|xl|spin|solid|regular|light|thin|brands|root|svg|font\w*|size\w*|\d+x)$/i;
const DULL = /\d|[:[\]/]|^(?:svg|path|icons?|i|css|img|image|flex|inline|block|relative|absolute|rounded|shrink|text|fill|stroke)(?:-|$)/i;

const wordsOf = (s) => squeeze(s.replace(/[-_./:]+/g, ' ')).toLowerCase();

// fileOf is the name of a picture's file, without what builds add to it.
const fileOf = (url) => {
  if (!url || /^(data|blob|about):/i.test(url)) return '';
  const name = url.split(/[?#]/, 1)[0].split('/').pop().split('.')[0];
  return wordsOf(name.replace(/[-_][0-9a-f]{6,}$/i, ''));
};

const urlIn = (css) => { const m = /url\("([^"]*)"\)/.exec(css); return m ? fileOf(m[1]) : ''; };

// markOf is the word for one piece: what names its picture, or the class that
// an icon set or a page gave it.
const markOf = (el, tag, style) => {
  if (tag === 'img') return fileOf(el.currentSrc || el.src);
  if (tag === 'use') return wordsOf((attr(el, 'href') || attr(el, 'xlink:href') || '').split('#').pop());
  for (const name of ['data-icon', 'data-lucide', 'data-feather', 'data-action', 'icon']) {
    const given = attr(el, name);
    if (given) return wordsOf(given);
  }
  const own = tag === 'i' || tag === 'svg' || el.namespaceURI.endsWith('svg') && tag !== 'g';
  if (own && attr(el, 'data-testid')) return wordsOf(attr(el, 'data-testid'));
  let other = '';
  for (const token of el.classList) {
    const m = ICON.exec(token);
    if (m && !SETS.test(m[1])) return wordsOf(m[1]);
    if (own && !other && token.length > 2 && !DULL.test(token)) other = token;
  }
  return urlIn(style.backgroundImage) || urlIn(style.maskImage) || wordsOf(other);
};

const HUES = [[15, 'red'], [45, 'orange'], [70, 'yellow'], [165, 'green'], [195, 'cyan'], [255, 'blue'], [290, 'purple'], [345, 'pink'], [361, 'red']];

// hueOf is the word for a vivid colour; pale ones are what rows and pages wear.
const hueOf = (css) => {
  const m = /^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/.exec(css);
  if (!m || Number(m[4] ?? 1) < 0.3) return '';
  const [r, g, b] = [Number(m[1]), Number(m[2]), Number(m[3])];
  const max = Math.max(r, g, b);
  const span = max - Math.min(r, g, b);
  if (span < 80) return '';
  const h = 60 * (max === r ? ((g - b) / span + 6) % 6 : max === g ? (b - r) / span + 2 : (r - g) / span + 4);
  return HUES.find(([to]) => h < to)[1];
};

const colourOf = (el, style) => {
  if (!el.namespaceURI.endsWith('svg')) return hueOf(style.backgroundColor);
  return el.localName === 'svg' || el.localName === 'g' ? '' : hueOf(style.fill) || hueOf(style.stroke);
};

// looks is what can be seen of an element in which there is nothing to read.
const looks = (el) => {
  if (++trip.looked > MAX_LOOKED) return '';
  const box = el.getBoundingClientRect();
  if (box.width > LARGE && box.height > LARGE) return '';
  let mark = '';
  let colour = '';
  const list = [el];
  for (let i = 0; i < list.length && !(mark && colour); i++) {
    const piece = list[i];
    if (!piece.checkVisibility(SEEN)) continue;
    const style = getComputedStyle(piece);
    mark = mark || markOf(piece, piece.localName, style);
    colour = colour || colourOf(piece, style);
    for (let c = piece.firstElementChild; c && list.length < MAX_PIECES; c = c.nextElementSibling) list.push(c);
  }
  const said = [bound(mark, 40), colour].filter(Boolean).join(', ');
  return said ? ' [looks=' + quoted(said) + ']' : '';
};

// headersOf are the texts of a table's column headers, one for each column.
const headersOf = (table) => {
  let out = trip.headers.get(table);
  if (out) return out;
  out = [];
  const row = table.tHead ? table.tHead.rows[0] : table.rows[0];
  for (const cell of row ? row.cells : []) {
    const text = cell.localName === 'th' || table.tHead ? bound(squeeze(cell.innerText ?? ''), 60) : '';
    for (let n = Math.min(cell.colSpan, 100); n > 0 && out.length < 1000; n--) out.push(text);
  }
  trip.headers.set(table, out);
  return out;
};

// columnOf is the header of the column that a control without a name stands in, as
// in rows of filters.
const columnOf = (el) => {
  const cell = el.closest('td');
  const table = cell && ++trip.looked <= MAX_LOOKED ? cell.closest('table') : null;
  if (!table || cell.parentElement?.localName !== 'tr') return '';
  let at = 0;
  for (let c = cell.previousElementSibling; c; c = c.previousElementSibling) at += c.colSpan || 1;
  const text = headersOf(table)[at];
  return text ? ' [column=' + quoted(text) + ']' : '';
};
