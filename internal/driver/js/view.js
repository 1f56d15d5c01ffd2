// The live view: when a page is laid out for its viewport, and the clipboard.

// laidOut waits until the window has a size and has been painted with it, at
// most ms; it tells whether it has.
const laidOut = (width, height, scale, ms) => new Promise((done) => {
  let painted = 0;
  const is = () => innerWidth === width && innerHeight === height && Math.abs(devicePixelRatio - scale) < 0.01;
  const late = setTimeout(() => done(false), ms);
  const look = () => {
    if (is()) painted++;
    if (painted < 3) return void requestAnimationFrame(look);
    clearTimeout(late);
    done(true);
  };
  requestAnimationFrame(look);
});
