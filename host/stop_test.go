package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// blockFolder puts a file where a folder has to be made.
func blockFolder(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRetireTriesAgain is RES-5: while the browser cannot be ended an operation
// that needs its end waits too, and each call is a new try for both.
func TestRetireTriesAgain(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.set("do", stubborn)
		running := start(l, reins.Call{Action: open})
		w.set("probe", unanswered)
		w.set("close", undying)
		if err := r.Retire(ctx0); err == nil {
			t.Fatal("a browser that does not end was told as retired")
		}
		pending(t, running) // it may still act
		if !w.cells[0].alive() {
			t.Fatal("the browser ended at the first try")
		}
		if err := r.Retire(ctx0); err != nil {
			t.Fatal(err)
		}
		code(t, <-running, reins.CodeLeaseEnded)
	})
}

// TestRetireIsJoined is RES-5: a caller that leaves does not undo it, and others
// get the same outcome.
func TestRetireIsJoined(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		gone, cancel := context.WithCancel(ctx0)
		cancel()
		if err := r.Retire(gone); err != nil && reins.CodeOf(err) != reins.CodeCancelled {
			t.Error(err)
		}
		if l.IsCurrent(l.Authority()) {
			t.Error("not fenced at once")
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := r.Retire(ctx0); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		_, err := w.host.Open(ctx0, key1)
		code(t, err, reins.CodeRetired)
	})
}

// TestFailedRetirementIsNotForgotten is RES-5: one that never succeeded is not
// told as one that did, also when the runtime stopped since.
func TestFailedRetirementIsNotForgotten(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		w.set("room close", failBefore)
		if err := r.Retire(ctx0); err == nil {
			t.Fatal("a failed step was not told")
		}
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		code(t, r.Retire(ctx0), reins.CodeRuntimeStopped)
	})
}

// trap is a context that does something when it is first looked at.
type trap struct {
	context.Context
	once   sync.Once
	spring func()
}

func (c *trap) Err() error {
	c.once.Do(c.spring)
	return c.Context.Err()
}

// TestPutMeetsRetirement is RES-5 and ART-5: bytes that come when the purge was
// over are not kept.
func TestPutMeetsRetirement(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		meanwhile := &trap{Context: ctx0, spring: func() {
			if err := r.Retire(ctx0); err != nil {
				t.Error(err)
			}
		}}
		_, err := w.host.Artifacts(key1).Put(meanwhile, reins.Artifact{Kind: "upload", Name: "a"}, strings.NewReader("a"))
		code(t, err, reins.CodeRetired)
		gen, err := w.host.current()
		if err != nil {
			t.Fatal(err)
		}
		if n, size := gen.store.Usage(key1); n != 0 || size != 0 {
			t.Errorf("%d artifacts with %d bytes are charged to a retired resource", n, size)
		}
	})
}

// registering starts a Register that waits for the generation's lock, which the
// caller holds, and returns what came of it once the lock is free.
func registering(t *testing.T, h *Host, reg reins.Registration) func() error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := h.Register(ctx0, reg)
		done <- err
	}()
	within(t, 5*time.Second, "Register waits for the lock", func() bool {
		buf := make([]byte, 1<<20)
		for one := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(one, "(*generation).register(") && strings.Contains(one, "sync.(*Mutex).Lock") {
				return true
			}
		}
		return false
	})
	return func() error { return <-done }
}

// TestRegisterMeetsTheEnd is RES-5 and LIFE-1: a registration that was on its way
// when its key was retired, or when the generation was fenced, does not come in
// after that.
func TestRegisterMeetsTheEnd(t *testing.T) {
	w := newWorld(t, t.TempDir(), reins.Hooks{}, reins.Limits{})
	defer w.stop(t)
	gen, err := w.host.current()
	if err != nil {
		t.Fatal(err)
	}
	gen.mu.Lock()
	retired := registering(t, w.host, reins.Registration{Key: key1})
	w.host.graves.add(key1)
	gen.mu.Unlock()
	code(t, retired(), reins.CodeRetired)
	gen.mu.Lock()
	late := registering(t, w.host, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "late"}})
	gen.cancel(errStopped())
	gen.mu.Unlock()
	code(t, late(), reins.CodeRuntimeStopped)
	if n := len(gen.all()); n != 0 {
		t.Errorf("%d resources in a fenced generation", n)
	}
}

// TestStopBreaksOffStart is LIFE-0: a Stop during a Start ends what the Start
// began, whether or not it notices.
func TestStopBreaksOffStart(t *testing.T) {
	for _, notices := range []bool{true, false} {
		t.Run(fmt.Sprint(notices), func(t *testing.T) {
			bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
				if err := w.host.Stop(ctx0); err != nil {
					t.Fatal(err)
				}
				take := w.host.parts.open
				w.host.parts.open = func(ctx context.Context, dir string) (ground, error) {
					noticed := ctx.Done()
					if !notices {
						noticed = nil
					}
					select {
					case <-noticed:
						return nil, reins.ContextError(ctx)
					case <-time.After(time.Second):
						return take(ctx, dir)
					}
				}
				started := make(chan error, 1)
				go func() { started <- w.host.Start(ctx0) }()
				synctest.Wait()
				code(t, w.host.Start(ctx0), reins.CodeBusy)
				if err := w.host.Stop(ctx0); err != nil {
					t.Fatal(err)
				}
				if err := <-started; notices && reins.CodeOf(err) != reins.CodeRuntimeStopped {
					t.Errorf("the start told %v", err)
				}
				_, err := w.host.List(ctx0, "p")
				code(t, err, reins.CodeRuntimeStopped)
				w.host.parts.open = take
				if err := w.host.Start(ctx0); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestStopTakesTooLong is LIFE-2: after its limit Stop returns and the clean-up
// goes on; a later one joins it, and Start waits for it.
func TestStopTakesTooLong(t *testing.T) {
	bubble(t, bubbleOptions{limits: reins.Limits{CleanUp: 10 * time.Second}}, func(t *testing.T, w *world, r *resource) {
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		take, closing := w.host.parts.open, make(chan struct{})
		w.host.parts.open = func(ctx context.Context, dir string) (ground, error) {
			g, err := take(ctx, dir)
			return slowGround{g, closing}, err
		}
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if e := code(t, w.host.Stop(ctx0), reins.CodeTimeout); e.Phase != reins.PhaseCleanUp || time.Since(began) != 10*time.Second {
			t.Errorf("%v in phase %s after %s", e, e.Phase, time.Since(began))
		}
		short, cancel := context.WithTimeout(ctx0, time.Second)
		defer cancel()
		code(t, w.host.Start(short), reins.CodeTimeout)
		joined, started := make(chan error, 1), make(chan error, 1)
		go func() { joined <- w.host.Stop(ctx0) }()
		go func() { started <- w.host.Start(ctx0) }()
		synctest.Wait()
		pending(t, joined)
		pending(t, started)
		close(closing)
		if err := errors.Join(<-joined, <-started); err != nil {
			t.Error(err)
		}
	})
}

// slowGround is given up when it is told to.
type slowGround struct {
	ground
	closing chan struct{}
}

func (g slowGround) Close(ctx context.Context) error {
	<-g.closing
	return g.ground.Close(context.WithoutCancel(ctx))
}

// TestStopTellsAll is LIFE-1: every step is taken, and what failed on the way is
// told, also when nothing is left in the end.
func TestStopTellsAll(t *testing.T) {
	release := make(chan struct{})
	hooks := reins.Hooks{Audit: func(reins.Record) { <-release }}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		release = make(chan struct{})
		let := sync.OnceFunc(func() { close(release) })
		defer let()
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		closes := func(b behaviour) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.each = map[string]behaviour{"close": b}
		}
		closes(undying) // however often it is tried again meanwhile
		e := code(t, w.host.Stop(ctx0), reins.CodeFenced)
		if !strings.Contains(e.Message, "Audit hook") || !strings.Contains(e.Message, key1.String()) {
			t.Errorf("the first stop told %q", e.Message)
		}
		closes(fine)
		e = code(t, w.host.Stop(ctx0), reins.CodeTimeout)
		if !strings.Contains(e.Message, "Audit hook") || w.rooms != 0 || w.cells[0].alive() {
			t.Errorf("the second stop told %q; %d rooms are left", e.Message, w.rooms)
		}
		if err := w.host.Stop(ctx0); err != nil {
			t.Errorf("a stopped host: %v", err)
		}
		let()
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLostFromTheBeginning is OWN-7: a directory that is lost while its runtime
// starts is cleaned up like any other.
func TestLostFromTheBeginning(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		take := w.host.parts.open
		w.host.parts.open = func(ctx context.Context, dir string) (ground, error) {
			g, err := take(ctx, dir)
			close(w.lost)
			return g, err
		}
		_ = w.host.Start(ctx0) // it may notice or not
		synctest.Wait()
		_, err := w.host.List(ctx0, "p")
		code(t, err, reins.CodeRuntimeStopped)
		w.host.parts.open = take
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRecordComesAfterSettling is GATE-3: when the audit trail tells of an
// operation, its place is free.
func TestRecordComesAfterSettling(t *testing.T) {
	var r box[*resource]
	var early box[int]
	hooks := reins.Hooks{Audit: func(rec reins.Record) {
		res := r.get()
		if res == nil || rec.Operation == "" {
			return
		}
		res.mu.Lock()
		defer res.mu.Unlock()
		if waiting, running := res.st.queue.Waiting(); waiting+running > 0 {
			early.set(early.get() + 1)
		}
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, res *resource) {
		r.set(res)
		l := w.lease(t, agentOf(key1, 1))
		for range 50 {
			if _, err := l.Do(ctx0, reins.Call{Action: open}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := early.get(); n > 0 {
			t.Errorf("%d records came before their operation had settled", n)
		}
	})
}
