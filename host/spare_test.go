package host

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/driver"
)

// living are the cells that are alive, oldest first.
func (w *world) living() []*fakeCell {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*fakeCell
	for _, c := range w.cells {
		if c.alive() {
			out = append(out, c)
		}
	}
	return out
}

// count is how often a part was asked for something.
func (w *world) count(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[kind]
}

func (w *world) attempts() int { return w.count("cell") }

func (w *world) roomsOpen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rooms
}

// browserOf is what a running resource has.
func browserOf(t *testing.T, r *resource) (*fakeCell, *fakeLink, *fakeDoor) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.st.inc == nil || r.st.inc.conn == nil {
		t.Fatal("it has no browser")
	}
	return r.st.inc.cell.(*fakeCell), r.st.inc.conn.link.(*fakeLink), r.st.inc.door.(*fakeDoor)
}

// TestSpare is CELL-11: spares are there before anybody asks, nobody's, with a
// door that refuses and a driver that is connected, and not to be seen; the next
// resource gets the oldest, with its own policy, and another takes its place.
func TestSpare(t *testing.T) {
	spec := reins.BrowserSpec{Egress: reins.EgressPolicy{AllowHosts: []string{"example.com"}}, Verbs: reins.AgentVerbs(), Scheduling: reins.PerTab}
	bubble(t, bubbleOptions{spares: 2, spec: spec}, func(t *testing.T, w *world, r *resource) {
		synctest.Wait()
		spares := w.living()
		if len(spares) != 2 || len(w.links) != 2 {
			t.Fatalf("%d cells and %d drivers", len(spares), len(w.links))
		}
		for i, d := range w.doors {
			if !d.refuse || spares[i].spec.Key != (reins.ResourceKey{}) {
				t.Errorf("a spare's door refuses %t, its key is %v", d.refuse, spares[i].spec.Key)
			}
		}
		if got := r.Readiness(); got.Overall != "unknown" || len(got.Facts) != 0 {
			t.Errorf("readiness %+v", got)
		}
		if list, err := w.host.List(ctx0, key1.Project); err != nil || len(list) != 1 || list[0].Incarnation != 0 || list[0].State != reins.StateStopped {
			t.Errorf("list %+v, %v", list, err)
		}
		w.set("cell", slow) // the one that takes its place is not waited for
		began := time.Now()
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the claim took %s", d)
		}
		c, l, d := browserOf(t, r)
		if c != spares[0] || l.cell != c || d.refuse || len(d.policy.AllowHosts) != 1 {
			t.Errorf("the resource has not got the oldest spare with its own policy: %+v", d.policy)
		}
		if got := r.Readiness(); got.Overall != "ready" || got.Facts["sandbox"] != "on" {
			t.Errorf("readiness of a claimed one %+v", got)
		}
		time.Sleep(2 * time.Second)
		if n := len(w.living()); n != 3 {
			t.Errorf("%d cells after the refill", n)
		}
		res, err := w.lease(t, agentOf(key1, 1)).Do(ctx0, reins.Call{Action: open})
		if err != nil || res.Meta.Incarnation != 1 || res.Meta.Connection != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		if got := w.living(); len(got) != 2 || got[0] != spares[1] {
			t.Errorf("after Terminate %d cells are alive", len(got)) // others' are not touched
		}
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if c, _, _ := browserOf(t, r); c != spares[1] {
			t.Error("the second incarnation has not got the next spare")
		}
		if err := r.Retire(ctx0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(w.living()); n != 2 {
			t.Errorf("after Retire %d cells are alive", n)
		}
	})
}

// TestSpareNames is TAB-2 and SNAP-4 for a spare: it is told to name itself above
// whatever the resource has seen, and the next incarnation is above that.
func TestSpareNames(t *testing.T) {
	bubble(t, bubbleOptions{spares: 1}, func(t *testing.T, w *world, r *resource) {
		last := driver.Numbers{}
		for range 4 {
			synctest.Wait()
			if err := r.Start(ctx0); err != nil {
				t.Fatal(err)
			}
			_, l, _ := browserOf(t, r)
			now := l.Handover().Numbers
			if l.opts.Previous.Numbers != (driver.Numbers{}) || now.Tab <= last.Tab || now.Document <= last.Document {
				t.Errorf("numbers %+v after %+v", now, last)
			}
			last = now
			if err := r.Terminate(ctx0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSpareFits is CELL-11, "the same spec": whatever a browser is built with
// must be equal; what comes with its owner need not. A field that is new must
// be in one of the two.
func TestSpareFits(t *testing.T) {
	owners := map[string]bool{"Egress": true, "Scheduling": true, "Verbs": true}
	changes := map[string]func(*reins.BrowserSpec){
		"Backend":    func(s *reins.BrowserSpec) { s.Backend = reins.BackendDocker },
		"Engine":     func(s *reins.BrowserSpec) { s.Engine = reins.EngineShell },
		"Desktop":    func(s *reins.BrowserSpec) { s.Desktop = true },
		"Workspace":  func(s *reins.BrowserSpec) { s.Workspace = "kept" },
		"Scheduling": func(s *reins.BrowserSpec) { s.Scheduling = reins.PerTab },
		"Egress":     func(s *reins.BrowserSpec) { s.Egress.DenyHosts = []string{"example.com"}; s.Egress.MaxBytesUp = 1 },
		"Navigation": func(s *reins.BrowserSpec) { s.Navigation.Deny = []string{"example.com"} },
		"Verbs":      func(s *reins.BrowserSpec) { s.Verbs = reins.AgentVerbs() },
		"WebGL":      func(s *reins.BrowserSpec) { s.WebGL = true },
		"Locale":     func(s *reins.BrowserSpec) { s.Locale = "de-DE" },
		"TimeZone":   func(s *reins.BrowserSpec) { s.TimeZone = "Europe/Berlin" },
	}
	base, err := reins.BrowserSpec{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[reins.BrowserSpec]().NumField() {
		name := reflect.TypeFor[reins.BrowserSpec]().Field(i).Name
		other := base
		if changes[name] == nil {
			t.Errorf("nobody says whether spares may differ in %s", name)
			continue
		}
		changes[name](&other)
		if sameBuild(base, other) != owners[name] || sameBuild(other, base) != owners[name] {
			t.Errorf("%s: the same build is %t, want %t", name, sameBuild(base, other), owners[name])
		}
	}
	bubble(t, bubbleOptions{spares: 1, spec: reins.BrowserSpec{Locale: "de-DE"}}, func(t *testing.T, w *world, r *resource) {
		synctest.Wait()
		spare := w.anyCell()
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if c, _, _ := browserOf(t, r); c == spare || c.spec.Locale != "de-DE" || c.spec.Key != key1 {
			t.Errorf("it got a browser of %+v", c.spec)
		}
		if n := len(w.living()); n != 2 {
			t.Errorf("%d cells are alive", n)
		}
	})
}

// TestSpareLost is CELL-11: a spare that dies, by its cell or its driver, is
// ended and replaced, after pauses that grow while that goes on.
func TestSpareLost(t *testing.T) {
	bubble(t, bubbleOptions{spares: 1}, func(t *testing.T, w *world, r *resource) {
		ends := []func(){
			func() { w.anyCell().end(reins.Errorf(reins.CodeBrowserEnded, "it crashed")) },
			func() { w.anyLink().end(reins.Errorf(reins.CodeTransportFailure, "lost")) },
		}
		for n := 1; n <= 5; n++ {
			synctest.Wait()
			if got := w.attempts(); got != n || len(w.living()) != 1 {
				t.Fatalf("%d starts, %d alive, want %d and 1", got, len(w.living()), n)
			}
			ends[n%2]()
			synctest.Wait()
			if len(w.living()) != 0 || w.roomsOpen() != 0 {
				t.Fatal("a spare that was lost is not ended")
			}
			time.Sleep(pause(n) - time.Millisecond)
			synctest.Wait()
			if got := w.attempts(); got != n {
				t.Fatalf("replaced before the pause of %s", pause(n))
			}
			time.Sleep(2 * time.Millisecond)
		}
		synctest.Wait()
		time.Sleep(2 * window) // one that lives a while begins a new row
		ends[0]()
		time.Sleep(pause(1) + time.Millisecond)
		synctest.Wait()
		if got := w.attempts(); got != 7 {
			t.Errorf("%d starts after a long life", got)
		}
	})
}

// TestSpareFails is CELL-11 on a machine where no browser starts: pauses grow to
// their bound, nothing is left of the tries, and a resource is not kept waiting.
func TestSpareFails(t *testing.T) {
	for kind, how := range map[string]behaviour{"cell": failBefore, "link": failBefore, "room": failBefore} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, bubbleOptions{spares: 2}, func(t *testing.T, w *world, r *resource) {
				synctest.Wait() // the first ones are there: none is on its way
				w.mu.Lock()
				w.each = map[string]behaviour{kind: how}
				w.mu.Unlock()
				for _, c := range w.living() {
					c.end(nil)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				tried := w.count(kind)
				if len(w.living()) != 0 || w.roomsOpen() != 0 {
					t.Fatalf("left: %d cells, %d rooms", len(w.living()), w.roomsOpen())
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := w.count(kind) - tried; n != 20 {
					t.Errorf("%d tries in ten minutes, want one each 30 s", n)
				}
				w.mu.Lock()
				w.each = nil
				w.mu.Unlock()
				if err := r.Start(ctx0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(31 * time.Second)
				synctest.Wait()
				if n := len(w.living()); n != 3 {
					t.Errorf("%d cells once browsers start again", n)
				}
			})
		})
	}
}

// TestSpareUseless is CELL-11: a spare that does not answer when it is claimed,
// or is lost in that moment, is ended, and the resource gets another browser.
func TestSpareUseless(t *testing.T) {
	bubble(t, bubbleOptions{spares: 1}, func(t *testing.T, w *world, r *resource) {
		synctest.Wait()
		spare := w.anyCell()
		w.set("probe", unanswered)
		began := time.Now()
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != claimTime {
			t.Errorf("up after %s", d)
		}
		if c, _, _ := browserOf(t, r); c == spare || spare.alive() {
			t.Error("the spare is in use, or alive")
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.gen.spares.ready[0].first.link.Kill()
		if b := r.gen.spares.claim(r.spec); b != nil { // whether or not its end was noticed
			t.Error("a spare without a driver was claimed")
		}
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if l := w.lease(t, agentOf(key1, 1)); l != nil {
			if _, err := l.Do(ctx0, reins.Call{Action: open}); err != nil {
				t.Error(err)
			}
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		w.set("probe", unanswered)
		w.set("close", undying) // and cannot be ended either: nothing else is started beside it
		alive := len(w.living())
		code(t, r.Start(ctx0), reins.CodeStartupFailed)
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(w.living()); n != alive {
			t.Errorf("%d cells are alive, %d before", n, alive)
		}
	})
}

// TestSpareEnds is CELL-11, LIFE-1 and LIFE-2: a stop ends spares, also one that
// is being started; one that cannot be ended makes it fail, blocks a new
// generation and is tried again; a new generation has new ones.
func TestSpareEnds(t *testing.T) {
	bubble(t, bubbleOptions{spares: 2}, func(t *testing.T, w *world, r *resource) {
		synctest.Wait()
		w.set("cell", hang)
		w.living()[0].end(nil)
		time.Sleep(pause(1)) // its replacement is being started
		synctest.Wait()
		w.set("close", undying)
		code(t, w.host.Stop(ctx0), reins.CodeFenced)
		code(t, w.host.Start(ctx0), reins.CodeFenced)
		if n := len(w.living()); n != 1 {
			t.Errorf("%d cells are alive", n)
		}
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		if n := len(w.living()); n != 0 || w.roomsOpen() != 0 {
			t.Errorf("left: %d cells, %d rooms", n, w.roomsOpen())
		}
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(w.living()); n != 2 {
			t.Errorf("%d cells in the next generation", n)
		}
		w.mu.Lock() // while it runs it is tried again, and nothing is started beside it
		w.each = map[string]behaviour{"close": undying}
		w.mu.Unlock()
		w.anyLink().end(nil)
		synctest.Wait()
		if err := w.register(t, reins.BrowserSpec{}).Start(ctx0); err != nil { // it claims the other
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := len(w.living()); n != 3 {
			t.Errorf("%d cells, want the claimed one, one that cannot be ended, and one spare", n)
		}
		w.mu.Lock()
		w.each = nil
		w.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, rooms := len(w.living()), w.roomsOpen(); n != 3 || rooms != 3 {
			t.Errorf("%d cells and %d rooms once it was ended", n, rooms)
		}
		w.mu.Lock()
		close(w.lost) // OWN-7
		w.mu.Unlock()
		synctest.Wait()
		if n := len(w.living()); n != 0 {
			t.Errorf("%d cells after the directory was lost", n)
		}
		if err := w.host.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSpareOptions: the bounds of CELL-11, and what a spare can be.
func TestSpareOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"too few":       {Spares: -1},
		"too many":      {Spares: 65},
		"a workspace":   {Spares: 1, SpareSpec: reins.BrowserSpec{Workspace: "kept"}},
		"no backend":    {Spares: 1, SpareSpec: reins.BrowserSpec{Backend: reins.BackendDocker}},
		"no such place": {Spares: 1, SpareSpec: reins.BrowserSpec{TimeZone: "Mars/Olympus"}},
	} {
		o.Dir, o.Hooks.Authorize, o.Backends = "/nowhere", allow, []cell.Backend{&world{}}
		if _, err := New(o); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) { // 0 in the library
		time.Sleep(time.Hour)
		if n := w.attempts(); n != 0 {
			t.Errorf("%d cells were started for nobody", n)
		}
	})
}
