// Takes a picture of every state of the viewer: node look.mjs DIRECTORY [PART]. For eyes.

import { mkdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { launch } from "./kit.mjs";
import { defaultState, mock } from "./mock.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? "/tmp/viewer-looks";
const part = process.argv[3] ?? "";
await mkdir(out, { recursive: true });
const browser = await launch();
const sizes = {
  desktop: { viewport: { width: 1440, height: 900 } },
  tablet: { viewport: { width: 820, height: 1180 }, hasTouch: true },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
};

/** Draws the page of the script at the size that was asked for, once for each size. */
const drawn = new Map();
async function draw(v) {
  const key = `${v.width}x${v.height}@${v.scale}`;
  if (!drawn.has(key)) {
    const page = await browser.newPage({ viewport: { width: v.width, height: v.height }, deviceScaleFactor: v.scale });
    await page.setContent(await readFile(here + "page.html", "utf8"));
    const box = await page.locator("#pay").boundingBox();
    drawn.set(key, { width: Math.round(v.width * v.scale), height: Math.round(v.height * v.scale), bytes: await page.screenshot({ type: "jpeg", quality: 80 }), box });
    await page.close();
  }
  return drawn.get(key);
}

const working = (s, box) => {
  s.control = { ...s.control, state: "agent-active", active_agents: 1 };
  s.operation = { operation: "c1", actor: "checkout-agent", role: "agent", verb: "click", tab: "t1", target: { role: "button", name: "Pay 129.00 €" }, box, started: new Date().toISOString() };
  s.activities.push(s.operation);
  s.cursor = { tab: "t1", x: box.x + box.width / 2, y: box.y + box.height / 2, actor: "checkout-agent", role: "agent" };
};
const request = (s) => { s.control.requests = [{ request: "q1", actor: "checkout-agent", reason: "The bank asks for the code that it sent to your phone. Please enter it in the field “Security code” and press Continue.", since: new Date(Date.now() - 40_000).toISOString(), expires: new Date(Date.now() + 520_000).toISOString() }]; };
const held = (s, mine, left = 96_000) => { s.control = { ...s.control, state: "human", actor: mine ? "maria" : "Jonas Weber", mine, since: new Date(Date.now() - 24_000).toISOString(), expires: new Date(Date.now() + left).toISOString() }; };

/** name → what the server is like, and what to do then. @type {Record<string, (m: any, page: import("playwright-core").Page, box: any) => Promise<void>|void>} */
const states = {
  idle: () => {},
  working: (m, _, box) => { working(m.state, box); m.push(); },
  request: (m) => { request(m.state); m.push(); },
  helping: (m) => { request(m.state); held(m.state, true); m.push(); },
  mine: async (m, page) => { held(m.state, true); m.push(); await page.locator("#glass").click({ position: { x: 120, y: 120 } }); },
  soon: (m) => { held(m.state, true, 12_000); m.push(); },
  other: async (m, page) => { held(m.state, false); m.push(); await page.locator("#glass").click({ position: { x: 120, y: 120 } }); },
  pending: async (m, page) => { m.answers.request_control = () => new Promise(() => {}); working(m.state, { x: 10, y: 10, width: 5, height: 5 }); await page.locator("#take").click(); m.state.control.state = "human-pending"; m.state.control.actor = "maria"; m.state.control.expires = new Date(Date.now() + 21_000).toISOString(); m.push(); },
  dialog: (m) => { m.state.dialog = { kind: "prompt", message: "What is the name of your first pet?", default: "" }; m.push(); },
  stopped: (m) => { m.state.state = "stopped"; m.state.tabs = []; m.push(); },
  starting: (m) => { m.state.state = "starting"; m.push(); },
  crashed: (m) => { m.state.tabs[0].crashed = true; m.push(); },
  reconnecting: async (m, page) => { m.refuse = true; m.cut(); await page.waitForTimeout(2500); },
  revoked: (m) => { m.say({ end: { code: "lease_ended", message: "The lease was revoked." } }); m.cut(); },
  files: async (m, page) => { m.artifacts = files(); await open(page); await page.locator("#tab-files").click(); await page.waitForTimeout(500); },
  inside: async (m, page) => {
    const process = (pid, name, mib) => ({ pid, name, memory: mib * 2 ** 20 });
    m.answers.inspect = { inspection: { incarnation: 1, processes: [process(1, "init", 5), process(7, "browser", 61), process(19, "gpu-process", 24), process(33, "renderer", 88), process(40, "network service", 18)],
      connections: [{ host: "shop.example", port: 443, since: new Date().toISOString(), up: 5200, down: 481000 }, { host: "fonts.example", port: 443, since: new Date().toISOString(), up: 900, down: 22000 }], files: [] } };
    await open(page); await page.locator("#tab-inside").click();
  },
  text: async (m, page) => { m.answers.read = { reading: { markdown: "# Payment\n\nName on card: Maria Lindqvist\nCard number\n\n[Pay 129.00 €]" } }; await open(page); await page.locator("#tab-text").click(); await page.locator("#text-read").click(); },
  preview: async (m, page) => { m.artifacts = files(); await open(page); await page.locator("#tab-files").click(); await page.locator("#files .pic").first().click(); await page.waitForTimeout(400); },
  menu: async (_, page) => { await page.locator("#menu-toggle").click(); },
  line: async (_, page) => { await page.locator("#pill").click(); await page.waitForTimeout(700); },
  side: async (_, page) => { await open(page); },
  small: async (m) => { m.cap = { width: 700, height: 500 }; m.state.viewport = { revision: 40, width: 700, height: 500, scale: 1 }; await draw(m.state.viewport); m.push(); m.frame(); },
};
const open = async (page) => { if (await page.locator("#side").isHidden()) await page.locator("#side-toggle").click(); };
const files = () => [
  { artifact: "png1", kind: "screenshot", media_type: "image/png", size: 182_331, created: new Date().toISOString(), name: "payment.png" },
  { artifact: "pdf1", kind: "download", media_type: "application/pdf", size: 48_120, created: new Date(Date.now() - 60000).toISOString(), name: "invoice-2026-4471.pdf" },
  { artifact: "txt1", kind: "download", media_type: "text/plain", size: 320, created: new Date(Date.now() - 90000).toISOString(), name: "order.txt" },
];
const row = (resource, more = {}) => ({ key: { project: "demo", resource }, created: "", incarnation: 1, state: "running", started_at: new Date(Date.now() - 1_000_000).toISOString(), readiness: { overall: "ready" }, participants: 1, control: { state: "agent", active_agents: 0, availability: "available" }, ...more });
const rows = () => [
  row("invoice-collector"), row("checkout", { participants: 3, control: { state: "agent", active_agents: 0, availability: "available", requests: [{ request: "q1", actor: "checkout-agent", reason: "The bank asks for the code that it sent to your phone.", since: "2026-01-01T00:00:00Z", expires: "2027-01-01T00:00:00Z" }] } }),
  row("price-watch", { control: { state: "agent-active", active_agents: 1, availability: "available" } }), row("travel-desk", { control: { state: "human", actor: "Jonas Weber", active_agents: 0, availability: "available", expires: new Date(Date.now() + 60000).toISOString() } }),
  row("night-reports", { state: "stopped", participants: 0 }), row("archive-2025", { state: "error", participants: 0 }),
];

const problems = [];
async function shoot(size, scheme, name, path, prepare, after) {
  if (part && !`${size} ${scheme} ${name}`.includes(part)) return;
  const pictures = { shop: draw };
  const m = await mock({ files: here + "../../viewer/files", pictures });
  prepare?.(m);
  const context = await browser.newContext({ ...sizes[size], colorScheme: scheme });
  const page = await context.newPage();
  page.on("console", (c) => { if (["error", "warning"].includes(c.type()) && !/503|401|403|ERR_/.test(c.text())) problems.push(`${size} ${scheme} ${name}: ${c.text()}`); });
  page.on("pageerror", (e) => problems.push(`${size} ${scheme} ${name}: ${e.stack}`));
  await page.goto(m.url + path);
  await page.waitForTimeout(700);
  if (path.startsWith("/r/") && !m.openError && m.signedIn) {
    m.frame();
    await page.waitForTimeout(300);
  }
  await after?.(m, page, (await draw(m.state.viewport)).box);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${out}/${size}-${scheme}-${name}.png` });
  await context.close();
  await m.close();
}

const path = "/r/demo/checkout";
for (const size of Object.keys(sizes)) {
  for (const scheme of ["light", "dark"]) {
    for (const [name, after] of Object.entries(states)) await shoot(size, scheme, name, path, (m) => { m.state = defaultState(); }, after);
    await shoot(size, scheme, "embed", path + "?embed=1");
    await shoot(size, scheme, "denied", path, (m) => { m.openError = { status: 403, code: "denied", message: "The owner of this browser has not let you in." }; });
    await shoot(size, scheme, "signed-out", path, (m) => { m.signedIn = false; });
    await shoot(size, scheme, "index", "/", (m) => { m.rows = rows(); }, async (m, page) => { await page.waitForTimeout(300); m.frame(); });
    await shoot(size, scheme, "index-empty", "/");
    await shoot(size, scheme, "join-used", "/join#old-secret");
  }
}
await browser.close();
for (const p of problems) console.error(p);
console.log(`${out}: done, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
