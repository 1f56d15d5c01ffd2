package celltest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// testKeptProfile proves that a browser that was killed starts again on its
// profile with nothing but the page it is told to open: no tabs of before, and no
// question whether to bring them back (B074).
func testKeptProfile(t *testing.T, s suite) {
	spec := s.spec(t)
	for round, want := range []string{`""`, `"kept=1"`} {
		c := s.start(t, spec)
		serve(t, c.Doors().Egress)
		b := speak(t, c)
		var list struct {
			TargetInfos []struct{ Type, URL, Title string }
		}
		b.call("", "Target.getTargets", map[string]any{"filter": []any{map[string]any{}}}, &list)
		pages := 0
		for _, target := range list.TargetInfos {
			switch {
			case target.Type == "page" && target.URL == "about:blank":
				pages++
			case target.Type == "browser", target.Type == "tab" && target.URL == "about:blank":
			default:
				t.Errorf("round %d: after the start there is %+v", round, target)
			}
		}
		if pages != 1 {
			t.Errorf("round %d: %d empty pages after the start", round, pages)
		}
		p := b.open("http://site.test/")
		if got := p.eval(`document.cookie`); got != want {
			t.Errorf("round %d: the cookie is %s, want %s", round, got, want)
		}
		p.eval(`document.cookie = "kept=1; max-age=1000"`)
		if round == 0 { // written out in order once, so that there is something to bring back
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c = s.start(t, spec)
			serve(t, c.Doors().Egress)
			speak(t, c).open("http://site.test/")
		}
		if err := c.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// testSmallMemory draws more bitmaps than a container's usual shared memory holds:
// the page survives, or its crash is told as one and the tab can be used again
// (B072, CELL-7).
func testSmallMemory(t *testing.T, s suite) {
	spec := s.spec(t)
	spec.Limits.SharedMemory = 64 << 20
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	b := speak(t, c)
	other := b.open("http://other.test/")
	other.eval(`window.kept = 42`)
	p := b.open("http://site.test/")
	b.call(p.session, "Inspector.enable", nil, nil)
	b.send(p.session, "Runtime.evaluate", map[string]any{"awaitPromise": true, "returnByValue": true, "expression": `(async () => {
		let drawn = 0;
		for (; drawn < 24; drawn++) {
			const c = document.createElement("canvas"), x = (c.width = c.height = 2048, c.getContext("2d"));
			for (let k = 0; k < 60; k++) { x.fillStyle = "hsl(" + k * 6 + " 70% 50%)"; x.fillRect(k * 173 % 2048, k * 97 % 2048, 700, 500) }
			c.style.width = "120px";
			document.body.append(c);
			await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
		}
		return drawn + " bitmaps";
	})()`})
	asked := b.id
	for crashed := false; !crashed; {
		m := b.next("the bitmaps")
		switch {
		case m.Method == "Inspector.targetCrashed":
			t.Log("the page crashed")
			crashed = true
		case m.ID == asked && m.Error == nil && !strings.Contains(string(m.Result), "24 bitmaps"):
			t.Fatalf("the page says %s", m.Result)
		case m.ID == asked && m.Error == nil:
			b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "jpeg"}, new(json.RawMessage))
		}
		if m.ID == asked {
			break
		}
	}
	if text := p.navigate("http://site.test/again"); text != "" {
		t.Errorf("the tab cannot be used again: %s", text)
	}
	if got := other.eval(`kept`); got != "42" {
		t.Errorf("the other page answers %s", got)
	}
	select {
	case <-c.Done():
		t.Errorf("the browser ended: %v", c.Err())
	case <-time.After(10 * time.Millisecond):
	}
}
