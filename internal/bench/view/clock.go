package main

import (
	"fmt"
	"net"
	"net/http"
)

// clockPage is the page under watch. It draws what time it was when it drew, as a strip of black
// and white blocks along its top: 40 bits of tenths of a millisecond since the
// epoch, as far as they go, and 8 bits to tell a torn picture from a whole one. The viewer's canvas is
// read back, and the difference of both clocks, which are one, is the delay. Blocks have 16
// pixels, since JPEG works in blocks of 8 and 16.
//
// Its modes are what the page does besides: change four times a second; draw with
// each frame; scroll a long text with each frame; play noise as video does; nothing.
const clockPage = `<!doctype html><html lang="en"><title>Clock</title>
<style>html,body{margin:0;background:#fff;font:15px/1.4 sans-serif;overflow:hidden}
#code{position:fixed;left:0;top:0;z-index:2}
#text{padding:24px 16px;columns:3}
#noise{position:fixed;left:160px;top:120px;width:960px;height:540px}</style>
<canvas id="code" width="768" height="16"></canvas>
<canvas id="noise" width="480" height="270" hidden></canvas>
<div id="text"></div>
<script>
const mode = new URLSearchParams(location.search).get('mode');
const words = 'the quick brown fox jumps over the lazy dog while seven wizards box daft zebras'.split(' ');
let seed = 1;
const rnd = () => (seed = seed * 48271 % 2147483647) / 2147483647;
for (let i = 0, html = ''; i < (mode === 'scroll' ? 400 : 40); i++) {
  html += '<p>';
  for (let j = 0; j < 24; j++) html += words[Math.floor(rnd() * words.length)] + ' ';
  if (i === (mode === 'scroll' ? 399 : 39)) document.getElementById('text').innerHTML = html;
}
const g = document.getElementById('code').getContext('2d');
const now = () => Math.round((performance.timeOrigin + performance.now()) * 10);
function draw() {
  let t = now(), sum = 0;
  const bits = [];
  for (let i = 39; i >= 0; i--) bits.push(Math.floor(t / 2 ** i) % 2);
  for (let i = 0; i < 40; i += 8) sum ^= parseInt(bits.slice(i, i + 8).join(''), 2);
  sum ^= 0x5a;
  for (let i = 7; i >= 0; i--) bits.push(sum >> i & 1);
  bits.forEach((b, i) => { g.fillStyle = b ? '#fff' : '#000'; g.fillRect(i * 16, 0, 16, 16); });
}
draw();
const noise = document.getElementById('noise');
if (mode === 'video') noise.hidden = false;
const n = noise.getContext('2d'), image = n.createImageData(480, 270);
function frame(t) {
  if (mode === 'scroll') scrollTo(0, t / 4 % 4000);
  if (mode === 'video') {
    for (let i = 0; i < image.data.length; i += 4) {
      const x = i / 4 % 480, y = i / 1920 | 0;
      image.data[i] = x + t / 8 & 255; image.data[i + 1] = y * 2 + t / 16 & 255; image.data[i + 2] = x * y / 64 + t / 10 & 255; image.data[i + 3] = 255;
    }
    n.putImageData(image, 0, 0);
  }
  draw();
  requestAnimationFrame(frame);
}
if (mode === 'change') { const again = () => { draw(); setTimeout(again, 200 + rnd() * 100); }; again(); }
else if (mode === 'press') addEventListener('pointerdown', draw);
else if (mode !== 'still') requestAnimationFrame(frame);
</script>`

// reader is the script that reads a viewer's canvas with every frame that the
// viewer draws; the expression in its middle finds the canvas.
const reader = `(() => {
  if (window.readings) { cancelAnimationFrame(window.readings.handle); }
  const r = window.readings = { seen: [], torn: 0, last: 0, handle: 0, pressed: 0 };
  const now = () => Math.round((performance.timeOrigin + performance.now()) * 10) %% 2 ** 40;
  const copy = new OffscreenCanvas(768, 16).getContext('2d', { willReadFrequently: true });
  const read = () => {
    r.handle = requestAnimationFrame(read);
    const canvas = %s;
    if (!canvas || !canvas.width) return;
    copy.drawImage(canvas, 0, 0, 768, 16, 0, 0, 768, 16);
    const data = copy.getImageData(0, 8, 768, 1).data, bits = [];
    for (let i = 0; i < 48; i++) bits.push(data[(i * 16 + 8) * 4 + 1] > 127 ? 1 : 0);
    let sum = 0x5a, t = 0;
    for (let i = 0; i < 40; i++) t = t * 2 + bits[i];
    for (let i = 0; i < 40; i += 8) sum ^= parseInt(bits.slice(i, i + 8).join(''), 2);
    if (sum !== parseInt(bits.slice(40).join(''), 2)) { r.torn++; return; }
    if (t === r.last) return;
    r.last = t;
    r.seen.push((now() - t) / 10);
    if (r.pressed) { r.presses ??= []; r.presses.push((now() - r.pressed) / 10); r.pressed = 0; }
  };
  addEventListener('pointerdown', () => { r.pressed = now(); }, true);
  read();
})()`

// site serves the page under watch, and pages for the viewer, on loopback.
type site struct {
	server *http.Server
	mux    *http.ServeMux
	addr   string
}

func serve() (*site, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr().String(), mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /clock", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, clockPage)
	})
	s.server = &http.Server{Handler: s.mux}
	go s.server.Serve(l) //nolint:errcheck // ends with Close
	return s, nil
}

func (s *site) Close() { s.server.Close() }

func (s *site) clock(mode string) string { return "http://" + s.addr + "/clock?mode=" + mode }
