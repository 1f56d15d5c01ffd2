package host

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestRealTakeover is B122: a person takes control while an agent types key by
// key. From the moment at which control is given nothing of the agent's arrives;
// its call says that it was cut off; the page's log has one change of hands.
func TestRealTakeover(t *testing.T) {
	typed := make(chan struct{}, 1)
	base, policy := site(t, map[string]http.HandlerFunc{"/typed": func(http.ResponseWriter, *http.Request) { typed <- struct{}{} }, "/": html(`<title>Log</title>
<label>Essay <textarea id=e rows=3 cols=60></textarea></label><button id=c>Count</button><p id=log>nothing</p>
<script>
let s = '', presses = 0
const show = () => log.textContent = 'log ' + s.replace(/(.)\1*/g, m => m[0] + m.length + ' ') + 'presses ' + presses
e.addEventListener('input', ev => { if (ev.data) s += ev.data[0]; if (s.length == 50) fetch('/typed'); show() })
c.onclick = () => { presses++; show() }
</script>`)})
	h := real(t, reins.Hooks{})
	agent := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	person := acquire(t, h, personOf(key1))
	do(t, agent, reins.Navigate{URL: base})
	snap := do(t, agent, reins.Snapshot{}).Snapshot.Text
	essay, count := refOf(t, snap, "Essay"), refOf(t, snap, "Count")
	log := func() string {
		for line := range strings.Lines(do(t, person, reins.Snapshot{}).Snapshot.Text) {
			if _, rest, ok := strings.Cut(line, "log "); ok {
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
	typing, pressing := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := agent.Do(t.Context(), reins.Call{Action: reins.Type{Ref: essay, Text: strings.Repeat("a", 20_000)}})
		typing <- err
	}()
	<-typed
	go func() { // and works on in a loop, as agents do
		for {
			_, err := agent.Do(t.Context(), reins.Call{Action: reins.Click{Ref: count}})
			if err != nil {
				pressing <- err
				return
			}
		}
	}()
	taken := make(chan error, 1)
	go func() {
		_, err := person.Do(t.Context(), reins.Call{Action: reins.RequestControl{Wait: reins.Duration(5 * time.Minute), Hold: reins.Duration(5 * time.Minute)}})
		taken <- err
	}()
	within(t, time.Minute, "control is asked for", func() bool {
		return do(t, person, reins.GetControl{}).Control.State == reins.ControlPending
	})
	code(t, <-pressing, reins.CodeHumanControlConflict)
	do(t, person, reins.StopAgents{})
	e := code(t, <-typing, reins.CodeHumanControlConflict)
	if e.Details["effect"] != "unknown" || !strings.Contains(e.Message, "may have happened") {
		t.Errorf("the call that was cut off: %v, details %v", e, e.Details)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	_, err := agent.Do(t.Context(), reins.Call{Action: reins.Click{Ref: count}})
	code(t, err, reins.CodeHumanControlled)
	_, err = agent.Do(t.Context(), reins.Call{Action: reins.Snapshot{}}) // reading is refused as well: CTL-3
	code(t, err, reins.CodeHumanControlled)
	before := log()
	do(t, person, reins.Type{Ref: essay, Text: "bbbbb"})
	after := log()
	var as, bs, presses int
	if n, _ := fmt.Sscanf(after, "a%d b%d presses %d", &as, &bs, &presses); n != 3 || bs != 5 || as == 0 || as >= 20_000 || presses != 0 {
		t.Errorf("the log is %q, and was %q", after, before)
	}
	if !strings.HasPrefix(after, strings.Split(before, " ")[0]+" ") {
		t.Errorf("the agent typed on: %q, then %q", before, after)
	}
	do(t, person, reins.ReleaseControl{})
	_, err = agent.Do(t.Context(), reins.Call{Action: reins.Click{Ref: count}})
	code(t, err, reins.CodeObserveAgain) // CTL-7
	do(t, agent, reins.Snapshot{})
	do(t, agent, reins.Click{Ref: count})
	if got := log(); !strings.HasSuffix(got, "presses 1") {
		t.Errorf("the agent does not go on: %q", got)
	}
}

// TestRealRestlessPage is B123: a page that moves the focus about, scrolls, makes
// up events and opens windows does not look like a person; the agent's work
// counts, and nobody is said to be in control.
func TestRealRestlessPage(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{"/": html(`<title>Restless</title>
<input autofocus aria-label=one><input aria-label=two><button id=b>Work</button><p id=out>works 0</p><div style="height:3000px"></div>
<script>
let n = 0, k = 0
b.onclick = () => out.textContent = 'works ' + ++n
setInterval(() => {
  document.querySelectorAll('input')[k++ % 2].focus()
  scrollTo(0, k % 50)
  dispatchEvent(new KeyboardEvent('keydown', { key: 'x' }))
  document.body.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }))
  if (k % 10 == 0) { const w = open('about:blank'); if (w) setTimeout(() => w.close(), 200); focus() }
}, 150)
</script>`)})
	h := real(t, reins.Hooks{})
	agent := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	person := acquire(t, h, personOf(key1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := h.Events(ctx, key1.Project)
	if err != nil {
		t.Fatal(err)
	}
	var takeovers atomic.Int64
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for e := range events {
			if e.Control != nil && e.Control.Actor != "" {
				takeovers.Add(1)
			}
		}
	}()
	opened := do(t, agent, reins.Navigate{URL: base})
	tab := opened.Tab.ID
	work := refOf(t, do(t, agent, reins.Snapshot{Tab: tab}).Snapshot.Text, "Work")
	for i := range 20 {
		if _, err := agent.Do(t.Context(), reins.Call{Action: reins.Click{Ref: work}}); err != nil {
			t.Fatalf("press %d: %v", i, err)
		}
		if i%5 == 0 {
			do(t, person, reins.Hover{Ref: work}) // the pointer alone takes nothing
		}
	}
	if snap := do(t, agent, reins.Snapshot{Tab: tab}).Snapshot.Text; !strings.Contains(snap, "works 20") {
		t.Errorf("after 20 presses:\n%s", snap)
	}
	cancel()
	<-watched
	if n := takeovers.Load(); n != 0 {
		t.Errorf("%d times somebody was said to be in control", n)
	}
}

// TestRealPointer draws with a person's raw pointer in a real page (INP-1), and
// leaves in the middle of it: the page sees the button go up (INP-2).
func TestRealPointer(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{"/": html(`<title>Draw</title><p id=log>log</p>
<script>
const note = e => log.textContent += ' ' + e.type.slice(7) + e.clientX + ',' + e.clientY + '/' + e.buttons
for (const t of ['pointerdown', 'pointermove', 'pointerup']) addEventListener(t, note)
addEventListener('wheel', e => log.textContent += ' wheel' + e.deltaY)
</script>`)})
	h := real(t, reins.Hooks{})
	do(t, realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy}), reins.Navigate{URL: base})
	ada, bob := acquire(t, h, personOf(key1)), acquire(t, h, bob())
	tab := do(t, ada, reins.ListTabs{}).Selected
	at := func(kind string, x, y float64) reins.Pointer { return reins.Pointer{Tab: tab, Kind: kind, X: x, Y: y} }
	// log is what the page saw of the pointer, and how far it was scrolled. A browser
	// makes up moves to where the pointer is; the wheel is handled beside the rest.
	log := func() (seen string, scrolled bool) {
		for line := range strings.Lines(do(t, bob, reins.Snapshot{}).Snapshot.Text) {
			_, rest, _ := strings.Cut(line, "log ")
			last := "move0,0/0"
			for _, e := range strings.Fields(rest) {
				switch {
				case e == "wheel40":
					scrolled = true
				case e != last:
					seen += " " + e
					last = e
				}
			}
		}
		return strings.TrimSpace(seen), scrolled
	}
	saw := func(want string) func() bool {
		return func() bool {
			seen, scrolled := log()
			if scrolled && len(seen) >= len(want) && seen != want {
				t.Fatalf("the page saw\n%s\nand not\n%s", seen, want)
			}
			return scrolled && seen == want
		}
	}
	wheel := at("wheel", 60, 60)
	wheel.DY = 40
	for _, a := range []reins.Pointer{at("move", 50, 50), at("down", 50, 50), at("move", 70, 80), at("up", 70, 80), wheel, at("down", 90, 90), at("move", 95, 90)} {
		do(t, ada, a)
	}
	const drawn = "move50,50/0 down50,50/1 move70,80/1 up70,80/0 down90,90/1 move95,90/1"
	within(t, time.Minute, "what she drew", saw(drawn))
	if err := ada.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the release of what she held", saw(drawn+" up95,90/0"))
	do(t, bob, reins.OpenTab{})
	_, err := bob.Do(t.Context(), reins.Call{Action: at("down", 1, 1)})
	code(t, err, reins.CodeInvalidState) // another tab is shown
}
