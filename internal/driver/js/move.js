// Scrolling (verb scroll).
const scrolls = (el, axis) => {
  const [size, room] = axis === 'x' ? [el.scrollWidth, el.clientWidth] : [el.scrollHeight, el.clientHeight];
  if (size <= room + 1 || room < 20) return false;
  const page = document.scrollingElement;
  const overflowOf = (e) => getComputedStyle(e)[axis === 'x' ? 'overflowX' : 'overflowY'];
  let overflow = overflowOf(el);
  if (el === page && overflow === 'visible' && document.body) overflow = overflowOf(document.body); // it is the viewport's
  if (el === page) return overflow !== 'hidden' && overflow !== 'clip';
  return overflow === 'auto' || overflow === 'scroll' || overflow === 'overlay';
};

const axesOf = (o) => (o.to ? ['y', 'x'] : o.y ? (o.x ? ['y', 'x'] : ['y']) : ['x']);

// scrollerAround is the nearest container of el that can scroll as wanted.
const scrollerAround = (el, axes) => {
  const page = document.scrollingElement || document.documentElement;
  for (let p = el; p && p.nodeType === 1; p = flatParent(p)) {
    if (p === document.body || p === document.documentElement) break;
    if (axes.some((a) => scrolls(p, a))) return p;
  }
  return axes.some((a) => scrolls(page, a)) ? page : null;
};

// mainScroller is the page, or the largest part of it that can scroll.
const mainScroller = (axes) => {
  const page = document.scrollingElement || document.documentElement;
  if (axes.some((a) => scrolls(page, a))) return page;
  let found = null;
  let most = 0;
  for (const el of document.querySelectorAll('*')) {
    if (el.scrollHeight <= el.clientHeight + 1 && el.scrollWidth <= el.clientWidth + 1) continue;
    if (!axes.some((a) => scrolls(el, a)) || !shownNow(el)) continue;
    const r = inView(el.getBoundingClientRect());
    if (r && r.width * r.height > most) { found = el; most = r.width * r.height; }
  }
  return found;
};

// scroll moves a container. It returns where that stands, or, when nothing can
// scroll, the point at which the page may take a wheel.
const scroll = async (n, o) => {
  const el = n ? elementOf(n) : null;
  if (n && !el) return { gone: true };
  const about = el ? subject(el) : {};
  if (o.to === 'view') {
    el.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
    await frame();
    const p = scrollerAround(flatParent(el) || el, ['y', 'x']) || document.scrollingElement;
    return { ok: true, ...standsAt(p), ...about };
  }
  const axes = axesOf(o);
  const p = el ? scrollerAround(el, axes) : mainScroller(axes);
  if (!p) {
    const r = el && inView(el.getBoundingClientRect());
    return { wheel: true, px: r ? r.x + r.width / 2 : innerWidth / 2, py: r ? r.y + r.height / 2 : innerHeight / 2, ...about };
  }
  if (o.to) p.scrollTo({ top: o.to === 'top' ? 0 : p.scrollHeight, behavior: 'instant' });
  else p.scrollBy({ left: o.x || 0, top: o.y || 0, behavior: 'instant' });
  await frame();
  return { ok: true, ...standsAt(p), ...about };
};

const standsAt = (p) => ({ x: p.scrollLeft, y: p.scrollTop, max_x: Math.max(0, p.scrollWidth - p.clientWidth), max_y: Math.max(0, p.scrollHeight - p.clientHeight) });

// placed is where an element is, scrolled into view, for a pointer that holds
// something: what it holds may cover the place.
const placed = async (n) => {
  const el = elementOf(n);
  if (!el) return { gone: true };
  if (!shownNow(el)) return { why: 'hidden', text: 'it is not shown', ...subject(el) };
  const r0 = el.getBoundingClientRect();
  const cx = r0.x + r0.width / 2;
  const cy = r0.y + r0.height / 2;
  if (cx < 0 || cy < 0 || cx >= innerWidth || cy >= innerHeight) {
    el.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
    await frame();
  }
  const r = el.getBoundingClientRect();
  return { ok: true, x: r.x, y: r.y, w: r.width, h: r.height, ...subject(el) };
};
