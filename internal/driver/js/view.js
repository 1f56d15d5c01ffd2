// The live view: when a page is laid out for its viewport, and the clipboard.

// laidOut waits until the window has a size and has been painted with it, at
// most ms; it tells whether it has.
const laidOut = (width, height, scale, ms) => new Promise((done) => {
  let painted = 0;
  const is = () => innerWidth === width && innerHeight === height && Math.abs(devicePixelRatio - scale) < 0.01;
  const late = later(() => done(false), ms);
  const look = () => {
    if (is()) painted++;
    if (painted < 3) return void requestAnimationFrame(look);
    clearTimeout(late);
    done(true);
  };
  requestAnimationFrame(look);
});

// spotOf is where element n is in the window, and its middle; nothing of it when
// it is out of view.
const spotOf = (n) => {
  const el = elementOf(n);
  const [x, y, w, h] = el ? placeOf(el) : [0, 0, 0, 0];
  const inside = w > 0 && h > 0 && x < innerWidth && y < innerHeight && x + w > 0 && y + h > 0;
  return inside ? { ok: true, x: x + w / 2, y: y + h / 2, place: [x, y, w, h] } : {};
};

// The clipboard of the browser: text is put on it and taken from it by events that
// the page does not see, so that what a person copies and pastes comes by the
// page's own events as from a keyboard. These listeners are the first in every
// document that was opened under this driver.
let clip = null;

const onClip = (e) => {
  if (!clip || !e.isTrusted) return;
  const hidden = () => { e.stopImmediatePropagation(); };
  if ('put' in clip && (e.type === 'copy' || e.type === 'beforecopy')) {
    hidden();
    e.preventDefault();
    if (e.type === 'copy') e.clipboardData.setData('text/plain', clip.put);
  } else if ('take' in clip) {
    hidden();
    if (e.type !== 'paste') return;
    e.preventDefault();
    clip.take = e.clipboardData.getData('text/plain');
  } else if ('expect' in clip && e.type === 'paste') {
    clip.seen = true;
    if (e.clipboardData.getData('text/plain') === clip.expect) return;
    clip.stale = true; // somebody else was faster: nothing wrong is pasted
    hidden();
    e.preventDefault();
  }
};
for (const type of ['beforecopy', 'copy', 'paste', 'keydown', 'keyup']) addEventListener(type, onClip, { capture: true });

// putClip puts a text on the clipboard; it needs the page to be used by a person.
const putClip = (text = '') => {
  clip = { put: text };
  try {
    return document.execCommand('copy');
  } finally {
    clip = null;
  }
};

// takeClip has the next paste give its text to clipTaken and nothing to the page.
const takeClip = () => { clip = { take: null }; };

// expectClip has the next paste bring that text or nothing.
const expectClip = (text = '') => { clip = { expect: text }; };

const clipTaken = (most) => {
  const was = clip;
  clip = null;
  if (!was) return {};
  if (typeof was.take === 'string') return was.take.length > most ? { long: was.take.length } : { text: was.take, taken: true };
  return { seen: was.seen, stale: was.stale };
};
