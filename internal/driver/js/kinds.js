// Kinds: what is known of an element by its tag alone and of an entry by its
// role alone, as bits, so that one look-up tells all of it.
const SKIPPED = new Set(('script style template head noscript meta link base title param source track datalist defs ' +
  'clipPath mask marker pattern linearGradient radialGradient metadata symbol desc filter').split(' '));

// Printed only when they hold something; otherwise they are layout.
const FOLDED = new Set(['generic', 'none', 'presentation', 'rowgroup', 'emphasis', 'strong', 'subscript', 'superscript',
  'mark', 'time', 'code', 'legend', 'document', 'insertion', 'deletion', 'suggestion', 'directory', 'caption']);

// Roles without a function of their own that still get a ref: places to look
// into, or to take a picture of.
const PLACES = new Set(('banner main navigation complementary contentinfo region search form dialog alertdialog alert ' +
  'table grid treegrid tree list menu menubar tablist tabpanel toolbar radiogroup article figure img canvas video audio ' +
  'iframe feed application').split(' '));
PLACES.delete('list');

const NAME_SAYS_ALL = new Set(('button link checkbox radio switch option tab menuitem menuitemcheckbox menuitemradio ' +
  'heading tooltip').split(' '));

// What is typed or chosen, and has a look of the browser's own.
const TYPES = new Set(['input', 'select', 'textarea', 'iframe', 'canvas', 'video', 'audio']);

const HOSTS = new Set('div span section article aside main header footer nav p blockquote h1 h2 h3 h4 h5 h6'.split(' '));

// What is known of an element by its tag alone, as bits.
const SKIP = 1;
const ROOTED = 2;   // it may have a shadow root
const OWN = 4;      // a custom element
const CONTROLS = 8; // most of its kind can be acted on
const TITLED = 16;  // it may be named by more than its content and attributes

const tagBits = new Map();
for (const [bit, tags] of [[SKIP, SKIPPED], [ROOTED, [...HOSTS, 'body']], [CONTROLS, ['a', 'button', 'input', 'select', 'textarea', 'summary']],
  [TITLED, ('input select textarea meter output progress img area fieldset table figure optgroup option svg title desc ' +
    'iframe object g image circle ellipse line path polygon polyline rect').split(' ')]]) {
  for (const t of tags) tagBits.set(t, (tagBits.get(t) || 0) | bit);
}
const bitsOfTag = (tag) => tagBits.get(tag) ?? (tag.includes('-') ? OWN | ROOTED : 0);

// What is known of an entry by its role alone, as bits.
const ACTS = 1;
const FOLDS = 2;
const PLACE = 4;
const SAYS_ALL = 8;
const CELL = 16;
const BY_CONTENT = 32; // named by its content
const UNNAMED = 64;    // not named by an author's label

const roleBits = new Map();
for (const [bit, roles] of [[ACTS, ACTED_ON], [FOLDS, FOLDED], [PLACE, PLACES], [SAYS_ALL, NAME_SAYS_ALL],
  [CELL, ['cell', 'gridcell', 'columnheader', 'rowheader', 'treeitem']], [BY_CONTENT, FROM_CONTENT], [UNNAMED, NO_NAME]]) {
  for (const r of roles) roleBits.set(r, (roleBits.get(r) || 0) | bit);
}
const bitsOfRole = (role) => roleBits.get(role) || 0;
