// A server that plays a script: the same HTTP and WebSocket as reins serve, with a
// drawn page instead of a browser, so that every state of the viewer can be looked
// at. mock.mjs is for looking and for quick tests; real.mjs is against the real one.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { WebSocketServer } from "ws";

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob: data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const types = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const iso = (ms = 0) => new Date(Date.now() + ms).toISOString();

/** Starts it. pictures: JPEG by name; files: the directory of package viewer. */
export async function mock({ files, pictures, port = 0 }) {
  const m = {
    signedIn: true, secret: "good-secret", projects: ["demo"], resource: null, actor: "maria", rows: [], state: defaultState(), picture: "shop",
    sent: [], ops: [], answers: {}, sockets: new Set(), openError: null, refuse: false, silent: false, artifacts: [], stream: 1, sequence: 0, acks: 0,
    still: true, frameViewport: null,
  };
  const wss = new WebSocketServer({ noServer: true, handleProtocols: () => "reins.view.v1" });
  const server = createServer((req, res) => void serve(m, files, pictures, req, res).catch((e) => { res.writeHead(500).end(String(e)); }));
  server.on("upgrade", (req, socket, head) => {
    if (m.refuse) { socket.end("HTTP/1.1 503 no\r\n\r\n"); return; }
    const url = new URL(req.url, "http://x");
    const protocols = (req.headers["sec-websocket-protocol"] ?? "").split(/,\s*/);
    if (protocols[0] !== "reins.view.v1" || protocols[1] !== "reins.page.page-secret" || !url.pathname.endsWith("/view")) { socket.end("HTTP/1.1 401 no\r\n\r\n"); return; }
    wss.handleUpgrade(req, socket, head, (ws) => attach(m, pictures, ws, url));
  });
  m.push = () => { for (const ws of m.sockets) if (!m.silent) { ws.send(JSON.stringify({ state: m.state })); } };
  m.frame = () => { for (const ws of m.sockets) if (!m.silent) void sendFrame(m, pictures, ws); };
  m.say = (o) => { for (const ws of m.sockets) ws.send(JSON.stringify(o)); };
  m.cut = () => { for (const ws of m.sockets) ws.terminate(); };
  m.close = () => new Promise((r) => { m.cut(); server.closeAllConnections(); server.close(r); });
  await new Promise((r) => server.listen(port, "127.0.0.1", r));
  m.url = `http://127.0.0.1:${server.address().port}`;
  return m;
}

export function defaultState() {
  return {
    incarnation: 3, state: "running", selected: "t1", viewport: { revision: 1, width: 1280, height: 800, scale: 1 },
    tabs: [
      { tab: "t1", url: "https://shop.example/checkout/payment?step=3", title: "Payment – Alpine Outfitters", selected: true },
      { tab: "t2", url: "https://mail.example/inbox", title: "Inbox (3)" },
    ],
    control: { state: "agent", active_agents: 0, availability: "available" },
    participants: [
      { actor: "checkout-agent", role: "agent", since: iso(-500000) },
      { actor: "maria", role: "human", since: iso(-60000), watching: true, mine: true },
      { actor: "Jonas Weber", role: "human", since: iso(-30000), watching: true },
    ],
    activities: [
      act("a1", -95, "checkout-agent", "navigate", { url: "https://shop.example/" }),
      act("a2", -90, "checkout-agent", "snapshot"),
      act("a3", -84, "checkout-agent", "fill", { target: { role: "searchbox", name: "Search the shop" } }),
      act("a4", -80, "checkout-agent", "click", { target: { role: "link", name: "Trail backpack 32 l, slate grey" } }),
      act("a5", -72, "checkout-agent", "click", { target: { role: "button", name: "Add to basket" }, outcome: "failed", code: "not_actionable" }),
      act("a6", -66, "checkout-agent", "click", { target: { role: "button", name: "Accept cookies" } }),
      act("a7", -60, "checkout-agent", "click", { target: { role: "button", name: "Add to basket" } }),
      act("a8", -44, "Jonas Weber", "pointer", { role: "human" }),
      act("a9", -40, "maria", "request_control", { role: "human" }),
      act("b1", -38, "maria", "key", { role: "human" }),
      act("b2", -30, "maria", "release_control", { role: "human" }),
      act("b3", -22, "checkout-agent", "fill", { target: { role: "textbox", name: "Name on card" } }),
      act("b4", -15, "checkout-agent", "screenshot"),
    ],
  };
}

function act(operation, s, actor, verb, more = {}) {
  return { operation, actor, role: "agent", verb, tab: "t1", started: iso(s * 1000), ended: iso(s * 1000 + 700), outcome: "completed", ...more };
}

async function sendFrame(m, pictures, ws) {
  const v = m.state.viewport;
  const jpeg = await pictures[m.picture](v);
  const id = { incarnation: m.state.incarnation, stream: m.stream, sequence: ++m.sequence };
  const header = Buffer.from(JSON.stringify({ id, tab: m.state.selected, viewport: m.frameViewport ?? v.revision, width: jpeg.width, height: jpeg.height, captured: iso(-18) }));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(header.length);
  ws.send(Buffer.concat([size, header, jpeg.bytes]));
}

function attach(m, pictures, ws, url) {
  ws.take = url.searchParams.get("take");
  ws.window = Number(url.searchParams.get("window"));
  m.sockets.add(ws);
  m.lastDial = url.search;
  ws.on("close", () => m.sockets.delete(ws));
  ws.on("message", (data) => {
    const msg = JSON.parse(String(data));
    if (msg.ack) { m.acks++; return; }
    if (!msg.do.action) { if (!m.silent) ws.send(JSON.stringify({ answer: { id: msg.do.id, error: { code: "invalid_input", message: "action is missing" } } })); return; }
    m.sent.push(msg.do.action);
    const fail = m.answers[msg.do.action.verb];
    if (msg.do.action.verb === "set_viewport" && msg.do.action.width && !fail) {
      const { width, height, scale } = msg.do.action;
      const w = Math.min(width, m.cap?.width ?? 9999), h = Math.min(height, m.cap?.height ?? 9999);
      const v = m.state.viewport;
      if (v.width !== w || v.height !== h || v.scale !== scale) m.state.viewport = { revision: v.revision + 1, width: w, height: h, scale };
      m.push();
      if (m.state.state === "running" && !m.blank) m.frame();
    }
    if (msg.do.id) ws.send(JSON.stringify({ answer: fail?.code ? { id: msg.do.id, error: fail } : { id: msg.do.id, result: fail ?? { viewport: m.state.viewport } } }));
  });
  if (m.silent) return;
  if (m.endAtOnce) { ws.send(JSON.stringify({ end: m.endAtOnce })); ws.close(); return; }
  if (!m.mute) ws.send(JSON.stringify({ state: m.state }));
}

async function serve(m, files, pictures, req, res) {
  const url = new URL(req.url, "http://x");
  const json = (status, body) => { res.writeHead(status, { "Content-Type": "application/json" }); res.end(JSON.stringify(body)); };
  const fail = (status, code, message, more = {}) => json(status, { code, message, retryable: false, recovery: "none", ...more });
  const page = url.pathname === "/" ? "index.html" : url.pathname === "/join" ? "join.html" : url.pathname.startsWith("/r/") ? "resource.html" : url.pathname.startsWith("/assets/") ? url.pathname.slice(1) : "";
  if (page) {
    res.writeHead(200, { "Content-Type": types[page.split(".").pop()], "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff" });
    res.end(await readFile(`${files}/${page}`));
    return;
  }
  let text = "";
  for await (const c of req) text += c;
  const body = text ? JSON.parse(text) : {};
  if (m.down) { req.socket.destroy(); return; }
  const session = { actor: m.actor, projects: m.projects, resource: m.resource, expires: iso(3600_000) };
  if (url.pathname === "/people/join") {
    if (body.secret !== m.secret) return fail(401, "unauthorized", "This link is not valid any more.");
    m.secret = ""; m.signedIn = true;
    return json(200, { session });
  }
  if (!m.signedIn) return fail(401, "unauthorized", "You are not signed in.");
  if (url.pathname === "/people/page") return json(200, { page: "page-secret", session });
  if (req.headers["reins-page"] !== "page-secret") return fail(401, "unauthorized", "This page is not signed in.");
  if (url.pathname === "/people/session") { m.signedIn = false; res.writeHead(204).end(); return; }
  if (url.pathname === "/people/close") return json(200, {});
  if (url.pathname === "/people/open") return m.openError ? json(m.openError.status, m.openError) : json(200, { lease: "l1", state: { lease: "l1", expires: iso(300_000), now: iso() } });
  if (/\/events$/.test(url.pathname)) { res.writeHead(200, { "Content-Type": "text/event-stream" }); res.write(": open\n\n"); m.events = res; return; }
  if (/^\/v1\/projects\/[^/]+\/resources$/.test(url.pathname)) return json(200, { resources: m.rows });
  const life = /^\/v1\/projects\/[^/]+\/resources\/([^/]+)\/(start|terminate)$/.exec(url.pathname);
  if (life) {
    m.ops.push({ verb: life[2], resource: life[1] });
    const row = m.rows.find((r) => r.key.resource === life[1]);
    if (row) row.state = life[2] === "start" ? "running" : "stopped";
    if (life[2] === "start") { m.state.state = "running"; m.push(); m.frame(); } else { m.state.state = "stopped"; m.push(); }
    return json(200, {});
  }
  if (/\/operations$/.test(url.pathname)) {
    m.ops.push(body.action);
    const canned = m.answers[body.action.verb];
    if (typeof canned === "function") return json(200, { result: await canned(body.action) });
    if (canned?.code) return json(canned.status ?? 409, canned);
    const result = body.action.verb === "list_artifacts" ? { artifacts: m.artifacts } : canned ?? {};
    return json(200, { result, state: { lease: "l1", expires: iso(300_000), now: iso() } });
  }
  if (/\/artifacts\//.test(url.pathname)) {
    res.writeHead(200, { "Content-Type": "application/octet-stream" });
    res.end(url.pathname.endsWith("txt1") ? "Order 4471\nTotal: 129.00 EUR\n" : (await pictures.shop({ width: 1280, height: 800, scale: 1 })).bytes);
    return;
  }
  if (/^\/v1\/leases\//.test(url.pathname)) return m.leaseGone ? fail(403, "lease_ended", "The lease ended.") : json(200, { lease: "l1", expires: iso(300_000), now: iso() });
  fail(404, "not_found", "no such thing");
}
