// What the tests of the page share: a browser, waiting for facts, axe.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const programs = ["/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser", "/opt/google/chrome/chrome"];

export const launch = () => chromium.launch({ executablePath: programs.find((p) => existsSync(p)) });

/** Waits until check answers with something true, and returns it; no pause is relied on. */
export async function until(what, check, ms = 30_000) {
  const end = Date.now() + ms;
  for (let last; ;) {
    try {
      const v = await check();
      if (v) return v;
      last = v;
    } catch (err) {
      if (err?.fatal) throw err;
      last = err;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms; last ${last instanceof Error ? last.message : JSON.stringify(last)}`);
    await new Promise((r) => setTimeout(r, 15));
  }
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** No violation of what axe-core knows, best practices too (VIEW-3). */
export async function accessible(page, what) {
  // A strict policy lets no script in; what the tools of the browser evaluate is not judged by it.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const r = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return r.violations.map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any.concat(n.all, n.none).map((c) => c.message).join("; ")}`).join(" | ")}`);
  });
  assert.deepEqual(found, [], `accessibility of ${what}`);
}

/** A page in a context of its own whose faults end the test. */
export async function open(browser, faults, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (e) => faults.push(e.stack ?? String(e)));
  page.on("console", (m) => {
    if (m.type() === "error" && !/Failed to load resource|WebSocket connection/.test(m.text())) faults.push(m.text());
  });
  return page;
}

/** Runs named parts one after the other and says how long each took. */
export async function run(parts, only = "") {
  for (const [name, part] of Object.entries(parts)) {
    if (only && !name.includes(only)) continue;
    const began = Date.now();
    try {
      await part();
    } catch (err) {
      console.error(`FAIL ${name}: ${err?.stack ?? err}`);
      process.exitCode = 1;
      return;
    }
    console.log(`ok ${name} (${Date.now() - began} ms)`);
  }
}
