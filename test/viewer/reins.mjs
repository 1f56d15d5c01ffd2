// A real reins serve, an agent that acts through its API, and a small site to act on.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { until } from "./kit.mjs";

/** A site of pages by path; a page may be a function of the request. */
export async function site(pages) {
  const server = createServer((req, res) => {
    const page = pages[new URL(req.url, "http://x").pathname];
    res.writeHead(page ? 200 : 404, { "Content-Type": "text/html; charset=utf-8" });
    res.end(typeof page === "function" ? page(req) : page ?? "nothing here");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  return { host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}`, close: () => { server.closeAllConnections(); server.close(); } };
}

export class Reins {
  constructor(program, dir, flags = []) {
    Object.assign(this, { program, dir, flags, url: "", port: 0, log: "" });
  }

  /** Starts it; again at the same address after an end. */
  async start() {
    const listen = `127.0.0.1:${this.port}`;
    this.child = spawn(this.program, ["serve", "--dir", this.dir, "--listen", listen, "--log-level", "warn", ...this.flags], { argv0: "reins", stdio: ["ignore", "pipe", "pipe"] });
    this.ended = once(this.child, "exit");
    let out = "";
    this.child.stdout.on("data", (b) => { out += b; });
    this.child.stderr.on("data", (b) => { out += b; this.log += b; });
    this.url = await until("reins serve", async () => {
      if (this.child.exitCode !== null) throw Object.assign(new Error("it ended: " + out), { fatal: true });
      const at = /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0];
      return at && (await fetch(at + "/readyz")).ok && at;
    }, 60_000);
    this.port = Number(new URL(this.url).port);
    const file = /\S+admin\S*/.exec(out)?.[0].replace(/[".,]+$/, "");
    this.key = (await readFile(file, "utf8")).trim();
    return this;
  }

  async stop(signal = "SIGTERM") {
    this.child.kill(signal);
    await this.ended;
  }

  /** One call of the API as administrator, or with a capability's token. */
  async call(method, path, body, headers = {}) {
    const r = await fetch(this.url + path, {
      method, headers: { Authorization: `Bearer ${this.key}`, ...(body ? { "Content-Type": "application/json" } : {}), ...headers }, body: body ? JSON.stringify(body) : undefined,
    });
    const text = await r.text();
    const answer = text ? JSON.parse(text) : {};
    if (!r.ok) throw Object.assign(new Error(`${method} ${path}: ${text}`), answer);
    return answer;
  }

  /** Registers a resource that may reach hosts, and returns its agent. */
  async agent(resource, hosts, spec = {}) {
    const attachment = { authority: "test", revision: 1, session: { harness: "test", native: resource } };
    await this.call("POST", "/v1/projects/demo/resources", { resource, attachment, spec: { ...spec, egress: { allow_private: hosts }, verbs: ["navigate", "snapshot", "screenshot", "click", "fill", "press", "type", "open_tab", "select_tab", "close_tab", "list_tabs", "request_human", "read"] } });
    return new Agent(this, resource, attachment).acquire();
  }

  /** A fresh link for a person. */
  async link(actor, more = { projects: ["demo"] }) {
    return (await this.call("POST", "/v1/joins", { actor, ...more })).url;
  }
}

export class Agent {
  constructor(reins, resource, attachment) {
    Object.assign(this, { reins, resource, attachment, lease: "" });
  }

  async acquire() {
    const { authority, revision, session } = this.attachment;
    const binding = { project: "demo", resource: this.resource, authority, revision, session, actor: this.resource + "-agent", role: "agent", peer: "test", source: "api" };
    const c = await this.reins.call("POST", "/v1/projects/demo/capabilities", { binding });
    this.token = { "Reins-Capability": c.token };
    this.lease = (await this.reins.call("POST", "/v1/leases", { binding }, this.token)).lease;
    return this;
  }

  async act(action) {
    return (await this.reins.call("POST", `/v1/leases/${this.lease}/operations`, { action }, this.token)).result;
  }

  /** The ref of what a snapshot shows in a line that holds all of these words. */
  async ref(...words) {
    const text = (await this.act({ verb: "snapshot" })).snapshot.text;
    const line = text.split("\n").find((l) => words.every((w) => l.includes(w)) && l.includes("[ref="));
    if (!line) throw new Error(`no ${words} in\n${text}`);
    return /\[ref=([^\]]+)\]/.exec(line)[1];
  }

  async see(...words) {
    return until(words.join(), async () => {
      const text = (await this.act({ verb: "snapshot" })).snapshot.text;
      if (!words.every((w) => text.includes(w))) throw new Error(text);
      return text;
    });
  }
}
