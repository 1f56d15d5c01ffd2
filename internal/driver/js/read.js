// Reading (verb read): the main content of a document as Markdown. The page's
// text cannot make structure that is not there: line ends are squeezed, and
// what Markdown would take for a mark is escaped where it could be one.
const MAX_READ = 4000000; // characters
const FRAME_MARK = '\ue000';

const hiddenNow = (el, style) => style.display === 'none' || style.display === '' || style.contentVisibility === 'hidden' ||
  (attr(el, 'aria-hidden') === 'true' && el.localName !== 'body') || el.hasAttribute('inert') ||
  (el.localName !== 'summary' && el.parentElement?.localName === 'details' && !el.parentElement.open);

const NOT_READ = new Set(('script style template noscript head meta link base title button input select textarea datalist ' +
  'svg canvas object embed video audio map area dialog track param source').split(' '));
const ASIDE = new Set('navigation banner contentinfo complementary search menu menubar toolbar tablist dialog alertdialog'.split(' '));
const ADS = /(^|[\s_-])(ads?|adsbygoogle|advert\w*|adslot|sponsor\w*|taboola|outbrain|cookie\w*|consent|gdpr|paywall)($|[\s_-])/i;
const EXTRA = /(^|[\s_-])(promo\w*|newsletter|subscrib\w*|share|sharing|social|related|recommend\w*|breadcrumbs?|sidebar|skip\w*|pagination|pager|comment-form|toc)($|[\s_-])/i;

const textSize = (el) => squeeze(el.innerText || '').length;

const linkShare = (el) => {
  let linked = 0;
  for (const a of el.querySelectorAll('a[href]')) linked += squeeze(a.textContent).length;
  return linked / Math.max(1, squeeze(el.textContent).length);
};

// besides tells what stands beside the main content.
const besides = (el, tag) => {
  const role = tag === 'div' || tag === 'span' ? attr(el, 'role') || '' : roleOf(el, tag);
  if (ASIDE.has(role) || tag === 'nav' || tag === 'aside') return true;
  const names = (typeof el.className === 'string' ? el.className : '') + ' ' + el.id;
  if (names.length < 2) return false;
  if (ADS.test(names)) return textSize(el) < reader.whole / 2;
  return EXTRA.test(names) && (textSize(el) < 200 || linkShare(el) > 0.4) && !el.querySelector('h1');
};

const shownNow = (el) => el.checkVisibility({ visibilityProperty: true });

// largest is the one with the most text that is no part of another.
const largest = (all) => {
  let found = null;
  let most = 0;
  for (const el of all) {
    if (!shownNow(el)) continue;
    const n = textSize(el);
    if (n > most) { found = el; most = n; }
  }
  return { el: found, size: most };
};

// mainContent finds what a page is about: by its landmarks, else by where its
// running text is, else all of it.
const mainContent = (body) => {
  const whole = textSize(body);
  const main = largest(document.querySelectorAll('main,[role="main"]'));
  let base = main.el && (main.size >= 200 || main.size >= whole / 4) ? main.el : body;
  const size = base === body ? whole : main.size;
  const articles = [...base.querySelectorAll('article,[role="article"],[itemprop="articleBody"]')]
    .filter((a) => !a.parentElement.closest('article,[role="article"]') && shownNow(a));
  if (articles.length === 1 && textSize(articles[0]) >= size / 2) base = articles[0];
  return base === body ? dense(body, whole) : base;
};

// dense is the element that holds most of the running text.
const dense = (body, whole) => {
  const scores = new Map();
  const give = (el, n) => { if (el && el !== body.parentElement) scores.set(el, (scores.get(el) || 0) + n); };
  for (const p of body.querySelectorAll('p,pre,blockquote')) {
    const text = squeeze(p.textContent);
    if (text.length < 60 || closest(p, (e) => e === body || ASIDE.has(roleOf(e)) || e.localName === 'aside') !== body) continue;
    const n = 1 + text.split(/[,،、，]/).length + Math.min(text.length / 100, 3);
    give(p.parentElement, n);
    give(p.parentElement.parentElement, n / 2);
  }
  let best = null;
  let most = 0;
  for (const [el, n] of scores) {
    const s = n * (1 - linkShare(el));
    if (s > most) { best = el; most = s; }
  }
  if (!best || best === body || most < 12 || textSize(best) < whole * 0.4) return body;
  while (best.parentElement !== body && !best.querySelector('h1') && best.parentElement.querySelector('h1') &&
    textSize(best.parentElement) < textSize(best) * 1.5) best = best.parentElement;
  return best;
};

let reader = null; // what one reading knows; null outside of one

// escaped keeps text from being read as Markdown.
const escaped = (s) => s.replace(/\ue000/g, '')
  .replace(/\\(?=[\\`*_{}[\]()#+.!|<>~-])/g, '\\\\')
  .replace(/`/g, '\\`')
  .replace(/\*(?=\S)|(?<=\S)\*/g, '\\*')
  .replace(/(?<![\p{L}\p{N}_])_(?=\S)|(?<=\S)_(?![\p{L}\p{N}_])/gu, '\\_')
  .replace(/<(?=[a-z/!])/gi, '\\<')
  .replace(/\](?=[([])/g, '\\]')
  .replace(/~~/g, '\\~~');

const opening = (s) => s.replace(/^(#{1,6}(?=\s|$)|>|[-+*](?=\s)|={3,}$|-{3,}$|~{3,})/gm, '\\$1').replace(/^(\d{1,9})([.)])(?=\s)/gm, '$1\\$2');

const target = (href) => {
  let url;
  try { url = new URL(href, document.baseURI); } catch { return ''; }
  if (!/^(https?|mailto|tel|ftp):$/.test(url.protocol)) return '';
  if (url.hash && url.href.split('#')[0] === location.href.split('#')[0]) return '';
  url.username = url.password = '';
  return bound(url.href).replace(/[\s()<>\\]/g, (c) => '%' + c.charCodeAt(0).toString(16).padStart(2, '0'));
};

const wrapped = (mark, s) => {
  const t = s.trim();
  if (!t || t.includes('\n\n') || t.startsWith(mark)) return s;
  return (/^\s/.test(s) ? ' ' : '') + mark + t + mark + (/\s$/.test(s) ? ' ' : '');
};

const ticked = (s) => {
  const t = squeeze(s).replace(/\ue000/g, '');
  if (!t) return '';
  const runs = t.match(/`+/g) || [];
  let fence = '`';
  while (runs.includes(fence)) fence += '`';
  const pad = t.startsWith('`') || t.endsWith('`') ? ' ' : '';
  return fence + pad + t + pad + fence;
};

// lineOf writes what is in an element as one line.
const lineOf = (el, o) => squeeze(compose(contentsOf(el), { ...o, line: true }).replace(/\n+/g, ' '));

const INLINE = {
  strong: (el, o) => wrapped('**', inside(el, { ...o, bold: true })), em: (el, o) => wrapped('*', inside(el, o)),
  del: (el, o) => wrapped('~~', inside(el, o)), code: (el) => ticked(preText(el)),
  q: (el, o) => '“' + inside(el, o) + '”',
  sup(el, o) { const s = inside(el, o); return /^\s*[\p{L}\p{N}+-]{1,6}\s*$/u.test(s) && !el.querySelector('a') ? '^' + s.trim() : s; },
  br: (el, o) => (o.line ? ' ' : '\n'),
  img(el, o) {
    const alt = squeeze(attr(el, 'alt') || '').slice(0, 300);
    if (!alt || o.bare) return alt ? escaped(alt) : '';
    const src = target(el.currentSrc || el.src || '');
    return src ? '![' + escaped(alt) + '](' + src + ')' : escaped(alt);
  },
  math(el) {
    const tex = el.querySelector('annotation[encoding="application/x-tex"]');
    const text = squeeze(tex ? tex.textContent : attr(el, 'alttext') || '');
    return text ? '$' + text.replace(/\ue000/g, '') + '$' : escaped(squeeze(el.textContent));
  },
  a(el, o) {
    if (!el.hasAttribute('href') || o.bare) return null;
    const url = target(attr(el, 'href'));
    const s = inside(el, { ...o, bare: true });
    const text = squeeze(s) || escaped(squeeze(attr(el, 'aria-label') || attr(el, 'title') || ''));
    if (!text || /^[#¶§🔗]$/u.test(text)) return '';
    if (!url) return s;
    return (/^\s/.test(s) ? ' ' : '') + '[' + text.replace(/\n+/g, ' ') + '](' + url + ')' + (/\s$/.test(s) ? ' ' : '');
  },
};
Object.assign(INLINE, { b: (el, o) => (o.bold ? null : INLINE.strong(el, o)), i: INLINE.em, s: INLINE.del, strike: INLINE.del,
  kbd: INLINE.code, samp: INLINE.code, tt: INLINE.code });

const inside = (el, o) => compose(contentsOf(el), { ...o, line: o.line, inline: true });

// preText is text with its line ends, without line numbers.
const preText = (el) => {
  let out = '';
  for (const node of contentsOf(el)) {
    if (node.nodeType === 3) { out += node.data; continue; }
    if (node.nodeType !== 1) continue;
    if (node.localName === 'br') { out += '\n'; continue; }
    const style = getComputedStyle(node);
    if (hiddenNow(node, style) || style.userSelect === 'none' || NOT_READ.has(node.localName)) continue;
    const blocked = isBlock(style.display);
    if (blocked && out && !out.endsWith('\n')) out += '\n';
    out += preText(node);
    if (blocked && !out.endsWith('\n')) out += '\n';
  }
  return out;
};

const isBlock = (display) => !display.startsWith('inline') && display !== 'contents' && !display.startsWith('ruby');

const indented = (s, by) => s.replace(/\n(?=.)/g, '\n' + by);

const headingOf = (el, tag) => {
  if (/^h[1-6]$/.test(tag)) return Number(attr(el, 'aria-level')) || Number(tag[1]);
  return attr(el, 'role') === 'heading' ? Number(attr(el, 'aria-level')) || 2 : 0;
};

const listOf = (el, tag, o) => {
  let n = tag === 'ol' ? (el.hasAttribute('start') ? el.start : 1) : 0;
  const out = [];
  for (const li of contentsOf(el)) {
    if (li.nodeType !== 1 || hiddenNow(li, getComputedStyle(li)) || reader.skips(li, li.localName)) continue;
    if (tag === 'ol' && li.localName === 'li' && li.hasAttribute('value')) n = li.value;
    const box = li.querySelector(':scope > input[type=checkbox], :scope > label > input[type=checkbox], :scope > p > input[type=checkbox]');
    const mark = tag === 'ol' ? n++ + '. ' : '- ';
    const body = (box ? (box.checked ? '[x] ' : '[ ] ') : '') + compose(/^(ul|ol)$/.test(li.localName) ? [li] : contentsOf(li), { ...o, line: false, inline: false, tight: true });
    if (body.trim()) out.push(mark + indented(body, ' '.repeat(mark.length)));
  }
  return out.join('\n');
};

const definitions = (el, o) => {
  const out = [];
  let terms = [];
  const each = (box) => {
    for (const d of box.children) {
      if (hiddenNow(d, getComputedStyle(d))) continue;
      if (d.localName === 'dt') terms.push(lineOf(d, o));
      else if (d.localName === 'dd') {
        const body = compose(contentsOf(d), { ...o, line: false, inline: false, tight: true });
        const head = terms.filter(Boolean).map((t) => wrapped('**', t)).join(', ');
        out.push('- ' + indented((head ? head + ': ' : '') + body, '  '));
        terms = [];
      } else if (d.localName === 'div') each(d);
    }
  };
  each(el);
  for (const t of terms) if (t) out.push('- ' + wrapped('**', t));
  return out.join('\n');
};

const tableText = (el, o) => {
  const rows = [];
  let width = 0;
  let head = 0;
  const taken = [];
  for (const tr of el.rows) {
    if (hiddenNow(tr, getComputedStyle(tr))) continue;
    const row = [];
    let heads = tr.cells.length > 0;
    for (const cell of tr.cells) {
      while (taken[row.length] > 0) { taken[row.length]--; row.push(''); }
      if (hiddenNow(cell, getComputedStyle(cell))) continue;
      heads = heads && cell.localName === 'th';
      const text = lineOf(cell, o).replace(/(?<!\\)\|/g, '\\|');
      for (let i = 0; i < Math.min(cell.colSpan, 100); i++) {
        if (cell.rowSpan > 1) taken[row.length] = Math.min(cell.rowSpan, 1000) - 1;
        row.push(i ? '' : text);
      }
    }
    while (taken[row.length] > 0) { taken[row.length]--; row.push(''); }
    if (!row.some(Boolean)) continue;
    if ((heads || tr.parentElement.localName === 'thead') && head === rows.length && head === 0) head = 1;
    rows.push(row);
    width = Math.max(width, row.length);
  }
  if (!rows.length) return '';
  const written = (row) => '| ' + Array.from({ length: width }, (_, i) => row[i] || '').join(' | ') + ' |';
  if (!head) rows.unshift([]);
  const out = rows.map(written);
  out.splice(1, 0, '|' + ' --- |'.repeat(width));
  const caption = el.caption && shownNow(el.caption) ? lineOf(el.caption, o) : '';
  return (caption ? wrapped('**', caption) + '\n\n' : '') + out.join('\n');
};

// BLOCKS write an element that has a form of its own; null for one that has not.
const BLOCKS = {
  pre(el) {
    const text = preText(el).replace(/\n+$/, '').replace(/^\n/, '').replace(/\ue000/g, '');
    if (!text.trim()) return '';
    const named = [el, ...el.querySelectorAll('code')].map((e) => String(e.className).match(/\b(?:language|lang|highlight-source)-([\w+#-]{1,20})/)).find(Boolean);
    let fence = '```';
    while (text.includes(fence)) fence += '`';
    return fence + (named ? named[1] : '') + '\n' + text + '\n' + fence;
  },
  blockquote: (el, o) => compose(contentsOf(el), { ...o, line: false, inline: false }).replace(/^/gm, '> ').replace(/^> $/gm, '>'),
  hr: () => '---',
  ul: (el, o) => listOf(el, 'ul', o), ol: (el, o) => listOf(el, 'ol', o), menu: (el, o) => listOf(el, 'ul', o),
  dl: definitions,
  table: (el, o) => (layoutTable(el) ? null : tableText(el, o)),
  figcaption: (el, o) => wrapped('*', lineOf(el, o)),
  summary: (el, o) => wrapped('**', lineOf(el, o)),
  iframe(el) {
    const r = el.getBoundingClientRect();
    return r.width * r.height > 10000 ? FRAME_MARK + numberOf(el) + FRAME_MARK : '';
  },
};
BLOCKS.frame = BLOCKS.iframe;

// compose writes nodes: blocks apart from each other by an empty line, or in
// one line.
const compose = (nodes, o) => {
  const out = [];
  let line = '';
  const flush = () => {
    const s = line.split('\n').map((l) => l.replace(/[ \t\r\f]+/g, ' ').trim()).join('\n').replace(/\n{2,}/g, '\n').trim();
    if (s) out.push(o.line ? s : opening(s));
    line = '';
  };
  const put = (block) => { if (block && block.trim()) { flush(); out.push(block); } };
  const visitAllOf = (list) => { for (const node of list) each(node); };
  const each = (node) => {
    if (reader.room < 0) return;
    if (node.nodeType === 3) {
      if (!reader.seen) return;
      const text = node.data.replace(/\s+/g, ' ');
      reader.room -= text.length;
      line += escaped(text);
      return;
    }
    if (node.nodeType !== 1) return;
    const tag = node.localName;
    if (NOT_READ.has(tag) || reader.owned >= 1500) return;
    const style = getComputedStyle(node);
    if (hiddenNow(node, style) || reader.skips(node, tag)) return;
    const seen = reader.seen;
    reader.seen = style.visibility === 'visible';
    reader.owned++;
    visitElement(node, tag, style);
    reader.owned--;
    reader.seen = seen;
  };
  const visitElement = (node, tag, style) => {
    const level = headingOf(node, tag);
    if (level && !o.line && !o.inline) {
      const text = lineOf(node, o);
      if (text) put('#'.repeat(Math.min(level, 6)) + ' ' + text);
      return;
    }
    if (!o.line && !o.inline && Object.hasOwn(BLOCKS, tag)) {
      const block = BLOCKS[tag](node, o);
      if (block !== null) { put(block); return; }
    }
    if (Object.hasOwn(INLINE, tag) && !(tag !== 'br' && !o.line && holdsBlocks(node))) {
      const s = INLINE[tag](node, o);
      if (s !== null) { line += s; return; }
    }
    if (!isBlock(style.display) && !o.inline) {
      const spaced = style.display.startsWith('inline-');
      if (spaced) line += ' ';
      visitAllOf(contentsOf(node));
      if (spaced) line += ' ';
      return;
    }
    const apart = isBlock(style.display) || tag === 'li';
    if (!apart) { visitAllOf(contentsOf(node)); return; }
    if (o.line || o.inline) { line += ' '; visitAllOf(contentsOf(node)); line += ' '; return; }
    flush();
    visitAllOf(contentsOf(node));
    flush();
  };
  visitAllOf(nodes);
  if (o.inline) return line;
  flush();
  if (!o.tight) return out.join('\n\n');
  return out.reduce((all, b) => all + (all && (/^(- |\d+\. )/.test(b) ? '\n' : '\n\n')) + b, '');
};

const holdsBlocks = (el) => el.firstElementChild !== null && el.querySelector('p,div,h1,h2,h3,h4,h5,h6,ul,ol,table,pre,blockquote,section,article') !== null;

// read returns the Markdown of element n, or of what the page is about.
const read = (n) => {
  prune();
  forget();
  const body = document.body || document.documentElement;
  const given = n ? elementOf(n) : null;
  if (n && !given) return { gone: true };
  if (!body) return { text: '' };
  reader = { room: MAX_READ, seen: true, owned: 0, whole: textSize(body), skips: n ? () => false : besides };
  try {
    const root = given || (body.localName === 'frameset' ? body : mainContent(body));
    reader.seen = getComputedStyle(root).visibility === 'visible';
    let text = compose(root === body ? contentsOf(root) : [root], {});
    if (!n && !/^# /m.test(text)) {
      const title = [...document.querySelectorAll('h1')].find((h) => shownNow(h) && squeeze(h.textContent));
      if (title && !root.contains(title)) text = '# ' + lineOf(title, {}) + '\n\n' + text;
    }
    return { text: text.toWellFormed(), full: reader.room < 0 };
  } finally {
    reader = null;
  }
};
