package celltest

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// testDoors proves that pages work over the doors alone, and that whatever a
// page asks of a network arrives at the egress door, loopback included.
func testDoors(t *testing.T, s suite) {
	c := s.start(t, s.spec(t))
	w := serve(t, c.Doors().Egress)
	p := speak(t, c).open("http://site.test/hello")
	if got := p.eval(`document.getElementById("host").innerText`); got != `"site.test"` {
		t.Errorf("text is %s: no fonts, or another page", got)
	}
	if got := p.eval(`navigator.onLine`); got != "true" {
		t.Errorf("navigator.onLine is %s", got)
	}
	for _, url := range []string{"http://127.0.0.1/a", "http://localhost:8080/b", "http://10.0.0.1/c", "http://[::1]/d", "http://169.254.169.254/e"} {
		p.eval(`fetch("` + url + `", {mode: "no-cors"}).then(() => 0, () => 0)`)
		if want := "GET " + url; !slices.Contains(w.requests(), want) {
			t.Errorf("%q did not arrive at the door; there were %q", want, w.requests())
		}
	}
	p.eval(`fetch("https://secure.test/", {mode: "no-cors"}).then(() => 0, () => 0)`)
	if !slices.Contains(w.requests(), "CONNECT //secure.test:443") {
		t.Errorf("https did not arrive at the door; there were %q", w.requests())
	}
	// B103: neither a datagram to the host nor a candidate that tells an address.
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	candidates := p.eval(`(async () => {
		const at = "` + udp.LocalAddr().String() + `", turn = {urls: "turn:" + at + "?transport=tcp", username: "u", credential: "c"};
		const peer = new RTCPeerConnection({iceServers: [{urls: "stun:stun.test:3478"}, {urls: "stun:" + at}, turn]}), seen = [];
		peer.onicecandidate = e => e.candidate && seen.push(e.candidate.candidate);
		peer.createDataChannel("x");
		const gathered = new Promise(done => peer.onicegatheringstatechange = () => peer.iceGatheringState == "complete" && done());
		await peer.setLocalDescription(await peer.createOffer());
		await gathered;
		return seen;
	})()`)
	if candidates != "[]" {
		t.Errorf("WebRTC gathered %s", candidates)
	}
	_ = udp.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // what was sent is there long before
	if n, from, err := udp.ReadFrom(make([]byte, 1500)); err == nil {
		t.Errorf("a datagram of %d bytes came from %s", n, from)
	}
	if got := c.Facts()["egress"]; got != "sealed" {
		t.Errorf("egress is %q", got)
	}
}

func testIdentity(t *testing.T, s suite) {
	spec := s.spec(t)
	spec.Locale, spec.TimeZone, spec.Width, spec.Height = "de-AT", "Asia/Tokyo", 1111, 777
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	p := speak(t, c).open("http://localhost:8080/") // a secure context, with client hints
	t.Logf("client hints: %s", p.eval(`navigator.userAgentData.brands`))
	// Formats of numbers and dates follow the language packs that are installed;
	// setting those for a page is the driver's.
	for expression, want := range map[string]string{
		`navigator.language`:                                       `"de-AT"`,
		`navigator.languages.join()`:                               `"de-AT,de"`,
		`Intl.DateTimeFormat().resolvedOptions().timeZone`:         `"Asia/Tokyo"`,
		`new Date(0).getHours()`:                                   `9`,
		`navigator.userAgent.includes("Headless")`:                 `false`,
		`/ Chrome\/\d+\.0\.0\.0 Safari/.test(navigator.userAgent)`: `true`,
		`document.createElement("canvas").getContext("webgl")`:     `null`,
		`outerWidth`: `1111`,
	} {
		if got := p.eval(expression); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}

func testConfined(t *testing.T, s suite) {
	spec := s.spec(t)
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	speak(t, c).open("http://site.test/")
	begin := time.Now()
	if err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("verified in %s: %s", time.Since(begin), c.Facts()["sandbox"])
	// The same, read independently.
	renderers, ours := 0, network(t, os.Getpid())
	for _, p := range ofProfile(t, spec.Profile) {
		status := statusOf(t, p.pid)
		if status["Seccomp"] != "2" || status["NoNewPrivs"] != "1" {
			t.Errorf("%.80q: seccomp %s, no new privileges %s", p.command, status["Seccomp"], status["NoNewPrivs"])
		}
		if strings.Contains(p.command, "--type=zygote") {
			continue
		}
		if status["CapEff"] != "0000000000000000" {
			t.Errorf("%.80q: capabilities %s", p.command, status["CapEff"])
		}
		if network(t, p.pid) == ours {
			t.Errorf("%.80q lives in the host's network", p.command)
		}
		if strings.Contains(p.command, "--type=renderer") {
			renderers++
			if depth := len(strings.Fields(status["NSpid"])); depth < 3 {
				t.Errorf("renderer %d is %d PID namespaces deep", p.pid, depth)
			}
		}
	}
	if renderers == 0 {
		t.Error("no renderer was seen")
	}
	// CELL-1, OVW-3: the egress listener is all that listens in there; no
	// debugging port does, and no abstract socket.
	browser := ofProfile(t, spec.Profile)[0].pid
	if got := listening(t, browser); len(got) != 1 || !strings.HasPrefix(got[0], "tcp 0100007F:") {
		t.Errorf("in the cell listen %q, want one on 127.0.0.1", got)
	}
}

// listening lists what listens in the network of a process: TCP by its address
// as the kernel writes it, sockets with abstract names.
func listening(t *testing.T, pid int) (found []string) {
	t.Helper()
	for _, table := range []string{"tcp", "tcp6", "unix"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch {
			case table != "unix" && len(f) > 3 && f[3] == "0A":
				found = append(found, table+" "+f[1])
			case table == "unix" && len(f) > 7 && f[3] == "00010000" && strings.HasPrefix(f[7], "@"):
				found = append(found, table+" "+f[7])
			}
		}
	}
	return found
}

func testWebGL(t *testing.T, s suite) {
	spec := s.spec(t)
	spec.WebGL = true
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	p := speak(t, c).open("http://site.test/")
	if got := p.eval(`!!document.createElement("canvas").getContext("webgl")`); got != "true" {
		t.Errorf("there is no WebGL")
	}
	if err := c.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if got := c.Facts()["sandbox"]; !strings.Contains(got, "WebGL") {
		t.Errorf("the sandbox fact %q does not say what WebGL costs", got)
	}
}

// silent starts a cell that has a page with a form open and had another, and
// returns the test of what it asked for after them: nothing.
func silent(t *testing.T, s suite) func(*testing.T) {
	c := s.start(t, s.spec(t))
	w := serve(t, c.Doors().Egress)
	p := speak(t, c).open("http://site.test/form")
	p.eval(`document.forms[0].email.focus(), document.forms[0].email.value = "a@site.test"`)
	p.open("about:blank")
	end := time.After(*silence)
	return func(t *testing.T) {
		select {
		case <-end:
		case <-c.Done():
			t.Fatal(c.Err())
		}
		for _, r := range w.requests() {
			if r != "GET http://site.test/form" && r != "GET http://site.test/favicon.ico" {
				t.Errorf("a request that no page made: %s", r)
			}
		}
	}
}

func testMemory(t *testing.T, s suite) {
	spec := s.spec(t)
	spec.Limits.CellMemory = 700 << 20
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	b := speak(t, c)
	other := b.open("http://other.test/")
	other.eval(`window.kept = 42`)
	hog := b.open("http://hog.test/")
	b.call(hog.session, "Inspector.enable", nil, nil)
	begin := time.Now()
	b.call(hog.session, "Runtime.evaluate", map[string]any{"expression": `setInterval(() => {
		const a = new Uint8Array(32 << 20); for (let i = 0; i < a.length; i += 4096) a[i] = 1; (window.all ??= []).push(a)
	}, 10), 0`}, nil)
	b.event("Inspector.targetCrashed")
	t.Logf("the hog's renderer was ended after %s", time.Since(begin))
	if got := other.eval(`kept`); got != "42" {
		t.Errorf("the other page answers %s", got)
	}
	if text := hog.navigate("http://site.test/again"); text != "" {
		t.Errorf("the crashed page does not come back: %s", text)
	}
}

func testDisk(t *testing.T, s suite) {
	spec := s.spec(t)
	spec.Limits.CellDisk = 64 << 20
	c := s.start(t, spec)
	f, err := os.Create(spec.Downloads + "/large")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for range 65 {
		if _, err := f.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the cell lives on")
	}
	if err := c.Err(); reins.CodeOf(err) != reins.CodeBrowserEnded || !strings.Contains(err.Error(), "cell_disk") {
		t.Errorf("ended with %v", err)
	}
}
