"use strict";
// Shared by all pages of the site: the seeded generator, task() and done().

const query = new URLSearchParams(location.search);
const seed = Number(query.get("seed") || 1);
const runID = query.get("run") || "";
const taskName = location.pathname.split("/").pop();

// A small generator; its state comes from the task's name and the seed, so
// that the parts of a task (NAME.PART) draw what their page drew.
let state = [...taskName.split(".")[0] + ":" + seed].reduce((h, c) => Math.imul(h ^ c.charCodeAt(0), 16777619), 2166136261) >>> 0;
function rand() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
for (let i = 0; i < 4; i++) rand();
const int = (low, high) => low + Math.floor(rand() * (high - low + 1));
const pick = list => list[int(0, list.length - 1)];
function shuffle(list) {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = int(0, i);
    [out[i], out[j]] = [out[j], out[i]];
  }
  return out;
}
const sample = (list, n) => shuffle(list).slice(0, n);
const code = n => Array.from({length: n || 6}, () => pick("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")).join("");
const pad = n => String(n).padStart(2, "0");
const money = cents => (cents / 100).toFixed(2);

const PEOPLE = ["Ada Obi", "Bela Kovac", "Chen Lin", "Dora Maas", "Emil Sorg", "Fatou Diop", "Gus Hale", "Hana Ito", "Ivo Prat", "Jun Park", "Kira Voss", "Lars Holm"];
const CITIES = ["Bergen", "Cardiff", "Dresden", "Gdansk", "Hobart", "Krakow", "Lisbon", "Nairobi", "Osaka", "Porto", "Quito", "Tallinn", "Utrecht", "Zagreb"];
const ITEMS = ["Anvil", "Basket", "Candle", "Drum", "Easel", "Flask", "Globe", "Hammer", "Inkwell", "Jug", "Kettle", "Lantern", "Mirror", "Needle"];
const WORDS = ["amber", "birch", "cedar", "delta", "ember", "fable", "grove", "heron", "iris", "juniper", "kelp", "linden", "maple", "nectar", "olive", "pebble"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

const $ = selector => document.querySelector(selector);
const $$ = selector => [...document.querySelectorAll(selector)];
// el("button", {class: "x", onclick: f}, "words", node) makes an element.
function el(tag, attrs, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (typeof v === "function") e[k] = v;
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...kids);
  return e;
}
// link is the address of a part of this task, or of another.
function link(name, more) {
  const q = new URLSearchParams({seed, run: runID, ...more});
  return "/t/" + name + "?" + q;
}

function post(where, body) {
  return fetch(where, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({run: runID, body}), keepalive: true});
}

// task says what is to be done. Only the main page of a task calls it.
function task(text) {
  document.body.prepend(el("header", {class: "task"}, el("p", {id: "task"}, "Task: " + text)));
  document.body.append(el("p", {id: "outcome", role: "status"}));
  if (runID) post("/begin", text);
}

// done gives the verdict, once.
let judged = false;
function done(ok, detail) {
  if (judged) return;
  judged = true;
  detail = String(detail ?? "");
  const show = $("#outcome");
  if (show) {
    show.textContent = (ok ? "Done. " : "Not done: ") + detail;
    show.className = ok ? "good" : "bad";
  }
  if (runID) post("/score", {ok: Boolean(ok), detail});
}
// check compares and judges: every pair must be equal.
function check(pairs) {
  const wrong = Object.entries(pairs).filter(([, [got, want]]) => JSON.stringify(got) !== JSON.stringify(want));
  done(wrong.length === 0, wrong.length === 0 ? "All as asked." : wrong.map(([k, [got, want]]) => `${k} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`).join("; "));
}
