package reinstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var lifeTests = map[string]func(*testing.T, Factory){
	"RES-4 terminate and start":   terminates,
	"RES-7 one start for all":     startsOnce,
	"RDY-2 and RDY-3 readiness":   readies,
	"RES-8 departures change not": departs,
}

func (w *world) info() reins.ResourceInfo {
	w.t.Helper()
	all, err := w.List(w.ctx, key.Project)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("list %v, %v", all, err)
	}
	return all[0]
}

func terminates(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	if err := r.Terminate(w.ctx); err != nil { // of nothing
		t.Error(err)
	}
	for range 2 {
		if err := r.Start(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if now := w.info(); now.State != reins.StateRunning || now.Incarnation != 1 || now.StartedAt.IsZero() || now.Participants != 1 {
		t.Errorf("started: %+v", now)
	}
	if a := l.Authority(); a.Incarnation != 1 {
		t.Errorf("authority after a start: %+v", a)
	}
	if _, err := w.Artifacts(key).Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	g := newGate()
	w.set(nil, g.hold)
	queued := w.do(l, navigate("https://a.example/"))
	w.arrived(g)
	if err := r.Terminate(w.ctx); err != nil {
		t.Fatal(err)
	}
	g.release()
	w.closed(queued.done, "an operation across the end")
	w.set(nil, nil)
	if _, err := l.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Errorf("the next operation: %v", err)
	}
	if now := w.info(); now.Incarnation < 2 || now.State != reins.StateRunning || now.Attachment.Revision != 1 {
		t.Errorf("after it: %+v", now)
	}
	if all, err := w.Artifacts(key).List(w.ctx); err != nil || len(all) != 1 {
		t.Errorf("artifacts %v, %v", all, err)
	}
	if err := r.Stop(w.ctx); err != nil {
		t.Fatal(err)
	}
	if now := w.info(); now.State != reins.StateStopped || now.Readiness.Overall != "stopped" {
		t.Errorf("stopped: %+v", now)
	}
	if err := r.Resume(w.ctx); err != nil {
		t.Fatal(err)
	}
	if now := w.info(); now.State != reins.StateRunning {
		t.Errorf("resumed: %+v", now)
	}
}

func startsOnce(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{Scheduling: reins.PerTab})
	var all []*doing
	for range 8 {
		all = append(all, w.do(w.lease(agent(1)), navigate("https://a.example/")))
	}
	for _, d := range all {
		w.closed(d.done, "an operation")
		w.want(d.err, "")
		if d.res.Meta.Incarnation != 1 {
			t.Errorf("incarnation %d", d.res.Meta.Incarnation)
		}
	}
}

func readies(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	if now := r.Readiness(); now.Overall != "unknown" || len(now.Capabilities) != 3 {
		t.Errorf("before a start: %+v", now)
	}
	now, err := r.WaitFor(w.ctx, reins.CapableRuntime, reins.CapableAutomation)
	if err != nil || now.Overall != "ready" || now.Capabilities[reins.CapableBrowser].State != "ready" {
		t.Errorf("ready: %+v, %v", now, err)
	}
	_, err = r.WaitFor(w.ctx, "telepathy")
	w.want(err, reins.CodeInvalidInput)
	now, err = r.WaitFor(w.ctx, reins.CapableDesktop)
	if e := w.want(err, reins.CodeNotReady); e.Capability != reins.CapableDesktop || now.Overall != "ready" {
		t.Errorf("without a desktop: %+v, %+v", e, now)
	}
}

func departs(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	if err := r.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(w.ctx, reins.Attachment{AuthorityID: "boss", Revision: 2}); err != nil {
		t.Fatal(err)
	}
	if now := w.info(); now.State != reins.StateRunning || now.Incarnation != 1 || now.Participants != 0 {
		t.Errorf("all have left: %+v", now)
	}
}

var artifactTests = map[string]func(*testing.T, Factory){
	"ART-1 and ART-4 store and read": stores,
	"ART-3 quotas":                   boundsArtifacts,
	"ART-5 an end while it is read":  deletesRead,
	"artifact refusals":              refusesArtifacts,
}

func stores(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	store := w.Artifacts(key)
	if all, err := store.List(w.ctx); err != nil || len(all) != 0 {
		t.Errorf("before: %v, %v", all, err)
	}
	for name, data := range map[string][]byte{"naïve \"file\".txt": []byte("hello"), "empty": {}, "big": bytes.Repeat([]byte("0123456789abcde\n"), 200<<10)} {
		put, err := store.Put(w.ctx, reins.Artifact{Kind: "upload", MediaType: "text/plain", Name: name, Owner: "o=1&x", Size: int64(len(data))}, bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sum := sha256.Sum256(data)
		if put.Size != int64(len(data)) || put.SHA256 != hex.EncodeToString(sum[:]) || put.Project != "p" || put.Resource != "one" ||
			put.Kind != "upload" || put.MediaType != "text/plain" || put.Owner != "o=1&x" || put.ID == "" || put.Created.IsZero() {
			t.Errorf("stored %+v", put)
		}
		got, r, err := store.Open(w.ctx, put.ID)
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(back, data) {
			t.Errorf("%s: %d bytes came back, %v", name, len(back), err)
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if !got.Created.Equal(put.Created) {
			t.Errorf("created %s and %s", got.Created, put.Created)
		}
		if got.Created = put.Created; got != put {
			t.Errorf("opened %+v, stored %+v", got, put)
		}
		if err := store.Delete(w.ctx, put.ID); err != nil {
			t.Error(err)
		}
		w.want(store.Delete(w.ctx, put.ID), reins.CodeNotFound)
		_, _, err = store.Open(w.ctx, put.ID)
		w.want(err, reins.CodeNotFound)
	}
	put, err := store.Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	_, r, err := store.Open(ctx, put.ID)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // it ends the opening, not the reading
	if back, err := io.ReadAll(r); err != nil || string(back) != "x" {
		t.Errorf("%q, %v", back, err)
	}
	r.Close()
}

func boundsArtifacts(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{ArtifactsPerResource: 2, ArtifactBytesResource: 1 << 20})
	w.register(reins.BrowserSpec{})
	store := w.Artifacts(key)
	_, err := store.Put(w.ctx, reins.Artifact{Kind: "upload"}, bytes.NewReader(make([]byte, 1<<20+1)))
	w.want(err, reins.CodeQuotaExceeded)
	var last reins.Artifact
	for range 2 {
		if last, err = store.Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	_, err = store.Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x"))
	w.want(err, reins.CodeQuotaExceeded)
	if err := store.Delete(w.ctx, last.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x")); err != nil {
		t.Errorf("a deleted one's place: %v", err)
	}
	if all, err := store.List(w.ctx); err != nil || len(all) != 2 {
		t.Errorf("%d artifacts, %v", len(all), err)
	}
}

func deletesRead(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	store := w.Artifacts(key)
	const size = 32 << 20 // more than any buffer on the way
	put, err := store.Put(w.ctx, reins.Artifact{Kind: "upload"}, io.LimitReader(zeroes{}, size))
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := store.Open(w.ctx, put.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(w.ctx, put.ID); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	if err == nil || n+1000 >= size {
		t.Errorf("%d bytes of a deleted artifact, %v", n, err)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, errors.New("torn") }

func refusesArtifacts(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	store := w.Artifacts(key)
	for _, id := range []string{"", "none", "../x", ".", "a/b", strings.Repeat("x", 200)} {
		_, r, err := store.Open(w.ctx, id)
		w.want(err, reins.CodeNotFound)
		if r != nil {
			t.Error("a reader beside an error")
		}
		w.want(store.Delete(w.ctx, id), reins.CodeNotFound)
	}
	_, err := store.Put(w.ctx, reins.Artifact{Kind: "upload"}, nil)
	w.want(err, reins.CodeInvalidInput)
	_, err = store.Put(w.ctx, reins.Artifact{Kind: "a b"}, strings.NewReader("x"))
	w.want(err, reins.CodeInvalidInput)
	if _, err = store.Put(w.ctx, reins.Artifact{Kind: "upload"}, torn{}); err == nil {
		t.Error("a torn source was stored")
	}
	if all, err := store.List(w.ctx); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
	none := w.Artifacts(reins.ResourceKey{Project: "p", ID: "none"})
	_, err = none.List(w.ctx)
	w.want(err, reins.CodeNotFound)
	_, err = w.Artifacts(reins.ResourceKey{}).List(w.ctx)
	w.want(err, reins.CodeInvalidInput)
}

var eventTests = map[string]func(*testing.T, Factory){
	"events tell what happens":         tells,
	"events of a slow reader":          countsMissed,
	"events end with the reader's ctx": unfollows,
}

func tells(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	if _, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "before", ID: "x"}}); err != nil {
		t.Fatal(err)
	}
	events, err := w.Events(w.ctx, key.Project)
	if err != nil {
		t.Fatal(err)
	}
	r := w.register(reins.BrowserSpec{})
	if _, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "other", ID: "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(w.ctx, attached(2)); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	put, err := w.Artifacts(key).Put(w.ctx, reins.Artifact{Kind: "upload"}, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Retire(w.ctx); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var states []reins.State
	for {
		var e reins.Event
		select {
		case e = <-events:
		case <-time.After(patience):
			t.Fatalf("after %v no more came", kinds)
		}
		if e.Key != key || e.Time.IsZero() || e.Missed != 0 {
			t.Errorf("event %+v", e)
		}
		if e.Kind == "artifact" && e.Detail != put.ID {
			t.Errorf("event %+v", e)
		}
		switch e.Kind {
		case "state":
			states = append(states, e.State)
			continue
		case "control": // as often as it changes
			if e.Control == nil {
				t.Errorf("event %+v", e)
			}
			continue
		}
		if kinds = append(kinds, e.Kind); e.Kind == "retired" {
			break
		}
	}
	if !slices.Equal(kinds, []string{"registered", "attached", "artifact", "retired"}) {
		t.Errorf("told %v", kinds)
	}
	if !slices.Contains(states, reins.StateStarting) || !slices.Contains(states, reins.StateRunning) {
		t.Errorf("states %v", states)
	}
}

func countsMissed(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	events, err := w.Events(w.ctx, key.Project)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1500
	for i := range n {
		if err := r.Attach(w.ctx, attached(uint64(i)+2)); err != nil {
			t.Fatal(err)
		}
	}
	got, missed := 0, 0
	for got+missed < n {
		select {
		case e, more := <-events:
			if !more || e.Missed < 0 {
				t.Fatalf("after %d and %d missed: %+v", got, missed, e)
			}
			got, missed = got+1, missed+e.Missed
		case <-time.After(patience):
			t.Fatalf("%d came and %d were missed, of %d", got, missed, n)
		}
	}
	if got+missed != n || missed == 0 {
		t.Errorf("%d came and %d were missed, of %d", got, missed, n)
	}
}

func unfollows(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	ctx, cancel := context.WithCancel(w.ctx)
	events, err := w.Events(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for {
		select {
		case _, more := <-events:
			if !more {
				return
			}
		case <-time.After(patience):
			t.Fatal("the events do not end")
		}
	}
}
