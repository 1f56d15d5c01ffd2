// Counters of style sheets, such as the numbers of headings (CSS Lists 3). What
// they have come to cannot be read from a page: where generated text shows one, all
// of them are counted through, once for a reading.
const MAX_COUNTED = 5000; // elements; what comes after them has no numbers

const ROMAN = [[1000, 'm'], [900, 'cm'], [500, 'd'], [400, 'cd'], [100, 'c'], [90, 'xc'], [50, 'l'], [40, 'xl'], [10, 'x'], [9, 'ix'], [5, 'v'], [4, 'iv'], [1, 'i']];

const roman = (n) => {
  let out = '';
  for (const [value, sign] of ROMAN) for (; n >= value; n -= value) out += sign;
  return out;
};

const alpha = (n) => {
  let out = '';
  for (; n > 0; n = Math.floor((n - 1) / 26)) out = String.fromCharCode(97 + (n - 1) % 26) + out;
  return out;
};

// numeral writes a number in a counter style; those it does not know as digits.
const numeral = (n, style) => {
  switch (style) {
    case 'none': return '';
    case 'disc': return '•';
    case 'circle': return '◦';
    case 'square': return '▪';
    case 'decimal-leading-zero': return (n < 0 ? '-' : '') + String(Math.abs(n)).padStart(2, '0');
  }
  const spelled = n < 1 || n > 3999 ? '' : /roman$/.test(style) ? roman(n) : /-(alpha|latin)$/.test(style) ? alpha(n) : '';
  return spelled && style.startsWith('upper-') ? spelled.toUpperCase() : spelled || String(n);
};

// CONTENT finds strings and counters in the computed "content" of a part.
const CONTENT = /"((?:[^"\\]|\\.)*)"|counters?\(([^()]*)\)/g;
const unescaped = (s) => s.replace(/\\([0-9a-f]{1,6})\s?/gi, (_, h) => String.fromCodePoint(Math.min(parseInt(h, 16), 0x10ffff))).replace(/\\(.)/g, '$1');

class Counting {
  constructor() {
    Object.assign(this, { stacks: new Map(), left: MAX_COUNTED, depth: 0, texts: { '::before': new Map(), '::after': new Map() } });
    if (document.documentElement) this.visit(document.documentElement);
  }

  // change applies what an element or part says of counters, and makes those that
  // there are none of around it.
  change(style, parent) {
    for (const [property, apply] of [['counterReset', null], ['counterIncrement', (c, n) => { c.value += n; }], ['counterSet', (c, n) => { c.value = n; }]]) {
      const list = style[property];
      if (!list || list === 'none') continue;
      for (const [, name, n] of list.matchAll(/([^\s()]+) (-?\d+)/g)) {
        if (!this.stacks.has(name)) this.stacks.set(name, []);
        const stack = this.stacks.get(name);
        const top = stack[stack.length - 1];
        if (apply === null) {
          if (top && top.parent === parent) stack.pop();
          stack.push({ value: Number(n), parent });
        } else {
          if (!top) stack.push({ value: 0, parent });
          apply(stack[stack.length - 1], Number(n));
        }
      }
    }
  }

  part(el, which) {
    const style = getComputedStyle(el, which);
    if (!style.content || style.content === 'none' || style.content === 'normal' || style.display === 'none') return;
    this.change(style, el);
    if (style.content.includes('counter')) this.texts[which].set(el, this.text(style.content));
  }

  text(content) {
    let out = '';
    for (const [, string, counter] of content.matchAll(CONTENT)) {
      if (string !== undefined) { out += unescaped(string); continue; }
      const [, name, between, style] = /^\s*([^\s,]+)\s*(?:,\s*"((?:[^"\\]|\\.)*)")?\s*(?:,\s*([\w-]+))?/.exec(counter) || [];
      const stack = this.stacks.get(name) || [];
      const values = stack.length ? stack.map((c) => c.value) : [0];
      out += (between === undefined ? values.slice(-1) : values).map((n) => numeral(n, style || 'decimal')).join(unescaped(between || ''));
    }
    return out;
  }

  visit(el) {
    if (--this.left < 0 || this.depth > MAX_DEPTH) return;
    const style = getComputedStyle(el);
    if (style.display === 'none' || style.display === '') return;
    this.change(style, el.parentNode);
    const kept = new Map([...this.stacks].map(([name, stack]) => [name, stack.length]));
    const generates = generatorsIn(el.getRootNode())(el);
    if (generates & BEFORE) this.part(el, '::before');
    this.depth++;
    for (const c of contentsOf(el)) if (c.nodeType === 1) this.visit(c);
    this.depth--;
    if (generates & AFTER) this.part(el, '::after');
    for (const [name, stack] of this.stacks) stack.length = Math.min(stack.length, kept.get(name) ?? 0);
  }
}

let counting = null; // for one reading

// counted is the text of a part with its counters; undefined when it was not
// come to.
const counted = (el, which) => {
  counting ??= new Counting();
  return counting.texts[which].get(el);
};
