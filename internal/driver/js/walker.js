// The walker lives in the isolated world of every document.
(() => {
  if (globalThis.reins) return;
  globalThis.reins = {};
})();
