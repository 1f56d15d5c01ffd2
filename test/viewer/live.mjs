// The page against a real reins serve with a real sealed browser:
// node live.mjs REINS DIRECTORY [PART]

import assert from "node:assert/strict";
import { createServer, connect } from "node:net";
import { launch, open, run, until, accessible } from "./kit.mjs";
import { Reins, site } from "./reins.mjs";

const sample = "測試 тест हिन्दी 🧭👨‍🌾\nsecond line “quoted” éè";
const grid = `<!doctype html><title>Grid</title><style>html,body{margin:0;height:100%;overflow:hidden}#g{display:grid;grid-template-columns:repeat(24,minmax(0,1fr));grid-template-rows:repeat(14,minmax(0,1fr));height:100vh}#g button{font:9px monospace;padding:0;overflow:hidden}</style><div id="g"></div><output id="result" style="position:fixed;left:2px;bottom:2px;background:#ff9;pointer-events:none">waiting</output>
<script>for(let r=0;r<14;r++)for(let c=0;c<24;c++){const b=document.createElement("button");b.textContent="r"+r+"c"+c;g.append(b)}addEventListener("click",e=>{result.textContent=e.target.textContent+" "+e.pointerType+" in "+innerWidth+"x"+innerHeight+" dpr "+devicePixelRatio})</script>`;
const form = `<!doctype html><title>Form</title><h1>Form</h1><label>Field <input id="i" size="40"></label><p><output id="result">nothing held</output> <output id="typed"></output></p>
<textarea id="src" rows="3" cols="40" readonly aria-label="Sample"></textarea><textarea id="dst" rows="3" cols="40" aria-label="Paste here"></textarea><output id="equal">waiting</output><button onclick="this.textContent=confirm('Really?')?'yes':'no'">Ask</button>
<script>src.value=${JSON.stringify(sample)};const down=new Set;let btn=0;const show=()=>{result.textContent=down.size||btn?"held: "+[...down].join("+")+" "+btn:"nothing held"};
addEventListener("keydown",e=>{down.add(e.code);show()},true);addEventListener("keyup",e=>{down.delete(e.code);show()},true);for(const t of["pointerdown","pointerup","pointermove"])addEventListener(t,e=>{btn=e.buttons;show()},true);
i.oninput=()=>{typed.textContent="value "+i.value};dst.oninput=()=>{equal.textContent=dst.value===src.value?"PASS equal":"differs: "+dst.value}</script>`;
const drags = `<!doctype html><title>Drag</title><style>body{margin:20px}#bar{width:300px;height:24px;background:#ddd;position:relative;touch-action:none}#k{position:absolute;width:24px;height:24px;background:#36c}.z{display:inline-block;width:120px;height:60px;border:1px solid;margin:8px;vertical-align:top}</style>
<div id="bar"><div id="k"></div></div><div class="z" id="from"><div id="item" draggable="true" style="background:#fc9">Parcel</div></div><div class="z" id="to">To</div><p id="txt">Select exactly these four words please.</p><output id="result">waiting</output>
<script>let on=false;const say=t=>{result.textContent=t};k.onpointerdown=e=>{on=true;k.setPointerCapture(e.pointerId)};k.onpointerup=()=>{on=false;say("level "+Math.round(k.offsetLeft/2.76))};k.onpointermove=e=>{if(!on)return;if(!(e.buttons&1)){say("FAIL move without button");return}k.style.left=Math.max(0,Math.min(276,e.clientX-bar.getBoundingClientRect().left-12))+"px"};
item.ondragstart=e=>e.dataTransfer.setData("text/plain","parcel");to.ondragover=e=>e.preventDefault();to.ondrop=e=>{e.preventDefault();to.append(item);say("dropped "+e.dataTransfer.getData("text/plain"))};document.addEventListener("selectionchange",()=>{const s=String(getSelection());if(s)say("selected "+s)})</script>`;
// B127: the code is only in the picture, and the page changes without a navigation.
const factor = `<!doctype html><title>Second step</title><h1>Second step</h1><label>Note <input id="note"></label><label>Code <input id="k" style="position:fixed;left:40px;top:200px;width:200px;height:30px"></label><button id="v" style="position:fixed;left:40px;top:260px;width:120px;height:40px">Verify</button><output id="result">not signed in</output>
<script>v.onclick=()=>{if(k.value==="493817"){v.remove();result.textContent="signed in, note: "+note.value}else result.textContent="wrong code"}</script>`;
const noise = `<!doctype html><title>Noise</title><style>body{margin:0;overflow:hidden}canvas{width:100vw;height:100vh;image-rendering:pixelated}</style><canvas id="c" width="320" height="180"></canvas>
<script>const x=c.getContext("2d"),d=x.createImageData(320,180);let n=0;(function f(){for(let i=0;i<d.data.length;i+=4){const v=Math.random()*256;d.data[i]=v;d.data[i+1]=v*3;d.data[i+2]=v*7;d.data[i+3]=255}x.putImageData(d,0,0);document.title="n"+(++n);requestAnimationFrame(f)})()</script>`;
const colour = (c) => `<!doctype html><title>${c}</title><style>html{background:${c}}</style>`;

const small = await site({ "/grid": grid, "/form": form, "/drag": drags, "/factor": factor, "/noise": noise, "/red": colour("#e01010"), "/blue": colour("#1010e0") });
const reins = await new Reins(process.argv[2], process.argv[3], ["--drain", "0s", "--session-life", "1h"]).start();
const browser = await launch();
const faults = [];

/** An agent with a browser of its own on a page, and a person who came by a link and sees it. */
async function watched(name, path, options = {}) {
  const agent = await reins.agent(name, [small.host]);
  await agent.act({ verb: "navigate", url: small.url + path });
  const page = await person("mira", name, options);
  return { agent, page };
}

async function person(actor, resource, options = {}) {
  const page = await open(browser, faults, { permissions: ["clipboard-read", "clipboard-write"], ...options });
  await page.goto(await reins.link(actor, { resource: { project: "demo", id: resource } }));
  await until("the resource", () => new URL(page.url()).pathname === `/r/demo/${resource}`);
  await pictured(page);
  return page;
}

const pictured = (page) => until("a picture", () => page.evaluate(() => !document.getElementById("glass").classList.contains("unseen")), 60_000);
const text = (page, id) => page.evaluate((i) => document.getElementById(i).textContent, id);
const live = (page) => until("a live line", async () => (await page.getAttribute("#pill", "data-is")) === "live" && !(await page.isVisible("#cover")), 60_000);

/** The size of the page as the picture has it, once the picture is as wide as the window, so many pixels for each of its own. */
const sized = (page, density = 1) => until("the window's size", () => page.evaluate((d) => {
  const c = document.getElementById("canvas"), r = c.getBoundingClientRect(), s = document.getElementById("stage").getBoundingClientRect();
  return Math.abs(r.width - Math.floor(s.width)) < 2 && Math.abs(c.width - r.width * d) < 2 && { left: r.left, top: r.top, width: r.width, height: r.height };
}, density), 60_000);

/** Whether a point of the picture has about a colour. */
const shows = (page, want) => until(`${want} in the picture`, async () => {
  const got = await page.evaluate(() => {
    const c = document.getElementById("canvas");
    return [...c.getContext("2d").getImageData(c.width / 2, c.height / 2, 1, 1).data].slice(0, 3);
  });
  return got.every((v, i) => Math.abs(v - want[i]) < 40);
}, 60_000);

/** A line that lets so many bytes a second through, towards the page. */
async function slow(port, rate) {
  const server = createServer((page) => {
    const up = connect(port, "127.0.0.1");
    page.pipe(up);
    up.on("data", (b) => { up.pause(); page.write(b); setTimeout(() => up.resume(), b.length / rate * 1000); });
    for (const [a, b] of [[page, up], [up, page]]) { a.on("error", () => b.destroy()); a.on("close", () => b.destroy()); }
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { port: server.address().port, close: () => server.close() };
}

await run({
  // VIEW-1, FRM-12, B080, B090: a picture at once, of a still page; it follows; tabs.
  async watch() {
    const { agent, page } = await watched("watch", "/red");
    await shows(page, [0xe0, 0x10, 0x10]);
    await page.reload();
    await pictured(page);
    await shows(page, [0xe0, 0x10, 0x10]);
    await agent.act({ verb: "navigate", url: small.url + "/blue" });
    await shows(page, [0x10, 0x10, 0xe0]);
    await until("what happened", async () => /watch-agent opened/.test(await page.textContent("#activity")));
    await agent.act({ verb: "open_tab", url: small.url + "/red" });
    await shows(page, [0xe0, 0x10, 0x10]);
    await page.click("#tabs .tab:first-child [role=tab]");
    await shows(page, [0x10, 0x10, 0xe0]);
    await page.fill("#address", small.host + "/red");
    await page.keyboard.press("Enter");
    await shows(page, [0xe0, 0x10, 0x10]);
    await page.click("#back");
    await shows(page, [0x10, 0x10, 0xe0]);
    await accessible(page, "a real browser");
    await page.context().close();
  },

  // B082, VPT-1: the cell that is aimed at, in windows of several sizes, by mouse and by finger.
  async places() {
    const { agent, page } = await watched("places", "/grid");
    const aim = async (p, r, c, how) => {
      const at = await p.evaluate(() => document.getElementById("canvas").getBoundingClientRect().toJSON());
      const [x, y] = [at.left + (c + 0.5) / 24 * at.width, at.top + (r + 0.5) / 14 * at.height];
      await (how === "touch" ? p.touchscreen.tap(x, y) : p.mouse.click(x, y));
      await agent.see(`r${r}c${c} ${how}`);
    };
    for (const size of [{ width: 1280, height: 800 }, { width: 1003, height: 640 }]) {
      await page.setViewportSize(size);
      await sized(page);
      for (const [r, c] of [[0, 0], [13, 23], [7, 11]]) await aim(page, r, c, "mouse");
    }
    const phone = await person("noor", "places", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
    await sized(phone); // the other has one pixel for each of the page's, so all have
    for (const [r, c] of [[0, 2], [12, 22]]) await aim(phone, r, c, "touch");
    // Two of different size share the smaller one; it is right for the larger, too.
    await until("the shared size", async () => /(\d+) × /.exec(await agent.see(" in ").then((t) => t.replace(/x/g, " × ")))?.[1] < 400);
    await aim(page, 5, 6, "mouse");
    await phone.context().close();
    await sized(page);
    await page.context().close();
  },

  // INP-1, B084, B085, B086: keys, letters, the clipboard; nothing stays held.
  async input() {
    const { agent, page } = await watched("input", "/form");
    const box = await sized(page);
    const at = async (name) => {
      const place = { Field: [150, 95], Sample: [120, 170], Paste: [450, 170] }[name];
      await page.mouse.click(box.left + place[0], box.top + place[1]);
    };
    await at("Field");
    await page.keyboard.type("violet Zäy€");
    await agent.see("value violet Zäy€");
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Backspace");
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Input.imeSetComposition", { text: "にほ", selectionStart: 2, selectionEnd: 2 });
    await cdp.send("Input.insertText", { text: "日本" });
    await agent.see("value 日本");
    await page.keyboard.down("Shift");
    await agent.see("held: ShiftLeft");
    await page.evaluate(() => window.dispatchEvent(new Event("blur")));
    await agent.see("nothing held");
    await page.keyboard.up("Shift");
    await at("Sample");
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Control+C");
    await until("the copied text", async () => (await page.evaluate(() => navigator.clipboard.readText())) === sample);
    await at("Paste");
    await page.keyboard.press("Control+V");
    await agent.see("PASS equal");
    await agent.act({ verb: "click", ref: await agent.ref("button", "Ask") });
    await until("the page's question", () => page.isVisible("#ask"));
    assert.equal(await text(page, "ask-text"), "Really?");
    await page.click("#ask-yes");
    await agent.see('button "yes"');
    await page.context().close();
  },

  // B093: a slider, a native drag, a selection.
  async drag() {
    const { agent, page } = await watched("drag", "/drag");
    const box = await sized(page);
    const go = async (...points) => {
      await page.mouse.move(box.left + points[0][0], box.top + points[0][1]);
      await page.mouse.down();
      for (const [x, y] of points.slice(1)) await page.mouse.move(box.left + x, box.top + y, { steps: 8 });
      await page.mouse.up();
    };
    await page.mouse.click(box.left + 600, box.top + 300);
    await go([32, 32], [170, 32], [170, 400], [170, 32]);
    await agent.see("level 50");
    await go([60, 62], [120, 80], [230, 80]);
    await agent.see("dropped parcel");
    await go([22, 155], [500, 155]);
    await agent.see("selected Select exactly these four words please.");
    await page.context().close();
  },

  // CTL, CTL-8, B127, B126: the agent asks, a person takes over, types, hands back with a word.
  async handoff() {
    const { agent, page } = await watched("handoff", "/factor");
    const second = await person("noor", "handoff");
    await agent.act({ verb: "fill", ref: await agent.ref("Note"), value: "kept" });
    const asked = agent.act({ verb: "request_human", reason: "Type the code that is on your phone" });
    asked.catch(() => {}); // it is waited for below
    await until("the request", () => page.isVisible("#request"));
    assert.match(await page.title(), /Needs you/);
    await page.click("#request-help");
    await until("control", async () => (await text(page, "pilot-title")) === "You have control", 60_000);
    await assert.rejects(agent.act({ verb: "click", ref: "f1e1" }), { code: "human_controlled" });
    await until("the other to be told", async () => (await text(second, "pilot-title")) === "mira");
    const there = await second.evaluate(() => document.getElementById("canvas").getBoundingClientRect().toJSON());
    await second.mouse.click(there.left + 60, there.top + 60);
    await until("why it does nothing", async () => /^mira has control until/.test(await text(second, "hint")));
    const at = async (x, y) => {
      const [box, v] = await page.evaluate(() => [document.getElementById("canvas").getBoundingClientRect().toJSON(), document.getElementById("canvas").width / devicePixelRatio]);
      await page.mouse.click(box.left + x * box.width / v, box.top + y * box.width / v);
    };
    await at(100, 215);
    await page.keyboard.type("493817");
    await at(80, 280);
    await page.fill("#note", "signed in for you");
    await page.click("#request-done");
    const answer = (await asked).human;
    assert.deepEqual([answer.outcome, answer.actor, answer.note], ["done", "mira", "signed in for you"]);
    await agent.see("signed in, note: kept");
    await until("the agent's turn", async () => (await text(page, "pilot-title")) !== "You have control");
    await page.context().close();
    await second.context().close();
  },

  // B088, FRM-3, FRM-11: a slow line skips and stays current; the fast one is not held up.
  async slow() {
    const { page } = await watched("slow", "/noise");
    const line = await slow(reins.port, 400_000);
    const link = new URL(await reins.link("noor", { resource: { project: "demo", id: "slow" } }));
    link.port = String(line.port);
    const late = await open(browser, faults);
    await late.goto(String(link));
    await pictured(late);
    const rate = (p) => p.evaluate(() => new Promise((done) => {
      const canvas = document.getElementById("canvas"), draw = CanvasRenderingContext2D.prototype.drawImage;
      let n = 0;
      CanvasRenderingContext2D.prototype.drawImage = function (...a) { if (this.canvas === canvas) n++; return draw.apply(this, a); };
      setTimeout(() => { CanvasRenderingContext2D.prototype.drawImage = draw; done(n); }, 4000);
    }));
    const [fast, few] = await Promise.all([rate(page), rate(late)]);
    console.log(`   ${fast} pictures on the fast line, ${few} on the slow one, in 4 s`);
    assert.ok(fast > few && few > 0, `${fast} and ${few}`);
    line.close();
    await late.context().close();
    await page.context().close();
  },

  // VIEW-3, B081, LSE-6: the browser ends and comes again, the session ends, the resource is retired.
  async ends() {
    const { agent, page } = await watched("ends", "/red");
    await reins.call("POST", "/v1/projects/demo/resources/ends/terminate", {});
    await until("its end to be seen", async () => /ended|No browser/.test(await text(page, "cover")), 60_000);
    await agent.act({ verb: "navigate", url: small.url + "/blue" });
    await live(page);
    await shows(page, [0x10, 0x10, 0xe0]);
    const other = await page.context().newPage();
    await other.goto(reins.url + "/");
    await other.click("#leave");
    await until("the end of access", async () => /Your access ended|You need a link/.test(await text(page, "cover")), 60_000);
    await page.context().close();
    const last = await person("noor", "ends");
    await reins.call("POST", "/v1/projects/demo/resources/ends/retire", {});
    await until("the end for good", async () => /gone for good|no such browser|Your access ended/.test(await text(last, "cover")), 60_000);
    await last.context().close();
  },

  // VIEW-2: the list, its small pictures, start and end.
  async list() {
    const page = await open(browser, faults);
    await page.goto(await reins.link("mira"));
    await until("the list", () => page.evaluate(() => document.getElementById("list").getAttribute("aria-busy") === "false"));
    await reins.agent("listed", [small.host]);
    await until("one more", () => page.isVisible("[aria-label='Start listed']"));
    await page.click("[aria-label='Start listed']");
    await until("its picture", () => page.locator(".browser-card", { hasText: "listed" }).locator(".thumb.seen").count(), 60_000);
    await page.click("[aria-label='End listed']");
    await page.click("#sure [value=yes]");
    await until("its end", () => page.isVisible("[aria-label='Start listed']"), 60_000);
    await accessible(page, "the real list");
    await page.context().close();
  },

  // B081.2: the server goes and comes again: the page comes back, or says that a link is needed.
  async restart() {
    const { page } = await watched("restart", "/red");
    await reins.stop();
    await until("the break", async () => (await page.getAttribute("#pill", "data-is")) === "waiting" && /Reconnecting/.test(await text(page, "cover")));
    await reins.start();
    await until("the way on", async () => /You need a link/.test(await text(page, "cover")) || (await page.getAttribute("#pill", "data-is")) === "live", 60_000);
    await page.context().close();
  },
}, process.argv[4]);

await browser.close();
await reins.stop();
small.close();
if (faults.length) {
  console.error("FAIL the pages had faults:\n" + faults.join("\n"));
  process.exitCode = 1;
}
if (process.exitCode) console.error(reins.log.slice(-4000));
process.exit();
