// The pages in a real Chromium against a server that plays a script:
// node pages.mjs FILES [PART]

import assert from "node:assert/strict";
import { accessible, launch, open, run, until } from "./kit.mjs";
import { defaultState, mock } from "./mock.mjs";

const files = process.argv[2];
const browser = await launch();
const faults = [];
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

/** A picture of one colour in each quarter, at the size that was asked for. */
const painter = await browser.newPage();
const drawn = new Map();
async function shop(v) {
  const width = Math.round(v.width * v.scale), height = Math.round(v.height * v.scale);
  const key = `${width}x${height}`;
  if (!drawn.has(key)) {
    drawn.set(key, painter.evaluate(async ([w, h]) => {
      const c = new OffscreenCanvas(w, h), x = c.getContext("2d");
      for (const [i, colour] of ["#c00", "#0c0", "#00c", "#cc0"].entries()) { x.fillStyle = colour; x.fillRect(i % 2 * w / 2, Math.floor(i / 2) * h / 2, w / 2, h / 2); }
      return [...new Uint8Array(await (await c.convertToBlob({ type: "image/jpeg", quality: 0.9 })).arrayBuffer())];
    }, [width, height]).then((b) => ({ width, height, bytes: Buffer.from(b) })));
  }
  return drawn.get(key);
}

/** A resource's page with its picture, and the server behind it. */
async function watch(options = {}, prepare = () => {}, query = "") {
  const m = await mock({ files, pictures: { shop } });
  prepare(m);
  const page = await open(browser, faults, options);
  await page.goto(m.url + "/r/demo/checkout" + query);
  await until("the picture", () => page.evaluate(() => !document.getElementById("glass").classList.contains("unseen")));
  await until("the window's size", () => m.sent.some((a) => a.verb === "set_viewport"));
  return { m, page, end: async () => { await page.context().close(); await m.close(); } };
}

const raw = (m, verb) => m.sent.filter((a) => a.verb === verb);
const text = (page, id) => page.evaluate((i) => document.getElementById(i).textContent, id);
const held = (s, more) => { s.control = { ...s.control, state: "human", since: new Date().toISOString(), expires: new Date(Date.now() + 90_000).toISOString(), ...more }; };
const request = { request: "q1", actor: "checkout-agent", reason: "Please type the code.", since: new Date().toISOString(), expires: new Date(Date.now() + 500_000).toISOString() };

/** Where on the screen a place of the page is. */
const spot = (page, m, x, y) => page.evaluate(([px, py, w, h]) => {
  const r = document.getElementById("glass").getBoundingClientRect();
  return { x: r.left + px / w * r.width, y: r.top + py / h * r.height };
}, [x, y, m.state.viewport.width, m.state.viewport.height]);

await run({
  // VIEW-1, VPT-1: one device pixel for each of the picture's; acknowledged once painted.
  async sharp() {
    for (const deviceScaleFactor of [1, 2]) {
      const { m, page, end } = await watch({ deviceScaleFactor });
      const shown = await until("the picture of that size", () => page.evaluate(([w]) => {
        const c = document.getElementById("canvas"), r = c.getBoundingClientRect();
        return c.width === w && { pixels: c.width, css: r.width, left: r.left };
      }, [Math.round(raw(m, "set_viewport").at(-1).width * deviceScaleFactor)]));
      assert.equal(raw(m, "set_viewport").length, 1, "the window's size is told once");
      assert.equal(raw(m, "set_viewport")[0].scale, deviceScaleFactor);
      assert.equal(shown.css * deviceScaleFactor, shown.pixels);
      assert.equal(shown.left * deviceScaleFactor % 1, 0, "on whole pixels");
      await until("every frame to be acknowledged", () => m.acks === m.sequence);
      await end();
    }
  },

  // B082: the place that is aimed at, at several windows, densities and shared sizes.
  async places() {
    for (const [viewport, cap, deviceScaleFactor] of [[{ width: 1280, height: 800 }, null, 1], [{ width: 1017, height: 611 }, null, 1.5], [{ width: 1440, height: 900 }, { width: 500, height: 700 }, 1], [{ width: 700, height: 900 }, { width: 640, height: 300 }, 2]]) {
      const { m, page, end } = await watch({ viewport, deviceScaleFactor }, (x) => { x.cap = cap; });
      await until("a picture of the effective size", () => page.evaluate(([w]) => document.getElementById("canvas").width === w, [Math.round(m.state.viewport.width * m.state.viewport.scale)]));
      const v = m.state.viewport;
      for (const [x, y] of [[3, 3], [v.width - 3, 3], [v.width / 2, v.height / 2], [40, v.height - 4], [v.width - 4, v.height - 4]]) {
        const at = await spot(page, m, x, y);
        await page.mouse.click(at.x, at.y);
        const down = await until("the click", () => raw(m, "pointer").findLast((a) => a.kind === "up") && raw(m, "pointer").findLast((a) => a.kind === "down"));
        assert.ok(Math.abs(down.x - x) <= 1 && Math.abs(down.y - y) <= 1, `${down.x},${down.y} for ${x},${y}`);
        assert.equal(down.viewport, v.revision);
        assert.equal(down.tab, "t1");
        m.sent.length = 0;
      }
      await end();
    }
  },

  // B093, OPS-3: a drag carries on outside and is let go there; moves are put together.
  async drag() {
    const { m, page, end } = await watch();
    const from = await spot(page, m, 300, 200);
    await page.mouse.move(from.x - 20, from.y);
    assert.equal(raw(m, "pointer").length, 0, "who only looks moves nothing");
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    for (let i = 0; i < 60; i++) await page.mouse.move(from.x + i, from.y + i);
    await page.mouse.move(1270, 20);
    await page.mouse.up();
    await until("the end of the drag", () => raw(m, "pointer").some((a) => a.kind === "up"));
    const kinds = raw(m, "pointer").map((a) => a.kind);
    assert.equal(kinds[0], "down");
    assert.equal(kinds.at(-1), "up");
    const up = raw(m, "pointer").at(-1);
    assert.ok(up.x > m.state.viewport.width || up.y < 0, "outside of the page");
    await page.mouse.click(from.x, from.y, { clickCount: 2 });
    await until("a double click", () => raw(m, "pointer").some((a) => a.kind === "down" && a.count === 2));
    await page.mouse.click(from.x, from.y, { button: "right" });
    await until("the right button", () => raw(m, "pointer").some((a) => a.kind === "up" && a.button === "right"));
    m.sent.length = 0;
    await page.mouse.wheel(0, 240);
    await until("the wheel", () => raw(m, "pointer").some((a) => a.kind === "wheel" && a.dy > 0));
    await end();
  },

  // INP-1, INP-3, B085: letters, shortcuts, other layouts, dead keys.
  async keys() {
    const { m, page, end } = await watch();
    const at = await spot(page, m, 300, 200);
    await page.mouse.click(at.x, at.y);
    m.sent.length = 0;
    await page.keyboard.press("a");
    await page.keyboard.press("Shift+A");
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await until("the last key", () => raw(m, "key").some((a) => a.key === "Tab" && a.kind === "up"));
    const downs = raw(m, "key").filter((a) => a.kind === "down");
    assert.deepEqual(downs.map((a) => [a.key, a.text ?? "", (a.modifiers ?? []).join()]), [
      ["a", "a", ""], ["Shift", "", "Shift"], ["A", "A", "Shift"], ["Control", "", "Control"], ["A", "", "Control"].map((x, i) => i === 0 ? downs[4].key : x), ["Enter", "\r", ""], ["Tab", "", ""],
    ]);
    assert.equal(raw(m, "key").filter((a) => a.kind === "up").length, downs.length, "everything is let go");
    assert.ok(await page.evaluate(() => document.activeElement.id === "keys"), "Tab stays in the page");
    m.sent.length = 0;
    // A German keyboard's AltGr+Q, as Windows tells it; then a dead key.
    await page.evaluate(() => {
      const k = document.getElementById("keys");
      const send = (type, o) => k.dispatchEvent(new KeyboardEvent(type, { bubbles: true, cancelable: true, ...o }));
      send("keydown", { key: "Control", code: "ControlLeft", ctrlKey: true });
      send("keydown", { key: "AltGraph", code: "AltRight", ctrlKey: true, altKey: true, modifierAltGraph: true });
      send("keydown", { key: "@", code: "KeyQ", ctrlKey: true, altKey: true, modifierAltGraph: true });
      send("keyup", { key: "@", code: "KeyQ", ctrlKey: true, altKey: true, modifierAltGraph: true });
      send("keydown", { key: "Dead", code: "BracketLeft" });
      send("keydown", { key: "ê", code: "KeyE" });
      send("keyup", { key: "ê", code: "KeyE" });
    });
    await until("both letters", () => raw(m, "key").filter((a) => a.text).length === 2);
    assert.deepEqual(raw(m, "key").filter((a) => a.text).map((a) => [a.text, a.code, a.modifiers ?? []]), [["@", "KeyQ", []], ["ê", "KeyE", []]]);
    assert.ok(raw(m, "key").some((a) => a.key === "Control" && a.kind === "up"), "the Control that is half of AltGr is not held");
    await end();
  },

  // INP-1: input methods, pasting, copying; B086: every character.
  async text() {
    const { m, page, end } = await watch({ permissions: ["clipboard-read", "clipboard-write"] });
    await page.evaluate(() => document.getElementById("keys").focus());
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Input.imeSetComposition", { text: "に", selectionStart: 1, selectionEnd: 1 });
    await cdp.send("Input.imeSetComposition", { text: "日本", selectionStart: 2, selectionEnd: 2 });
    await cdp.send("Input.insertText", { text: "日本" });
    await until("the composition", () => raw(m, "insert_text").some((a) => !a.compose));
    assert.deepEqual(raw(m, "insert_text").map((a) => [a.text, !!a.compose]), [["に", true], ["日本", true], ["日本", false]]);
    m.sent.length = 0;
    await cdp.send("Input.insertText", { text: "🧭" });
    await until("a picked character", () => raw(m, "insert_text").some((a) => a.text === "🧭"));
    const sample = "測試 тест हिन्दी 🧭\nsecond “quoted” é";
    await page.evaluate((s) => navigator.clipboard.writeText(s), sample);
    await page.keyboard.press("Control+V");
    await until("the pasted text", () => raw(m, "clipboard").some((a) => a.kind === "paste" && a.text === sample));
    m.answers.clipboard = { clipboard: sample + "!" };
    await page.keyboard.press("Control+C");
    await until("the copied text", () => page.evaluate((s) => navigator.clipboard.readText().then((t) => t === s), sample + "!"));
    // A keyboard on a screen tells of no keys.
    m.sent.length = 0;
    await page.evaluate(() => {
      const k = document.getElementById("keys");
      k.dispatchEvent(new InputEvent("beforeinput", { bubbles: true, cancelable: true, inputType: "deleteContentBackward" }));
      k.dispatchEvent(new InputEvent("beforeinput", { bubbles: true, cancelable: true, inputType: "insertLineBreak" }));
    });
    await until("its keys", () => raw(m, "key").length === 4);
    assert.deepEqual(raw(m, "key").map((a) => a.key + a.kind), ["Backspacedown", "Backspaceup", "Enterdown", "Enterup"]);
    await end();
  },

  // B084: nothing stays held when the person is elsewhere.
  async held() {
    const { m, page, end } = await watch();
    const at = await spot(page, m, 300, 200);
    await page.mouse.click(at.x, at.y);
    for (const leave of ["blur", "hidden"]) {
      m.sent.length = 0;
      await page.keyboard.down("Shift");
      await page.mouse.down();
      await until("both to be down", () => m.sent.some((a) => a.key === "Shift") && m.sent.some((a) => a.kind === "down" && a.verb === "pointer"));
      await page.evaluate((how) => {
        if (how === "blur") window.dispatchEvent(new Event("blur"));
        else {
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
          delete document.hidden;
          document.dispatchEvent(new Event("visibilitychange"));
        }
      }, leave);
      await until("both to be up", () => m.sent.some((a) => a.key === "Shift" && a.kind === "up") && m.sent.some((a) => a.kind === "up" && a.verb === "pointer"));
      await page.mouse.up();
      await page.keyboard.up("Shift");
    }
    // A modifier that was let go in another window.
    m.sent.length = 0;
    await page.keyboard.down("Control");
    await until("Control", () => m.sent.some((a) => a.key === "Control"));
    await page.evaluate(() => document.getElementById("glass").dispatchEvent(new PointerEvent("pointermove", { bubbles: true, ctrlKey: false, pointerType: "mouse" })));
    await until("Control to be up", () => m.sent.some((a) => a.key === "Control" && a.kind === "up"));
    await end();
  },

  // CTL, B126: who has control, until when, and why one's own input does nothing.
  async control() {
    const { m, page, end } = await watch();
    let grant = () => {};
    m.answers.request_control = () => new Promise((r) => { grant = () => { held(m.state, { actor: "maria", mine: true }); m.push(); r({ control: m.state.control }); }; });
    m.state.control.state = "agent-active";
    m.push();
    await until("the agent's work", async () => (await page.getAttribute("body", "data-driver")) === "agent");
    await page.click("#take");
    await until("the request", () => m.ops.some((a) => a.verb === "request_control"));
    await until("what it waits for", async () => (await text(page, "pilot-title")) === "Waiting for the agent");
    await page.click("#halt");
    await until("the stop", () => m.ops.some((a) => a.verb === "stop_agents"));
    grant();
    await until("control", async () => (await text(page, "pilot-title")) === "You have control");
    await until("the keyboard with it", () => page.evaluate(() => document.activeElement.id === "keys"));
    assert.match(await text(page, "ring-text"), /^[01]:\d\d$/);
    await page.click("#extend");
    await until("more time", () => m.ops.some((a) => a.verb === "renew_control"));
    await page.click("#take");
    await until("the hand-back", () => m.ops.some((a) => a.verb === "release_control"));
    held(m.state, { actor: "Jonas Weber", mine: false });
    m.push();
    await until("another's control", async () => (await page.getAttribute("#take", "aria-disabled")) === "true");
    assert.match(await text(page, "pilot-text"), /^has control until \d\d:\d\d:\d\d/);
    m.sent.length = 0;
    const at = await spot(page, m, 300, 200);
    await page.mouse.click(at.x, at.y);
    await until("the reason", async () => /Jonas Weber has control until .* do nothing/.test(await text(page, "hint")));
    await page.keyboard.press("x");
    assert.deepEqual(m.sent, [], "nothing was sent");
    await end();
  },

  // CTL-8, B127: a request cannot be missed, and is answered with a note.
  async request() {
    const { m, page, end } = await watch();
    m.answers.request_control = () => { held(m.state, { actor: "maria", mine: true }); m.push(); return { control: m.state.control }; };
    m.state.control.requests = [request];
    m.push();
    await until("the banner", () => page.isVisible("#request"));
    await until("the title", async () => /Needs you/.test(await page.title()));
    assert.match(await page.getAttribute("#favicon", "href"), /calls/);
    assert.match(await text(page, "urgent"), /checkout-agent needs you: Please type the code/);
    const size = m.state.viewport.revision;
    await page.click("#request-help");
    await until("the help", async () => (await text(page, "request-title")) === "You help checkout-agent");
    assert.equal(m.state.viewport.revision, size, "the banner changes no page's size");
    await page.fill("#note", "It was 123456");
    await page.click("#take"); // hands back, and with it answers
    await until("the answer", () => m.ops.some((a) => a.verb === "answer_human" && a.request === "q1" && a.note === "It was 123456" && !a.decline));
    m.state.control = { ...m.state.control, state: "agent", requests: [{ ...request, request: "q2" }] };
    m.push();
    await page.click("#request-decline");
    await until("the refusal", () => m.ops.some((a) => a.verb === "answer_human" && a.request === "q2" && a.decline));
    m.state.control.requests = [];
    m.push();
    await until("calm", async () => !(await page.isVisible("#request")) && !/Needs you/.test(await page.title()));
    await end();
  },

  // SNAP-8: the page's own dialogs are answered here.
  async dialogs() {
    const { m, page, end } = await watch();
    m.state.dialog = { kind: "prompt", message: "Your pet?", default: "cat" };
    m.push();
    await until("the dialog", () => page.isVisible("#ask"));
    await page.fill("#ask-input", "dog");
    await page.click("#ask-yes");
    await until("the answer", () => m.ops.some((a) => a.verb === "click" && a.ref === "dialog-accept"));
    assert.deepEqual(m.ops.filter((a) => a.ref).map((a) => [a.ref, a.value]), [["dialog-prompt", "dog"], ["dialog-accept", undefined]]);
    m.state.dialog = { kind: "confirm", message: "Sure?" };
    m.push();
    await page.click("#ask-no");
    await until("the no", () => m.ops.some((a) => a.ref === "dialog-dismiss"));
    await end();
  },

  // VIEW-3, B081, B124: a broken line mends under the same lease, and a dead one is noticed.
  async lines() {
    const { m, page, end } = await watch();
    m.refuse = true;
    m.cut();
    await until("the break to be seen", async () => (await page.getAttribute("#pill", "data-is")) === "waiting");
    await until("the cover", () => page.isVisible("#cover h2"));
    m.refuse = false;
    await until("the line again", async () => (await page.getAttribute("#pill", "data-is")) === "live");
    assert.match(m.lastDial, /take=1/);
    await until("no cover", async () => !(await page.isVisible("#cover")));
    m.say({ end: { code: "browser_ended", message: "The browser ended." } });
    await until("the next browser", () => m.sockets.size === 1 && page.getAttribute("#pill", "data-is").then((x) => x === "live"));
    m.say({ end: { code: "lease_ended", message: "The lease was revoked." } });
    m.cut();
    await until("the end", async () => (await text(page, "cover")).includes("Your access ended"));
    assert.equal(await page.getAttribute("#pill", "data-is"), "ended");
    await page.click("#cover button");
    await until("a new beginning", async () => (await page.getAttribute("#pill", "data-is")) === "live");
    await end();
  },

  // B080: a still page is not a dead line.
  async silence() {
    const m = await mock({ files, pictures: { shop } });
    const page = await open(browser, faults);
    await page.clock.install();
    await page.goto(m.url + "/r/demo/checkout");
    await until("the picture", () => page.evaluate(() => !document.getElementById("glass").classList.contains("unseen")));
    await page.clock.runFor(40_000);
    assert.equal(await page.getAttribute("#pill", "data-is"), "live", "a line on which nothing changes is asked, and answers");
    await until("stillness", async () => { await page.clock.runFor(500); return /still/.test(await text(page, "pill-pace")); });
    m.silent = true;
    const dead = [...m.sockets][0];
    await until("the dead line to be left", async () => { await page.clock.runFor(4_000); return dead.readyState > 1; });
    m.silent = false;
    m.cut();
    await until("a live one", async () => { await page.clock.runFor(1_000); return (await page.getAttribute("#pill", "data-is")) === "live"; });
    await page.context().close();
    await m.close();
  },

  // VIEW-3: without a mouse.
  async keyboard() {
    const { m, page, end } = await watch();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    const seen = new Set();
    for (let i = 0; i < 40 && !seen.has("keys"); i++) {
      await page.keyboard.press("Tab");
      seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
    }
    for (const id of ["home", "pill", "side-toggle", "menu-toggle", "back", "address", "keys"]) assert.ok(seen.has(id), `${id} among ${[...seen]}`);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await until("the way out", () => page.evaluate(() => document.activeElement.id === "take"));
    assert.equal(raw(m, "key").filter((a) => a.key === "Escape" && a.kind === "down").length, 1, "the first Escape is the page's");
    await page.focus("#tabs [role=tab]");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await until("the other tab", () => m.ops.some((a) => a.verb === "select_tab" && a.tab === "t2"));
    await page.keyboard.press("Delete");
    await until("it to close", () => m.ops.some((a) => a.verb === "close_tab" && a.tab === "t2"));
    await page.focus("#address");
    await page.keyboard.type("example.com/a b");
    await page.keyboard.press("Enter");
    assert.equal(await page.getAttribute("#address", "aria-invalid"), "true");
    await page.fill("#address", "example.com/path");
    await page.keyboard.press("Enter");
    await until("the address", () => m.ops.some((a) => a.verb === "navigate" && a.url === "https://example.com/path"));
    await end();
  },

  // VIEW-3: a phone. One finger is the page's, two enlarge.
  async phone() {
    const { m, page, end } = await watch(phone);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the screen");
    const at = await spot(page, m, 120, 150);
    await page.touchscreen.tap(at.x, at.y);
    await until("the tap", () => raw(m, "touch").some((a) => a.kind === "end"));
    const [start, stop] = [raw(m, "touch")[0], raw(m, "touch").at(-1)];
    assert.equal(start.kind, "start");
    assert.ok(Math.abs(start.points[0].x - 120) <= 1 && Math.abs(start.points[0].y - 150) <= 1, JSON.stringify(start));
    assert.deepEqual(stop.points, []);
    assert.equal(raw(m, "pointer").length, 0, "a tap is no mouse besides");
    const cdp = await page.context().newCDPSession(page);
    const fingers = (type, ...points) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
    await fingers("touchStart", [150, 300], [230, 300]);
    await fingers("touchMove", [110, 300], [270, 300]);
    await fingers("touchEnd");
    await until("a larger picture", () => page.isVisible("#unzoom"));
    assert.equal(raw(m, "touch").at(-1).kind, "cancel", "the page saw no tap of it");
    const near = await spot(page, m, 130, 160);
    m.sent.length = 0;
    await page.touchscreen.tap(near.x, near.y);
    await until("a tap on the larger picture", () => raw(m, "touch").some((a) => a.kind === "end"));
    assert.ok(Math.abs(raw(m, "touch")[0].points[0].x - 130) <= 1);
    await page.tap("#unzoom");
    await page.tap("#keyboard");
    await until("the keyboard", () => page.evaluate(() => document.activeElement.id === "keys"));
    await end();
  },

  // VIEW-1: what happens reads like sentences, and is shown where it happens.
  async telling() {
    const { m, page, end } = await watch();
    const lines = await page.$$eval("#activity li", (all) => all.map((e) => e.firstElementChild.textContent));
    assert.ok(lines.includes("checkout-agent clicked button “Accept cookies”"), lines.join("\n"));
    assert.ok(lines.includes("checkout-agent could not click button “Add to basket”: it is hidden, moving, disabled or covered"));
    assert.ok(lines.includes("You took control") && lines.includes("Jonas Weber used the mouse"));
    m.state.control.state = "agent-active";
    m.state.operation = { operation: "z1", actor: "checkout-agent", role: "agent", verb: "fill", tab: "t1", target: { role: "textbox", name: "Card number" }, box: { x: 100, y: 120, width: 200, height: 40 }, started: new Date().toISOString() };
    m.state.cursor = { tab: "t1", x: 200, y: 140, actor: "checkout-agent", role: "agent" };
    m.push();
    await until("the sentence", async () => (await text(page, "pilot-text")) === "is filling field “Card number”");
    const at = await page.evaluate(() => ["box", "cursor", "glass"].map((id) => document.getElementById(id).getBoundingClientRect().toJSON()));
    const s = at[2].width / m.state.viewport.width;
    assert.ok(Math.abs(at[0].left - at[2].left - 97 * s) < 8 && Math.abs(at[0].top - at[2].top - 117 * s) < 8, JSON.stringify(at));
    m.artifacts = [{ artifact: "txt1", kind: "download", media_type: "text/plain", size: 40, created: new Date().toISOString(), name: "order.txt" }];
    await page.click("#tab-files");
    await page.click("#files .pic");
    await until("the preview", async () => (await text(page, "preview-body")).includes("Total: 129.00"));
    const saved = page.waitForEvent("download");
    await page.click("#preview-save");
    assert.equal((await saved).suggestedFilename(), "order.txt");
    await page.click("#preview-close");
    m.answers.read = { reading: { markdown: "# Payment" } };
    await page.click("#tab-text");
    await page.click("#text-read");
    await until("the text", async () => (await text(page, "text")) === "# Payment");
    // VIEW-6: what is inside of the cell.
    m.answers.inspect = { inspection: { incarnation: 1, processes: [{ pid: 7, name: "renderer", memory: 48 << 20 }, { pid: 1, name: "init", memory: 4 << 20 }],
      connections: [{ host: "shop.example", port: 443, since: new Date().toISOString(), up: 2000, down: 48000 }], files: [] } };
    await page.click("#tab-inside");
    await until("the processes", async () => (await text(page, "inside-processes")).startsWith("renderer"));
    assert.match(await text(page, "inside-connections"), /shop\.example:443/);
    assert.match(await text(page, "inside-files"), /empty/);
    await accessible(page, "the inspector");
    await page.click("#tab-activity");
    const asked = m.ops.filter((o) => o.verb === "inspect").length;
    await page.click("#tab-inside");
    await until("another look", () => m.ops.filter((o) => o.verb === "inspect").length > asked);
    await end();
  },

  // VIEW-1, VIEW-3: every state, dark and light, wide and narrow, and axe has nothing to say.
  async states() {
    const states = {
      idle: () => {}, request: (m) => { m.state.control.requests = [request]; }, mine: (m) => held(m.state, { actor: "maria", mine: true }), other: (m) => held(m.state, { actor: "Jonas Weber" }),
      dialog: (m) => { m.state.dialog = { kind: "confirm", message: "Sure?" }; }, stopped: (m) => { m.state.state = "stopped"; m.state.tabs = []; }, starting: (m) => { m.state.state = "starting"; },
      crashed: (m) => { m.state.tabs[0].crashed = true; }, failed: (m) => { m.state.state = "error"; m.state.tabs = null; m.state.activities = null; m.state.participants = null; },
    };
    for (const [options, scheme] of [[{}, "light"], [{}, "dark"], [phone, "dark"]]) {
      const { m, page, end } = await watch({ ...options, colorScheme: scheme, reducedMotion: "reduce" });
      for (const [name, change] of Object.entries(states)) {
        m.state = { ...defaultState(), viewport: m.state.viewport };
        change(m);
        m.push();
        if (m.state.state === "running") m.frame();
        await until(name, async () => (await page.evaluate(() => document.getElementById("cover").hidden)) === (m.state.state === "running" && name !== "crashed"));
        if (scheme === "light" || options === phone && ["idle", "request", "mine"].includes(name)) await accessible(page, `${name}, ${scheme}${options === phone ? ", phone" : ""}`);
        else if (["request", "mine", "other"].includes(name)) await accessible(page, `${name}, dark`);
      }
      m.say({ end: { code: "lease_ended", message: "The lease was revoked." } });
      await until("the end", async () => (await text(page, "cover")).includes("Your access ended"));
      await accessible(page, "ended");
      await end();
    }
  },

  // API-3: the secret leaves the address, and is posted once.
  async join() {
    const m = await mock({ files, pictures: { shop } });
    m.signedIn = false;
    m.resource = { project: "demo", id: "checkout" };
    const page = await open(browser, faults);
    await page.goto(m.url + "/join#good-secret");
    await until("the resource", () => page.evaluate(() => location.pathname === "/r/demo/checkout"));
    await page.goto(m.url + "/join#good-secret");
    await until("the refusal", async () => (await text(page, "title")) === "This link does not open any more");
    assert.equal(new URL(page.url()).hash, "");
    await until("the way on", () => page.isVisible("#go"));
    await accessible(page, "a used link");
    m.signedIn = false;
    await page.goto(m.url + "/r/demo/checkout");
    await until("the closed door", async () => (await text(page, "cover")).includes("You need a link"));
    await accessible(page, "signed out");
    await page.context().close();
    await m.close();
  },

  // VIEW-2: who waits for a person comes first; start and terminate.
  async index() {
    const m = await mock({ files, pictures: { shop } });
    const row = (resource, more) => ({ key: { project: "demo", resource }, created: "", incarnation: 1, state: "running", readiness: { overall: "ready" }, participants: 1, control: { state: "agent", active_agents: 0, availability: "available" }, ...more });
    const page = await open(browser, faults);
    await page.goto(m.url + "/");
    await until("what to do first", async () => (await text(page, "cover")).includes("No browsers yet"));
    await accessible(page, "no browsers");
    m.rows = [row("alpha"), row("beta", { state: "stopped" }), row("gamma", { control: { state: "agent", active_agents: 0, availability: "available", requests: [request] } })];
    m.events.write(`event: event\ndata: ${JSON.stringify({ kind: "registered" })}\n\n`);
    await until("the list", async () => (await page.locator(".browser-card h3").allTextContents()).join() === "gamma,alpha,beta");
    await until("small pictures", async () => { m.frame(); return (await page.locator(".thumb.seen").count()) === 2; });
    await until("a word of the request", async () => /Needs you/.test(await page.title()));
    await accessible(page, "the list");
    await page.click("[aria-label='Start beta']");
    await until("the start", () => m.ops.some((a) => a.verb === "start" && a.resource === "beta"));
    await page.click("[aria-label='End alpha']");
    await page.click("#sure [value=no]");
    await page.click("[aria-label='End alpha']");
    await page.click("#sure [value=yes]");
    await until("the end", () => m.ops.some((a) => a.verb === "terminate" && a.resource === "alpha"));
    assert.equal(m.ops.filter((a) => a.verb === "terminate").length, 1);
    await page.context().close();
    await m.close();
  },

  // VIEW-5: in a host's page there is less around the picture.
  async embedded() {
    const { page, end } = await watch({}, () => {}, "?embed=1");
    assert.ok(!(await page.isVisible("#home")) && !(await page.isVisible("#side")) && await page.isVisible("#take"));
    await accessible(page, "embedded");
    await end();
  },
}, process.argv[3]);

await browser.close();
if (faults.length) {
  console.error("FAIL the pages had faults:\n" + faults.join("\n"));
  process.exitCode = 1;
}
process.exit();
