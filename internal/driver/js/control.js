// Controls: what they are, what they take, and setting those that are not
// typed into (ACT-3).
const TYPED = new Set(['text', 'search', 'tel', 'url', 'email', 'password', 'number']);
const PICKED = { date: 'a date such as 2031-02-28', time: 'a time such as 23:45', month: 'a month such as 2031-11', week: 'a week such as 2031-W09',
  'datetime-local': 'a date and time such as 2031-02-28T07:05', color: 'a colour such as #12ab9f', range: 'a number' };

const INPUTS = 'input:not([type=hidden]),textarea,select,[contenteditable=""],[contenteditable="true"]';

// meant is the control behind an element: a label's, or the only one inside of
// what a page built around it.
const meant = (el) => {
  if (el.localName === 'label' && el.control) return el.control;
  const kind = kindOf(el);
  if (kind !== 'none' && kind !== 'combo') return el;
  if (!el.localName.includes('-') && !/^(combobox|textbox|searchbox|spinbutton)$/.test(roleOf(el))) return el;
  const inner = [...el.querySelectorAll(INPUTS), ...(rootOf(el)?.querySelectorAll(INPUTS) || [])];
  return inner.length === 1 ? inner[0] : el;
};

const kindOf = (el) => {
  const tag = el.localName;
  if (tag === 'input') {
    const type = el.type;
    if (TYPED.has(type)) return 'text';
    if (type in PICKED) return 'picked';
    if (type === 'checkbox' || type === 'radio') return 'check';
    if (type === 'file') return 'file';
    return 'none';
  }
  if (tag === 'textarea') return 'text';
  if (tag === 'select') return 'select';
  if (tag === 'option') return 'option';
  const role = roleOf(el);
  if (/^(checkbox|switch|radio|menuitemcheckbox|menuitemradio)$/.test(role)) return 'check';
  if (el.isContentEditable) return 'rich';
  if (role === 'combobox') return 'combo';
  if (role === 'listbox') return 'list';
  if (role === 'slider' || role === 'spinbutton') return 'slider';
  if (role === 'option') return 'ariaoption';
  return 'none';
};

// control describes the control at n, or behind it.
const control = (n) => {
  const given = elementOf(n);
  if (!given) return { gone: true };
  const el = meant(given);
  const kind = kindOf(el);
  const out = { number: numberOf(el), kind, type: el.type || '', multiple: el.multiple === true, max: -1, tiny: false, ...subject(el) };
  if (kind === 'text') {
    if (el.maxLength >= 0) out.max = el.maxLength;
    out.tiny = el.localName === 'textarea' && tiny(el);
  }
  if (kind === 'check') out.checked = checkedOf(el);
  if (kind === 'slider') out.now = attr(el, 'aria-valuenow') || '';
  if (kind === 'none') Object.assign(out, insideOf(el));
  return out;
};

// insideOf is the one control that is in something that is none itself, such as
// a cell of a table that is being edited.
const insideOf = (el) => {
  const all = [...el.querySelectorAll('input, textarea, select, [contenteditable], [role]')].filter((c) => kindOf(c) !== 'none' && c.checkVisibility());
  if (all.length !== 1) return {};
  const { role, name } = subject(all[0]);
  return { inside: numberOf(all[0]), insideRole: role, insideName: name };
};

const checkedOf = (el) => {
  if (el.localName === 'input') return el.indeterminate ? 'mixed' : String(el.checked);
  return attr(el, 'aria-checked') || 'false';
};

// selectAll gives the focus and selects what is in a control that is typed
// into; keys and text that would land elsewhere are stopped from then on.
const selectAll = (n) => {
  const r = focusOn(n, 'all');
  const el = elementOf(n);
  if (!el || !r.ok) return r;
  if (el.select) el.select();
  else {
    const range = document.createRange();
    range.selectNodeContents(el);
    const s = el.ownerDocument.getSelection();
    s.removeAllRanges();
    s.addRange(range);
  }
  return { ...r, empty: el.select ? el.value === '' : el.textContent === '' };
};

const fire = (el, type) => el.dispatchEvent(new Event(type, { bubbles: true, composed: type === 'input' }));

// valueOf is what a control holds, in full; said is the same as a snapshot
// would show it.
const holding = (n) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  const rich = el.isContentEditable;
  const value = rich ? el.innerText : 'value' in el ? el.value : '';
  const secret = el.type === 'password' || ('value' in el && masked(el));
  let around = '';
  if (el.localName === 'textarea' && tiny(el)) {
    let p = el;
    for (let i = 0; i < 6 && p.parentElement; i++) p = p.parentElement;
    around = bound(p.innerText, 1 << 20);
  }
  return { value, text: rich ? el.textContent : value, shown: secret ? '•'.repeat(Math.min(value.length, 64)) : lines(value), secret, around,
    valid: el.validity ? !el.validity.badInput : true };
};

// offered is what stands in a list that lies open below a text field and says
// just what the field holds: such a field may take nothing but what is chosen.
const offered = (n) => {
  const el = elementOf(n);
  const want = el && typeof el.value === 'string' && el.type !== 'password' ? squeeze(el.value).toLowerCase() : '';
  if (!want) return null;
  const r = el.getBoundingClientRect();
  for (let y = r.bottom + 5; y < Math.min(r.bottom + 240, innerHeight); y += 8) {
    const hit = deepest(r.left + Math.min(20, r.width / 2), y);
    if (!hit || hit === document.body || holds(hit, el)) continue;
    const over = closest(hit, (p) => /absolute|fixed/.test(getComputedStyle(p).position) || p.matches(':popover-open'));
    if (over && !holds(over, el) && squeeze(hit.innerText ?? '').toLowerCase() === want) return { number: numberOf(hit), name: bound(squeeze(hit.innerText), 80) };
  }
  return null;
};

const hex = (v) => {
  const m = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(v);
  return m ? ('#' + m[1] + m[1] + m[2] + m[2] + m[3] + m[3]).toLowerCase() : v.toLowerCase();
};

// pick sets a date, time, colour or range. It leaves the control as it was
// when it does not take the value.
const pick = (n, wanted) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  const old = el.value;
  let v = wanted.trim();
  if (el.type === 'color') v = hex(v);
  const takes = PICKED[el.type] + limits(el);
  el.value = v;
  const same_ = el.type === 'range' || el.type === 'number' ? v !== '' && Number(el.value) === Number(v) :
    el.value === v || (v !== '' && el.value !== '' && el.value.startsWith(v.replace(' ', 'T'))) || (v !== '' && v.startsWith(el.value) && /^(:00)?(\.0+)?$/.test(v.slice(el.value.length)) && el.value !== '');
  if (!same_ || el.validity.rangeUnderflow || el.validity.rangeOverflow || el.validity.stepMismatch) {
    el.value = old;
    return { refused: true, takes };
  }
  if (el.value !== old) { el.focus({ preventScroll: true }); fire(el, 'input'); fire(el, 'change'); }
  return { ok: true };
};

const limits = (el) => {
  let s = '';
  if (el.min) s += ', from ' + JSON.stringify(bound(el.min, 40));
  if (el.max) s += ', up to ' + JSON.stringify(bound(el.max, 40));
  if (el.step && el.step !== 'any') s += ', in steps of ' + JSON.stringify(bound(el.step, 40));
  return s;
};

// takesNumber checks a value for a number field before it is typed.
const takesNumber = (n, wanted) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  const probe = document.createElement('input');
  probe.type = 'number';
  for (const a of ['min', 'max', 'step']) if (el.hasAttribute(a)) probe.setAttribute(a, attr(el, a));
  if (el.hasAttribute('value')) probe.setAttribute('value', attr(el, 'value'));
  probe.value = wanted.trim();
  const bad = wanted.trim() !== '' && (probe.value === '' || probe.validity.rangeUnderflow || probe.validity.rangeOverflow || probe.validity.stepMismatch);
  const whole = probe.validity.stepMismatch && !el.step;
  return bad ? { refused: true, takes: (whole ? 'a whole number' : 'a number') + limits(el) } : { ok: true };
};

const labelOf = (o) => squeeze(o.label || o.text);

// groupedLabel is an option's label with that of its group before it.
const groupedLabel = (o) => o.parentElement.localName === 'optgroup' ? squeeze(o.parentElement.label + ' ' + labelOf(o)) : labelOf(o);

// tellingLabels are the labels of options as one can choose by: those that
// several have, with their groups' before them.
const tellingLabels = (options) => {
  const times = new Map();
  for (const o of options) times.set(labelOf(o), (times.get(labelOf(o)) || 0) + 1);
  return options.map((o) => bound(times.get(labelOf(o)) > 1 ? groupedLabel(o) : labelOf(o), 60));
};

// choose selects the options of a native list that are named by label, else by
// value, else by label with the group's before it, else by label without regard
// to case. A label of options that mean different things does not name one.
const choose = (n, wanted = []) => { // an empty list does not come
  const el = elementOf(n);
  if (!el) return { gone: true };
  const all = [...el.options];
  const picked = [];
  for (const w of wanted) {
    const s = squeeze(w);
    const tests = [(o) => labelOf(o) === s, (o) => o.value === w, (o) => groupedLabel(o) === s, (o) => labelOf(o).toLowerCase() === s.toLowerCase()];
    let found = null;
    for (const t of tests) {
      const fits = all.filter(t);
      const on = fits.filter((o) => !offOption(o));
      found = on[0] || fits[0];
      if (on.some((o) => o.value !== found.value && o.parentElement !== found.parentElement)) return { refused: true, unclear: bound(w, 80), takes: tellingLabels(on.slice(0, 40)), more: Math.max(0, on.length - 40) };
      if (found) break;
    }
    if (!found) return { refused: true, missing: bound(w, 80), takes: tellingLabels(all.filter((o) => !offOption(o)).slice(0, 40)), more: Math.max(0, all.length - 40) };
    if (offOption(found)) return { refused: true, disabled: bound(labelOf(found), 80), takes: [] };
    picked.push(found);
  }
  return setOptions(el, picked);
};

const offOption = (o) => o.disabled || (o.parentElement.localName === 'optgroup' && o.parentElement.disabled);

const setOptions = (el, picked) => {
  const before = [...el.selectedOptions];
  el.focus({ preventScroll: true });
  if (el.multiple) for (const o of el.options) o.selected = picked.includes(o);
  else if (picked.length) picked[0].selected = true;
  const now = [...el.selectedOptions];
  if (before.length !== now.length || before.some((o, i) => o !== now[i])) { fire(el, 'input'); fire(el, 'change'); }
  return { ok: true };
};

// chosen tells which options are selected now.
const chosen = (n) => {
  const el = elementOf(n);
  return el ? { labels: [...el.selectedOptions].map(labelOf), values: [...el.selectedOptions].map((o) => o.value) } : { gone: true };
};

// press on an option of a native list chooses it, or toggles it in one that
// takes several.
const pressOption = (n, plain) => {
  const o = elementOf(n);
  if (!o) return { gone: true };
  const el = o.closest('select');
  if (!el) return { none: true };
  if (offOption(o) || el.matches(':disabled')) return { why: 'disabled', text: 'it is disabled', ...subject(o) };
  if (!el.checkVisibility({ visibilityProperty: true })) return { why: 'hidden', text: 'its list is not shown', ...subject(o) };
  if (closest(el, (p) => p.hasAttribute('inert'))) return { why: 'disabled', text: 'its list is inert', ...subject(o) };
  const picked = el.multiple && !plain ? (o.selected ? [...el.selectedOptions].filter((x) => x !== o) : [...el.selectedOptions, o]) : [o];
  setOptions(el, picked);
  return { ok: true, selected: o.selected, ...subject(o) };
};

// awaitChecked waits until a check box reads as wanted.
const awaitChecked = async (n, wanted, ms) => {
  const began = performance.now();
  for (;;) {
    const el = elementOf(n);
    if (!el) return { gone: true };
    const now = checkedOf(el);
    if (now === wanted || performance.now() - began > ms) return { now };
    await frame();
  }
};

// optionsOf lists the options of a list that is made of other elements, once
// it has some: of the list itself or the one that it controls.
const optionsOf = async (n, ms) => {
  const began = performance.now();
  for (;;) {
    const el = elementOf(n);
    if (!el) return { gone: true };
    const owned = attr(el, 'aria-controls') || attr(el, 'aria-owns');
    const lists = owned ? byIds(el, owned) : [];
    let found = [el, ...lists].flatMap((l) => [...l.querySelectorAll('[role="option"]')]);
    if (!found.length && roleOf(el) === 'combobox') found = [...document.querySelectorAll('[role="listbox"] [role="option"]')];
    found = found.filter((o) => o.checkVisibility({ visibilityProperty: true }));
    if (found.length || performance.now() - began > ms) {
      return { options: found.slice(0, 500).map((o) => ({ number: numberOf(o), name: nameOf(o), value: attr(o, 'data-value') || attr(o, 'value') || '',
        selected: isTrue(o, 'aria-selected'), disabled: isTrue(o, 'aria-disabled') })) };
    }
    await frame();
  }
};

const sliderNow = (n) => {
  const el = elementOf(n);
  return el ? { now: attr(el, 'aria-valuenow') || '', min: attr(el, 'aria-valuemin') || '', max: attr(el, 'aria-valuemax') || '', text: attr(el, 'aria-valuetext') || '' } : { gone: true };
};

// filesOf tells what a file control holds.
const filesOf = (n) => {
  const el = elementOf(n);
  return el ? { names: [...el.files].map((f) => f.name) } : { gone: true };
};

// fileReady says why a file control cannot be given files. It need not be
// shown: pages hide it behind a button.
const fileReady = (n) => {
  const el = elementOf(n);
  if (!el) return { why: 'gone', text: 'it is gone' };
  const off = disabledReason(el);
  return off ? { why: 'disabled', text: off, ...subject(el) } : {};
};
