// Elements that are listed in a way of their own.
const optionNode = (o, off) => {
  const node = new Entry('option', bound(squeeze(o.label || o.text)), (off || o.disabled ? ' [disabled]' : '') + (o.selected ? ' [selected]' : ''));
  return Object.assign(node, { number: numberOf(o), flags: 'i' });
};

// SPECIAL handles elements whose contents are not a flat tree of their own.
// They return true when the contents are dealt with.
const SPECIAL = {
  __proto__: null,
  select(el, node) {
    const all = el.options;
    const cap = trip.root === el ? all.length : MAX_OPTIONS;
    let shown = 0;
    let group = null;
    let kids = node.kids;
    const add = (o) => {
      const parent = o.parentElement.localName === 'optgroup' ? o.parentElement : null;
      if (parent !== group) {
        group = parent;
        kids = node.kids;
        if (group) {
          const g = new Entry('group', bound(squeeze(group.label)), group.disabled ? ' [disabled]' : '');
          node.kids.push(g);
          kids = g.kids;
        }
      }
      kids.push(optionNode(o, group?.disabled));
      shown++;
    };
    let at = 0;
    for (const o of all) {
      if (shown >= cap) break;
      at++;
      if (!o.hidden) add(o);
    }
    if (at === all.length) return true;
    let chosen = 0; // behind those
    for (const o of el.selectedOptions) {
      if (chosen >= MAX_OPTIONS) break;
      if (o.index >= at && !o.hidden) { add(o); chosen++; }
    }
    if (all.length > at + chosen) node.kids.push((all.length - at - chosen) + ' more options; a snapshot of this ref lists all');
    return true;
  },
  a(el, node) { node.url = address(el); return false; },
  area(el, node) { node.url = address(el); return true; },
  img(el, node) {
    const map = el.useMap && document.querySelector('map[name="' + CSS.escape(el.useMap.slice(1)) + '"]');
    if (!map) return true;
    const areas = map.querySelectorAll('area[href]');
    for (const a of areas) {
      if (node.kids.length === MAX_AREAS) { node.states += ' [inside=' + (areas.length - MAX_AREAS) + ']'; break; }
      node.kids.push(Object.assign(new Entry('link', nameOf(a), ''), { number: numberOf(a), url: address(a), flags: 'i' }));
    }
    if (node.kids.length) node.name = node.name || 'map';
    return true;
  },
  map() { return true; },
  input() { return true; },
  textarea() { return true; },
  meter() { return true; },
  progress() { return true; },
  details(el, node, st) {
    if (el.open || [...el.children].some((c) => c.localName === 'summary')) return false;
    Object.assign(node, { role: 'button', name: 'Details', flags: 'i', number: numberOf(el), states: ' [collapsed]' });
    return true;
  },
  canvas(el, node) {
    const r = el.getBoundingClientRect();
    node.states += ' [box=' + [r.x, r.y, r.width, r.height].map(Math.round) + ']';
    return true;
  },
  video(el, node) { node.states += el.paused ? ' [paused]' : ' [playing]'; if (el.controls) node.flags = 'i'; return true; },
  audio(el, node) { node.states += el.paused ? ' [paused]' : ' [playing]'; if (el.controls) node.flags = 'i'; return !el.controls; },
  svg(el, node) { return node.role === 'img' && !el.querySelector('a,[tabindex],[role]'); },
  iframe(el, node) { node.flags = 'f'; return true; },
  frame(el, node) { node.flags = 'f'; return true; },
  object(el, node) { node.flags = 'f'; return el.contentWindow !== null; },
  embed(el, node) { node.flags = 'f'; return true; },
};

