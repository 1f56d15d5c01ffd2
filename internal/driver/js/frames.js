// Frames that share the process and the origin of the document around them are
// read with it: one evaluation for all of them. Which is which, the driver knows by
// the number that it gave each document when it read that alone for the first time.
let ownMark = 0;
const markNow = () => ownMark;

// ownerOf is the number, in the document around this one, of the element that
// this one is embedded by; 0 where that is out of reach.
const ownerOf = () => {
  try {
    return self.frameElement ? self.parent.reins.numberOf(self.frameElement) : 0;
  } catch {
    return 0;
  }
};

// walkAs reads this document, which the driver calls mark from now on.
const walkAs = async (mark) => {
  ownMark = mark;
  return { text: await walk(0), owner: ownerOf() };
};

const MAX_FRAMES = 1000;

// walkWith reads this document, or the subtree of element n, and of the documents
// below it those with wanted marks that can be reached from here.
const walkWith = async (n, wanted) => {
  const out = { text: await walk(n), frames: [] };
  const windows = [self];
  let turn = performance.now();
  for (const w of windows) {
    for (let i = 0; i < w.length && windows.length < MAX_FRAMES; i++) {
      try {
        const inner = w[i].reins; // throws when it is of another origin
        if (!inner) continue;
        windows.push(w[i]);
        const mark = inner.mark();
        if (!wanted.includes(mark)) continue;
        if (performance.now() - turn > SLICE) { await breath(); turn = performance.now(); }
        out.frames.push({ mark, text: await inner.walk(0) });
      } catch { /* it is read alone */ }
    }
  }
  return out;
};
