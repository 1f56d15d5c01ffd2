package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// bubble runs f in virtual time over fakes, with key1 registered, and then stops
// the host and looks for leftovers.
func bubble(t *testing.T, o bubbleOptions, f func(t *testing.T, w *world, r *resource)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Options{Dir: dir, Hooks: o.hooks, Limits: o.limits, Spares: o.spares})
		defer w.host.Stop(context.Background()) // a failed test must not keep the bubble
		r := w.register(t, o.spec)
		f(t, w, r)
		w.mu.Lock()
		clear(w.next)
		w.mu.Unlock()
		w.stop(t)
	})
}

type bubbleOptions struct {
	hooks  reins.Hooks
	limits reins.Limits
	spec   reins.BrowserSpec
	spares int
}

var (
	ctx0 = context.Background()
	open = reins.Navigate{URL: "https://example.com/"}
)

// start runs a call on the side and returns once it has settled down.
func start(l reins.Lease, call reins.Call) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := l.Do(ctx0, call)
		done <- err
	}()
	synctest.Wait()
	return done
}

func pending(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("it ended already: %v", err)
	default:
	}
}

// TestIssueFits is CAP-3 and CAP-2: an agent names exactly the session and
// revision that are attached, a person none, and every no of the hook is one.
func TestIssueFits(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		other := agentOf(key1, 1)
		other.Session = &reins.Session{Harness: "opencode", Native: "999"}
		authority := agentOf(key1, 1)
		authority.AuthorityID = "other"
		for name, c := range map[string]struct {
			b    reins.Binding
			want reins.Code
		}{
			"current":           {agentOf(key1, 1), ""},
			"person":            {personOf(key1), ""},
			"another session":   {other, reins.CodeConflict},
			"another authority": {authority, reins.CodeConflict},
			"a later revision":  {agentOf(key1, 2), reins.CodeConflict},
			"unknown resource":  {personOf(reins.ResourceKey{Project: "p", ID: "none"}), reins.CodeNotFound},
			"no actor":          {reins.Binding{Project: "p", Resource: "one", Role: reins.RoleHuman, Peer: "x", Source: reins.SourceAPI}, reins.CodeInvalidInput},
		} {
			_, err := w.host.Issue(ctx0, c.b, 0)
			if reins.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if err := r.Attach(ctx0, reins.Attachment{AuthorityID: "boss", Revision: 2}); err != nil {
			t.Fatal(err)
		}
		_, err := w.host.Issue(ctx0, agentOf(key1, 1), 0)
		if e := code(t, err, reins.CodeStaleRevision); e.Details["revision"] != uint64(2) {
			t.Errorf("details %v do not name the current revision", e.Details)
		}
		_, err = w.host.Issue(ctx0, agentOf(key1, 2), 0)
		code(t, err, reins.CodeConflict) // detached
		if _, err := w.host.Issue(ctx0, personOf(key1), 0); err != nil {
			t.Errorf("a person while detached: %v", err)
		}
		_, err = w.host.Issue(ctx0, personOf(key1), time.Millisecond)
		code(t, err, reins.CodeInvalidInput)
		_, err = w.host.Issue(ctx0, personOf(key1), 2*time.Hour)
		code(t, err, reins.CodeInvalidInput) // CAP-5
	})
}

// TestHookSaysNo is CAP-2, HK-1 and HK-4: denial, error, panic and silence are
// each a no, and what the hook said stays inside.
func TestHookSaysNo(t *testing.T) {
	var how box[func(context.Context) error]
	hooks := reins.Hooks{Authorize: func(ctx context.Context, b reins.Binding) error {
		if !b.Equal(personOf(key1)) {
			return errors.New("incomplete binding")
		}
		return how.get()(ctx)
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		release := make(chan struct{})
		for _, c := range []struct {
			hook func(context.Context) error
			want reins.Code
		}{
			{func(context.Context) error { return errors.New("secret reason") }, reins.CodeDenied},
			{func(context.Context) error { panic("secret panic") }, reins.CodeDenied},
			{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, reins.CodeTimeout},
			{func(ctx context.Context) error { <-release; return nil }, reins.CodeTimeout},
		} {
			how.set(c.hook)
			began := time.Now()
			_, err := w.host.Issue(ctx0, personOf(key1), 0)
			e := code(t, err, c.want)
			if strings.Contains(e.Message, "secret") || e.Phase != reins.PhaseHook || time.Since(began) > 10*time.Second {
				t.Errorf("error %q in phase %s after %s", e.Message, e.Phase, time.Since(began))
			}
		}
		gen, _ := w.host.current()
		if w.host.calls.open() != 1 || gen.reserved != 0 {
			t.Errorf("%d hook calls and %d capabilities counted, want the one that hangs and none", w.host.calls.open(), gen.reserved)
		}
		close(release)
		synctest.Wait()
		if w.host.calls.open() != 0 {
			t.Errorf("%d hook calls counted after all returned", w.host.calls.open())
		}
	})
}

// TestHookTellsWhy is GATE-1: a denied of the hook's own is told to whoever
// asked; any other error of its is not, whatever it wraps.
func TestHookTellsWhy(t *testing.T) {
	own := reins.Errorf(reins.CodeDenied, "agents keep out of /admin").Recover(reins.RecoverAskPerson)
	for _, c := range []struct {
		hook error
		want string
		next reins.Recovery
	}{
		{own, "the host said no: agents keep out of /admin", reins.RecoverAskPerson},
		{fmt.Errorf("secret: %w", own), "the host said no: agents keep out of /admin", reins.RecoverAskPerson},
		{reins.Errorf(reins.CodeDenied, "%s", strings.Repeat("é", 900)), "the host said no: " + strings.Repeat("é", 500), reins.RecoverChangePolicy},
		{reins.Errorf(reins.CodeNotFound, "secret"), "the host's BeforeOperation hook said no", reins.RecoverChangePolicy},
		{errors.New("secret"), "the host's BeforeOperation hook said no", reins.RecoverChangePolicy},
	} {
		e := reins.AsError(refused("BeforeOperation", c.hook))
		if e.Code != reins.CodeDenied || e.Message != c.want || e.Recovery != c.next || e.Phase != reins.PhaseHook || !errors.Is(e, c.hook) {
			t.Errorf("%v became %s %q, %s", c.hook, e.Code, e.Message, e.Recovery)
		}
	}
}

// TestAcquireTellsNothing is LSE-1 and CAP-4: one answer to every mismatch, and
// the token is in no text.
func TestAcquireTellsNothing(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		c, err := w.host.Issue(ctx0, agentOf(key1, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Token); strings.Contains(s, string(c.Token)) {
			t.Error("a token is printed")
		}
		answers := map[string]bool{}
		try := func(tok reins.Token, change func(*reins.Binding)) {
			b := agentOf(key1, 1)
			change(&b)
			_, err := w.host.Acquire(ctx0, tok, b)
			answers[code(t, err, reins.CodeUnauthorized).Error()] = true
		}
		try("reins_wrong", func(*reins.Binding) {})
		try("", func(*reins.Binding) {})
		for _, change := range []func(*reins.Binding){
			func(b *reins.Binding) { b.Project = "q" },
			func(b *reins.Binding) { b.Resource = "two" },
			func(b *reins.Binding) { b.AuthorityID = "x" },
			func(b *reins.Binding) { b.Revision++ },
			func(b *reins.Binding) { b.Session = &reins.Session{Harness: "a", Native: "b"} },
			func(b *reins.Binding) { b.Session = nil },
			func(b *reins.Binding) { b.Actor = "x" },
			func(b *reins.Binding) { b.Role = reins.RoleHuman },
			func(b *reins.Binding) { b.Peer = "x" },
			func(b *reins.Binding) { b.Source = reins.SourceAPI },
			func(b *reins.Binding) { b.Scope = "x" },
			func(b *reins.Binding) { b.Run = "x" },
		} {
			try(c.Token, change)
		}
		l, err := w.host.Acquire(ctx0, c.Token, agentOf(key1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(ctx0); err != nil {
			t.Fatal(err)
		}
		try(c.Token, func(*reins.Binding) {}) // used up
		c, _ = w.host.Issue(ctx0, agentOf(key1, 1), time.Second)
		time.Sleep(time.Second)
		try(c.Token, func(*reins.Binding) {}) // expired
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
	})
}

// TestLeaseEnds is LSE-2, LSE-4, LSE-6 and CAP-6: whatever ends a lease, its
// queued, running and later calls fail with lease_ended and the reason, Done is
// closed at once, and others are not disturbed.
func TestLeaseEnds(t *testing.T) {
	ends := map[string]func(w *world, c reins.Capability, l *lease) error{
		reasonReleased: func(w *world, c reins.Capability, l *lease) error { return l.Release(ctx0) },
		reasonRevoked:  func(w *world, c reins.Capability, l *lease) error { return w.host.Revoke(ctx0, c.ID) },
		reasonReplaced: func(w *world, c reins.Capability, l *lease) error {
			_, err := w.host.Acquire(ctx0, c.Token, c.Binding)
			return err
		},
		reasonDetached: func(w *world, c reins.Capability, l *lease) error { return l.r.Attach(ctx0, attached(2)) },
		reasonExpired: func(w *world, c reins.Capability, l *lease) error {
			time.Sleep(time.Until(l.Expires()))
			return nil
		},
	}
	for reason, end := range ends {
		t.Run(reason, func(t *testing.T) {
			bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
				b := agentOf(key1, 1)
				c, err := w.host.Issue(ctx0, b, 0)
				if err != nil {
					t.Fatal(err)
				}
				got, err := w.host.Acquire(ctx0, c.Token, b)
				if err != nil {
					t.Fatal(err)
				}
				l := got.(*lease)
				later, err := w.host.Issue(ctx0, personOf(key1), time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				person, err := w.host.Acquire(ctx0, later.Token, personOf(key1))
				if err != nil {
					t.Fatal(err)
				}
				w.set("do", hang)
				if reason == reasonExpired {
					time.Sleep(4*time.Minute + 50*time.Second) // an operation has a deadline of its own
				}
				running := start(l, reins.Call{Action: open})
				queued := start(l, reins.Call{Action: open})
				others := start(person, reins.Call{Action: open})
				mine := l.Authority()
				if !l.IsCurrent(mine) {
					t.Error("a live authority is not current")
				}
				if err := end(w, c, l); err != nil {
					t.Fatal(err)
				}
				if reason == reasonExpired {
					synctest.Wait()
				}
				select {
				case <-l.Done():
				default:
					t.Error("Done is not closed")
				}
				if l.IsCurrent(mine) {
					t.Error("an ended authority is current (LSE-5)")
				}
				for what, done := range map[string]<-chan error{"running": running, "queued": queued, "later": start(l, reins.Call{Action: open})} {
					if e := code(t, <-done, reins.CodeLeaseEnded); e.Details["reason"] != reason {
						t.Errorf("%s: details %v", what, e.Details)
					}
				}
				_, err = l.Renew(ctx0)
				code(t, err, reins.CodeLeaseEnded)
				if err := l.Release(ctx0); err != nil {
					t.Errorf("release of an ended lease: %v", err)
				}
				if err := <-others; err != nil {
					t.Errorf("somebody else's operation: %v", err) // LSE-4, ATT-4
				}
			})
		})
	}
}

// TestRenew is LSE-3.
func TestRenew(t *testing.T) {
	var how box[func(context.Context) error]
	hooks := reins.Hooks{Authorize: func(ctx context.Context, _ reins.Binding) error {
		if f := how.get(); f != nil {
			return f(ctx)
		}
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		id, first := l.Authority(), l.Expires()
		time.Sleep(4 * time.Minute)
		got, err := l.Renew(ctx0)
		if err != nil || !got.Equal(first.Add(4*time.Minute)) || !got.Equal(l.Expires()) {
			t.Fatalf("renewed to %s (%v)", got, err)
		}
		if now := l.Authority(); now != id && (now.LeaseID != id.LeaseID || now.CapabilityID != id.CapabilityID) {
			t.Errorf("a renewal changed the authority: %+v", now)
		}
		time.Sleep(4 * time.Minute) // beyond the first expiry
		if !l.IsCurrent(l.Authority()) {
			t.Fatal("a renewed lease ended at its old expiry")
		}
		how.set(func(context.Context) error { return errors.New("no") })
		_, err = l.Renew(ctx0)
		code(t, err, reins.CodeDenied)
		if !l.Expires().Equal(got) {
			t.Error("a denied renewal moved the expiry")
		}
		release := make(chan struct{})
		how.set(func(context.Context) error { <-release; return nil })
		short, cancel := context.WithTimeout(ctx0, time.Second)
		defer cancel()
		_, err = l.Renew(short)
		code(t, err, reins.CodeTimeout)
		_, err = l.Renew(ctx0)
		code(t, err, reins.CodeBusy) // the call that timed out has not returned
		close(release)
		synctest.Wait()
		if !l.Expires().Equal(got) {
			t.Error("a renewal that timed out moved the expiry")
		}
		how.set(nil)
		if _, err := l.Renew(ctx0); err != nil {
			t.Error(err)
		}
	})
}

// TestCapabilityBounds is CAP-5: at each bound one more is refused, and ending
// one makes room.
func TestCapabilityBounds(t *testing.T) {
	bubble(t, bubbleOptions{limits: reins.Limits{Capabilities: 3, CapabilitiesPerResource: 2}}, func(t *testing.T, w *world, r *resource) {
		key2 := reins.ResourceKey{Project: "p", ID: "two"}
		if _, err := w.host.Register(ctx0, reins.Registration{Key: key2}); err != nil {
			t.Fatal(err)
		}
		first, err := w.host.Issue(ctx0, personOf(key1), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		w.lease(t, personOf(key1))
		_, err = w.host.Issue(ctx0, personOf(key1), 0)
		code(t, err, reins.CodeQuotaExceeded) // of the resource
		w.lease(t, personOf(key2))
		_, err = w.host.Issue(ctx0, personOf(key2), 0)
		code(t, err, reins.CodeQuotaExceeded) // of the runtime
		time.Sleep(time.Second)
		synctest.Wait()
		code(t, w.host.Revoke(ctx0, first.ID), reins.CodeNotFound) // it expired
		w.lease(t, personOf(key2))
	})
}

// TestAttach is ATT-1 to ATT-4: order by revision alone, older agents end and
// are quiet before it returns, people stay, and a caller that leaves undoes
// nothing.
func TestAttach(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		if err := r.Attach(ctx0, attached(1)); err != nil {
			t.Errorf("the identical attachment: %v", err)
		}
		code(t, r.Attach(ctx0, reins.Attachment{}), reins.CodeStaleRevision)
		code(t, r.Attach(ctx0, reins.Attachment{AuthorityID: "boss", Session: session}), reins.CodeInvalidInput)
		other := attached(1)
		other.AuthorityID = "other"
		code(t, r.Attach(ctx0, other), reins.CodeConflict)
		w.set("do", late) // quiet one second after it is told to stop
		running := start(agent, reins.Call{Action: open})
		gone, cancel := context.WithCancel(ctx0)
		cancel()
		began := time.Now()
		next := attached(7)
		next.AuthorityID = "another"
		code(t, r.Attach(gone, next), reins.CodeCancelled)
		if d := time.Since(began); d != 0 {
			t.Errorf("a caller that had left waited %s", d)
		}
		code(t, r.Attach(ctx0, attached(6)), reins.CodeStaleRevision) // current at once
		pending(t, running)
		if err := r.Attach(ctx0, next); err != nil { // joins
			t.Fatal(err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("attached after %s, while the older agent's effect took a second to be quiet", d)
		}
		code(t, <-running, reins.CodeLeaseEnded)
		if !person.IsCurrent(person.Authority()) {
			t.Error("a person's lease ended with the attachment (ATT-4)")
		}
		if len(w.cells) != 1 || !w.cells[0].alive() {
			t.Error("the browser did not survive (ATT-5)")
		}
	})
}

// box holds what a test changes while hooks may read it.
type box[T any] struct {
	mu sync.Mutex
	v  T
}

func (b *box[T]) set(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.v = v
}

func (b *box[T]) get() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.v
}
