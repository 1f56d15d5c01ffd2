package host

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

// viewers drives people who watch, honestly and not, over a browser that paints,
// loses its driver, dies and goes elsewhere.
type viewers struct {
	*world
	r       *resource
	painted int
	honest  *lease
	sub     reins.Subscription
	seen    chan struct{} // closed when the honest one's reader has ended
	newest  string        // that the honest one saw; guarded by mu
	last    reins.FrameID // likewise
	rogues  []reins.Subscription
	leases  []*lease
}

// look has the honest viewer watch, as a page does that always comes back.
func (v *viewers) look(t *rapid.T) {
	select {
	case <-v.seen:
	default:
		return
	}
	sub, err := v.honest.Subscribe(ctx0, reins.SubscribeOptions{Take: true})
	if err != nil {
		t.Fatal(err)
	}
	v.sub, v.seen = sub, make(chan struct{})
	v.mu.Lock()
	v.last = reins.FrameID{} // who comes anew is shown the newest again
	v.mu.Unlock()
	go func(done chan struct{}) {
		defer close(done)
		for {
			u, err := sub.Next(ctx0)
			if err != nil {
				if c := reins.CodeOf(err); c != reins.CodeBrowserEnded && c != reins.CodeCancelled {
					v.violate("the honest view ended with %v", err)
				}
				return
			}
			if f := u.Frame; f != nil {
				v.mu.Lock()
				if f.ID.Sequence <= v.last.Sequence || f.ID.Stream < v.last.Stream {
					v.wrong = append(v.wrong, fmt.Sprintf("after %+v came %+v", v.last, f.ID))
				}
				v.newest, v.last = string(f.JPEG), f.ID
				v.mu.Unlock()
				sub.Ack(f.ID)
			}
		}
	}(v.seen)
}

func (v *viewers) actions() map[string]func(*rapid.T) {
	rogue := func(t *rapid.T) reins.Subscription {
		if len(v.rogues) == 0 {
			t.Skip()
		}
		return v.rogues[rapid.IntRange(0, len(v.rogues)-1).Draw(t, "rogue")]
	}
	return map[string]func(*rapid.T){
		"paint": func(t *rapid.T) {
			for range rapid.IntRange(1, 8).Draw(t, "times") {
				v.painted++
				v.anyLink().paint(fmt.Sprint(rapid.SampledFrom([]string{"p", "p", "p", "huge "}).Draw(t, "size"), v.painted))
				time.Sleep(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond)
			}
		},
		"rogueJoins": func(t *rapid.T) {
			if len(v.leases) >= 20 {
				t.Skip()
			}
			b := bob()
			b.Actor = fmt.Sprint("rogue", len(v.leases))
			l := v.lease(t, b)
			v.leases = append(v.leases, l)
			sub, err := l.Subscribe(ctx0, reins.SubscribeOptions{Window: rapid.IntRange(1, 32).Draw(t, "window")})
			if err != nil {
				t.Fatal(err)
			}
			v.rogues = append(v.rogues, sub) // it stalls from the start
		},
		"rogueTakes": func(t *rapid.T) {
			sub := rogue(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if u, err := sub.Next(ctx0); err == nil && u.Frame != nil && v.r.fenced() == nil {
					sub.Ack(reins.FrameID{Sequence: u.Frame.ID.Sequence + 1}) // a lie
				}
			}()
			synctest.Wait()
			select {
			case <-done:
			default: // there was nothing: the next step may wake it
				v.r.update(func(s *state) { s.view.acted++ })
				time.Sleep(time.Second)
				<-done
			}
		},
		"rogueFloods": func(t *rapid.T) {
			sub := rogue(t)
			for i := range 500 {
				sub.Ack(reins.FrameID{Incarnation: 1, Stream: 1, Sequence: uint64(i)})
			}
		},
		"rogueVanishes": func(t *rapid.T) {
			l := v.leases
			if len(l) == 0 {
				t.Skip()
			}
			_ = l[rapid.IntRange(0, len(l)-1).Draw(t, "which")].Release(ctx0)
		},
		"rogueResizes": func(t *rapid.T) {
			if len(v.leases) == 0 {
				t.Skip()
			}
			l := v.leases[rapid.IntRange(0, len(v.leases)-1).Draw(t, "which")]
			side := rapid.IntRange(200, 900).Draw(t, "side")
			_ = act(l, reins.SetViewport{Width: side, Height: side})
		},
		"refresh":    func(t *rapid.T) { _ = act(v.honest, reins.Refresh{}) },
		"tab":        func(t *rapid.T) { v.select_(rapid.SampledFrom([]reins.TabID{"t1", "t2"}).Draw(t, "tab")) },
		"driverDies": func(t *rapid.T) { v.anyLink().end(os.ErrClosed); time.Sleep(time.Minute); v.select_("t1") },
		"terminate":  func(t *rapid.T) { _ = v.r.Terminate(ctx0); v.back(t) },
		"honestReloads": func(t *rapid.T) {
			_ = v.sub.Close()
			<-v.seen
			v.look(t)
		},
		"busy": func(t *rapid.T) {
			v.set(rapid.SampledFrom([]string{"cast", "capture", "paint"}).Draw(t, "kind"), unanswered)
		},
		"late": func(t *rapid.T) { v.set("ack", slow) },
		"time": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 15000).Draw(t, "ms")) * time.Millisecond) },
		"":     func(t *rapid.T) { v.check(t) },
	}
}

func (v *viewers) select_(tab reins.TabID) {
	v.anyLink().tell("tab_selected", reins.Tab{ID: tab, Selected: true})
	synctest.Wait()
}

// back starts the browser anew and has the honest one watch it.
func (v *viewers) back(t *rapid.T) {
	synctest.Wait()
	if err := v.r.Start(ctx0); err != nil {
		t.Fatal(err)
	}
	v.look(t)
	v.select_("t1")
}

// check is what must hold once all is quiet: the honest viewer is there, has the
// newest picture, and the browser waits for no acknowledgement.
func (v *viewers) check(t *rapid.T) {
	synctest.Wait()
	v.mu.Lock()
	delete(v.next, "cast")
	v.mu.Unlock()
	time.Sleep(15 * time.Second) // acknowledgements and windows are over, and what failed was tried again
	synctest.Wait()
	select {
	case <-v.seen:
		t.Fatal("the honest viewer's view has ended")
	default:
	}
	link := v.anyLink()
	want := fmt.Sprint("new ", v.painted)
	v.painted++
	if !link.paint(want) {
		t.Fatalf("the browser waits for acknowledgements, or casts nothing: %+v", link.camera.under)
	}
	synctest.Wait()
	v.r.mu.Lock()
	pending := v.r.st.view.stream.Last()
	subs := len(v.r.st.view.subs)
	v.r.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.newest != want {
		t.Fatalf("the honest viewer sees %q, not %q; the newest is %q of %+v, beside %d others", v.newest, want, pending.JPEG, pending.ID, subs)
	}
	if len(v.wrong) > 0 {
		t.Fatalf("violations: %v", v.wrong)
	}
}

// TestViewModel is FRM-2 to FRM-5, FRM-9 and FRM-12 over a host: whatever other
// viewers, the driver and the page do, an honest viewer sees the newest picture, in
// order, and each picture is acknowledged to the browser once.
func TestViewModel(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(undated{t}, func(t *rapid.T) {
			work, err := os.MkdirTemp(dir, "case")
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, work, reins.Hooks{}, reins.Limits{CapabilityLifeMax: 24 * time.Hour})
			t.Cleanup(func() { _ = w.host.Stop(ctx0) }) // a case that fails must not keep the bubble
			v := &viewers{world: w, r: w.register(t, reins.BrowserSpec{}), seen: make(chan struct{})}
			close(v.seen)
			c, err := w.host.Issue(ctx0, personOf(key1), 24*time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			l, err := w.host.Acquire(ctx0, c.Token, personOf(key1))
			if err != nil {
				t.Fatal(err)
			}
			v.honest = l.(*lease)
			v.back(t)
			t.Repeat(v.actions())
			_ = v.sub.Close()
			<-v.seen
			w.mu.Lock()
			clear(w.next)
			w.mu.Unlock()
			w.stop(t)
		})
	})
}
