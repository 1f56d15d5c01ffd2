package host

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// readers read an artifact over and over, chunk by chunk, until their lease
// ends, as open downloads do.
type readers struct {
	wg     sync.WaitGroup
	chunks atomic.Int64
	mu     sync.Mutex
	ends   []error
}

func (rs *readers) run(l reins.Lease, a reins.Artifact) {
	defer rs.wg.Done()
	for offset := int64(0); ; offset += 1 << 20 {
		if offset >= a.Size {
			offset = 0
		}
		res, err := l.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: a.ID, Offset: offset}})
		if err != nil {
			rs.mu.Lock()
			rs.ends = append(rs.ends, err)
			rs.mu.Unlock()
			return
		}
		if len(res.Data) > 0 {
			rs.chunks.Add(1)
		}
	}
}

// lastByteCase is one way in which authority ends.
type lastByteCase struct {
	name   string
	reason string
	end    func(w *world, r *resource, c reins.Capability, l reins.Lease) error
}

// TestLastByte is LSE-6 with real bytes on a real disk, in real time: from the
// call that ends authority to the last byte that an open read gives out are at
// most 250 ms, whatever ends it, and the read says how it ended.
func TestLastByte(t *testing.T) {
	for _, c := range []lastByteCase{
		{"release", reasonReleased, func(_ *world, _ *resource, _ reins.Capability, l reins.Lease) error { return l.Release(ctx0) }},
		{"revoke", reasonRevoked, func(w *world, _ *resource, c reins.Capability, _ reins.Lease) error {
			return w.host.Revoke(ctx0, c.ID)
		}},
		{"expiry", reasonExpired, func(_ *world, _ *resource, _ reins.Capability, l reins.Lease) error {
			<-time.After(time.Until(l.Expires()))
			return nil
		}},
		{"replace", reasonReplaced, func(w *world, _ *resource, c reins.Capability, _ reins.Lease) error {
			_, err := w.host.Acquire(ctx0, c.Token, c.Binding)
			return err
		}},
		{"attach", reasonDetached, func(_ *world, r *resource, _ reins.Capability, _ reins.Lease) error {
			return r.Attach(ctx0, attached(2))
		}},
		{"retire", reasonRevoked, func(_ *world, r *resource, _ reins.Capability, _ reins.Lease) error { return r.Retire(ctx0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var after time.Duration
			for range 3 { // a machine that is busy elsewhere may take its time once
				if after = lastByte(t, c); after <= 250*time.Millisecond {
					return
				}
			}
			t.Errorf("the last byte came %s after authority ended", after)
		})
	}
}

// lastByte is how long after the end of authority began the last byte was given
// out. When that is, the audit trail tells: it is under the lock of that end.
func lastByte(t *testing.T, c lastByteCase) time.Duration {
	w := newWorld(t, t.TempDir(), reins.Hooks{}, reins.Limits{})
	r := w.register(t, reins.BrowserSpec{})
	life := 10 * time.Minute
	if c.reason == reasonExpired {
		life = 2 * time.Second
	}
	capability, err := w.host.Issue(ctx0, agentOf(key1, 1), life)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.host.Acquire(ctx0, capability.Token, capability.Binding)
	if err != nil {
		t.Fatal(err)
	}
	id := l.Authority().LeaseID
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	a, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "big", LeaseID: id}, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	rs := &readers{}
	for range 4 {
		rs.wg.Add(1)
		go rs.run(l, a)
	}
	within(t, time.Minute, "all read", func() bool { return rs.chunks.Load() > 8 || !time.Now().Before(l.Expires()) })
	began := time.Now()
	if c.reason == reasonExpired {
		began = l.Expires()
	}
	if err := c.end(w, r, capability, l); err != nil {
		t.Fatal(err)
	}
	returned := time.Now()
	rs.wg.Wait()
	w.stop(t) // the audit trail is complete
	for _, err := range rs.ends {
		if e := code(t, err, reins.CodeLeaseEnded); e.Details["reason"] != c.reason {
			t.Errorf("a read ended with %v", e.Details)
		}
	}
	last := began
	for _, rec := range w.records {
		if rec.LeaseID == id && rec.Action == string(reins.VerbReadArtifact) && rec.Outcome == reins.OutcomeCompleted && rec.Time.After(last) {
			last = rec.Time
		}
	}
	if c.reason != reasonExpired && c.reason != reasonReplaced && last.After(returned) {
		t.Error("a byte came after the call that ends authority had returned")
	}
	return last.Sub(began)
}

// TestReadIsCutWithinAChunk is LSE-8: authority that ends between a chunk's bytes
// being read and being handed out takes them back, and clears them.
func TestReadIsCutWithinAChunk(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		a, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "a", LeaseID: l.id}, strings.NewReader("private bytes"))
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"before it is checked", "when it settles"} {
			l := w.lease(t, personOf(key1))
			ctx, cancel := context.WithCancelCause(ctx0)
			op, err := l.admit(reins.Call{Action: reins.ReadArtifact{Artifact: a.ID}}, cancel)
			if err != nil {
				t.Fatal(err)
			}
			<-op.entry.Ready()
			if err := op.begin(ctx, nil); err != nil {
				t.Fatal(err)
			}
			end := func() {
				r.update(func(s *state) { r.endLocked(s, l.grant, errEnded(reasonRevoked)) })
			}
			if when == "before it is checked" {
				end()
			}
			res, err := op.artifacts(ctx)
			if when == "before it is checked" {
				code(t, err, reins.CodeLeaseEnded)
				if res != nil {
					t.Errorf("%s: handed on %+v", when, res)
				}
			}
			var data []byte
			if res != nil {
				data = res.Data
				if string(data) != "private bytes" {
					t.Fatalf("read %q", data)
				}
				end()
			}
			out, err := op.settle(res, err)
			if code(t, err, reins.CodeLeaseEnded); out != nil || slices.ContainsFunc(data, func(b byte) bool { return b != 0 }) {
				t.Errorf("%s: given out %+v, left %q", when, out, data)
			}
		}
	})
}

// TestUploadIsCut is LSE-8 for the read that a file control causes: it does not
// go on to the end of a big file.
func TestUploadIsCut(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, personOf(key1))
		op, err := l.admit(reins.Call{Action: reins.Snapshot{}}, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		from := &leased{op: op, ctx: ctx0, from: strings.NewReader("0123456789")}
		if n, err := from.Read(make([]byte, 4)); n != 4 || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		r.update(func(s *state) { r.endLocked(s, l.grant, errEnded(reasonRevoked)) })
		if n, err := io.ReadFull(from, make([]byte, 4)); n != 0 || reins.CodeOf(err) != reins.CodeLeaseEnded {
			t.Errorf("read %d more, %v", n, err)
		}
		_, _ = op.settle(nil, errEnded(reasonRevoked))
	})
}
