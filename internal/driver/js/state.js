// States and values of elements, as an outline prints them.
const SELECTABLE = new Set('gridcell option row tab columnheader rowheader treeitem cell'.split(' '));
const CHECKABLE = new Set('checkbox menuitemcheckbox menuitemradio option radio switch treeitem'.split(' '));
// Grids mark their cells, whether they may or not; no mark is not the same as a cross.
const MARKED = new Set(['gridcell', 'cell', 'row', 'listitem']);
const quoted = (s) => '"' + bound(squeeze(String(s)), 300).replace(/[\\"]/g, '\\$&') + '"';

const isTrue = (el, name) => attr(el, name) === 'true';

const disabledHere = (el, tag) => {
  switch (tag) {
    case 'button': case 'input': case 'select': case 'textarea':
      if (el.disabled || ((!trip || trip.fieldsets) && el.matches(':disabled'))) return true;
      break;
    case 'option': case 'optgroup': case 'fieldset':
      if (el.matches(':disabled')) return true;
  }
  return isTrue(el, 'aria-disabled');
};

// states prints them; plain is an element without attributes.
const states = (el, tag, role, disabled, plain = false) => {
  let s = '';
  if (plain && tag !== 'input' && tag !== 'select' && tag !== 'textarea') {
    if (disabled) s = ' [disabled]';
    if (tag === 'summary' && role === 'button') s += el.parentElement.open ? ' [expanded]' : ' [collapsed]';
    else if (role === 'heading') s += ' [level=' + tag[1] + ']';
    return s;
  }
  if (CHECKABLE.has(role)) {
    if (tag === 'input') s += el.indeterminate ? ' [checked=mixed]' : el.checked ? ' [checked]' : '';
    else {
      const c = attr(el, 'aria-checked');
      if (c === 'true') s += ' [checked]';
      else if (c === 'mixed' && role !== 'switch') s += ' [checked=mixed]';
    }
  }
  else if (MARKED.has(role) && el.hasAttribute('aria-checked')) s += ' [checked' + (isTrue(el, 'aria-checked') ? ']' : '=' + (attr(el, 'aria-checked') === 'mixed' ? 'mixed]' : 'false]'));
  if (disabled) s += ' [disabled]';
  const isControl = tag === 'input' || tag === 'select' || tag === 'textarea';
  if (tag === 'summary' && role === 'button') s += el.parentElement.open ? ' [expanded]' : ' [collapsed]';
  if (role === 'heading') {
    const level = Number(attr(el, 'aria-level')) || (/^h[1-6]$/.test(tag) ? Number(tag[1]) : 2);
    s += ' [level=' + level + ']';
  }
  if (isControl) {
    if (el.required) s += ' [required]';
    if (el.readOnly && role !== 'checkbox' && role !== 'radio') s += ' [readonly]';
    if (el.multiple) s += ' [multiple]';
    if (el.matches(':user-invalid')) s += ' [invalid]';
    if (tag === 'input') s += inputStates(el);
    if (tag === 'textarea' && role === 'textbox') s += ' [multiline]';
    if (el.placeholder && !el.value && role !== 'combobox') s += ' [placeholder=' + quoted(el.placeholder) + ']';
  }
  if (role === 'textbox' && !isControl && (isTrue(el, 'aria-multiline') || el.isContentEditable && attr(el, 'aria-multiline') !== 'false')) s += ' [multiline]';
  if ((tag === 'button' || tag === 'input') && el.hasAttribute('popovertarget')) s += popoverState(el);
  return s + ariaStates(el, role, s);
};

// popoverState is whether what a button opens is open.
const popoverState = (el) => {
  const target = el.popoverTargetElement;
  return !target || el.hasAttribute('aria-expanded') ? '' : target.matches(':popover-open') ? ' [expanded]' : ' [collapsed]';
};

// SHOWN_ARIA are the attributes that ariaStates knows. Most elements have none:
// one match tells, without a look at each.
const SHOWN_ARIA = ['aria-expanded', 'aria-pressed', 'aria-selected', 'aria-current', 'aria-required', 'aria-readonly', 'aria-invalid',
  'aria-busy', 'aria-haspopup', 'aria-sort', 'aria-modal'];
const SHOWS_ARIA = SHOWN_ARIA.map((a) => '[' + a + ']').join(',');

const inputStates = (el) => {
  let s = '';
  const type = el.type;
  switch (type) {
    case 'date': case 'time': case 'month': case 'week': case 'datetime-local': return ' [type=' + type + ']';
    case 'range': case 'number':
      if (el.min) s += ' [min=' + quoted(el.min) + ']';
      if (el.max) s += ' [max=' + quoted(el.max) + ']';
      return s;
    case 'file': return el.accept ? ' [accept=' + quoted(el.accept) + ']' : '';
  }
  return '';
};

const ariaStates = (el, role, before) => {
  let s = '';
  if (!el.matches(SHOWS_ARIA)) return s;
  for (const name of SHOWN_ARIA) {
    const v = attr(el, name);
    if (v === null) continue;
    switch (name) {
      case 'aria-expanded':
        if (v === 'true') s += ' [expanded]';
        else if (v === 'false') s += ' [collapsed]';
        break;
      case 'aria-pressed':
        if (v === 'true') s += ' [pressed]';
        else if (v === 'mixed') s += ' [pressed=mixed]';
        break;
      case 'aria-selected': if (v === 'true' && SELECTABLE.has(role)) s += ' [selected]'; break;
      case 'aria-current': if (v && v !== 'false') s += v === 'true' ? ' [current]' : ' [current=' + quoted(v) + ']'; break;
      case 'aria-required': if (v === 'true' && !before.includes('[required]')) s += ' [required]'; break;
      case 'aria-readonly': if (v === 'true' && !before.includes('[readonly]')) s += ' [readonly]'; break;
      case 'aria-invalid': if (v && v !== 'false' && !before.includes('[invalid]')) s += ' [invalid]'; break;
      case 'aria-busy': if (v === 'true') s += ' [busy]'; break;
      case 'aria-haspopup': if (v && v !== 'false') s += v === 'true' ? ' [haspopup]' : ' [haspopup=' + quoted(v) + ']'; break;
      case 'aria-sort': if (v && v !== 'none') s += ' [sort=' + quoted(v) + ']'; break;
      case 'aria-modal': if (v === 'true') s += ' [modal]'; break;
    }
  }
  return s;
};

// middle is where a slider stands that does not say where (WAI-ARIA 1.2).
const middle = (el) => {
  const min = parseFloat(attr(el, 'aria-valuemin')) || 0;
  const max = parseFloat(attr(el, 'aria-valuemax') ?? '100');
  return String(min + ((Number.isNaN(max) ? 100 : max) - min) / 2);
};

// shownValue is the value of a control as a person sees it.
const shownValue = (el, tag, role) => {
  switch (tag) {
    case 'input':
      if (el.type === 'checkbox' || el.type === 'radio' || role === 'button' || role === 'link') return '';
      if (el.type === 'file') return el.files.length ? [...el.files].map((f) => f.name).join(', ') : 'no file chosen';
      if (el.type === 'password' || masked(el)) return '•'.repeat(Math.min(el.value.length, 64));
      return el.value;
    case 'textarea': return masked(el) ? '•'.repeat(Math.min(el.value.length, 64)) : el.value;
    case 'select': return '';
    case 'progress': return el.hasAttribute('value') ? String(el.value) : '';
    case 'meter': return String(el.value);
  }
  switch (role) {
    case 'slider': case 'scrollbar':
      return attr(el, 'aria-valuetext') || attr(el, 'aria-valuenow') || middle(el);
    case 'spinbutton': case 'progressbar': case 'meter': case 'separator':
      return attr(el, 'aria-valuetext') || attr(el, 'aria-valuenow') || '';
  }
  return '';
};

const masked = (el) => el.value !== '' && !/^(none|)$/.test(getComputedStyle(el).webkitTextSecurity);
const lines = (s) => s === '' ? '' : bound(s).replace(/\t/g, ' ').replace(/\r\n?|\n/g, '\u2028').replace(/[\u0000-\u001f\u007f]/g, ' ');

// PLAIN_PATH is an address as it stands in most links of a site: resolving it
// would only put the origin in front.
const PLAIN_PATH = /^(?:\/(?![/.]|%2e)|(?!^)[\w\-~!$&()*+,;=:@?#.%])+$/i;

// PLAIN_PART is a place in the page itself, written so that resolving it
// changes nothing.
const PLAIN_PART = /^#[\w\-~!$&()*+,;=:@?/.]*$/;

const address = (el) => {
  if (trip.plainBase && el.nodeName === (el.localName === 'a' ? 'A' : 'AREA')) {
    const given = attr(el, 'href');
    if (given !== null && trip.ownBase && PLAIN_PART.test(given)) return bound(given);
    if (given !== null && PLAIN_PATH.test(given)) {
      return bound(given.startsWith(trip.here) ? given.slice(trip.here.length - 1) : given);
    }
  }
  let href = el.href;
  if (href === undefined || href === null) return '';
  if (typeof href !== 'string') href = href.baseVal || '';
  if (href.startsWith('javascript:')) return '';
  if (href.startsWith('data:')) return bound(href, 40);
  if (href.includes('@')) href = href.replace(/^([a-z]+:\/\/)[^/?#]*@/, '$1'); // credentials
  if (trip.origin !== 'null/' && href.startsWith(trip.origin)) {
    href = href.slice(trip.origin.length - 1);
    if (href.startsWith(trip.here)) href = href.slice(trip.here.length - 1);
  }
  return bound(squeeze(href));
};
