// Typing secrets (ACT-11): every key has to land in the one field.

// bar keeps all keys from this document, for the time of a guard.
const bar = () => { arm(null, 'bar'); };

const caretForSecret = (n) => {
  const r = caretAtEnd(n);
  if (guard) guard.kind = 'all';
  return r;
};

// strayed tells whether keys would land elsewhere, or have been kept from it.
// It makes the guard last.
const strayed = (n) => {
  const el = elementOf(n);
  const g = onGuard();
  if (!el || !g) return { gone: true };
  g.until = performance.now() + GUARDED;
  const a = activeElement();
  if (!g.blocked && !(a === el || holds(el, a))) g.blocked = says(a);
  return { blocked: g.blocked };
};

// takesSecret tells how much of a text a field holds, without telling it.
const takesSecret = (n, text) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  const held = el.isContentEditable ? el.innerText : el.value;
  const core = (s) => s.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase();
  return { holds: held.includes(text) || (core(text) !== '' && core(held).includes(core(text))) };
};

// wipe empties a field that a secret got into by half.
const wipe = (n) => {
  const el = elementOf(n);
  if (!el) return;
  if (el.isContentEditable) el.textContent = '';
  else el.value = '';
  fire(el, 'input');
  fire(el, 'change');
};
