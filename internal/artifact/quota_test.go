package artifact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

// tight are limits small enough to be met: per resource 4 and 3,000 bytes, per
// project 6 and 5,000, in the runtime 8 and 7,000.
var tight = reins.Limits{
	ArtifactsPerResource: 4, ArtifactsPerProject: 6, Artifacts: 8,
	ArtifactBytesResource: 3000, ArtifactBytesProject: 5000, ArtifactBytes: 7000,
}

// model is what the quotas say, told as plainly as possible: a list.
type model struct {
	stored []reins.Artifact
}

func (m *model) used(scope func(reins.Artifact) bool) (n int, bytes int64) {
	for _, a := range m.stored {
		if scope(a) {
			n++
			bytes += a.Size
		}
	}
	return n, bytes
}

func (m *model) fits(k reins.ResourceKey, reserve int64) bool {
	rn, rb := m.used(func(a reins.Artifact) bool { return a.Project == k.Project && a.Resource == k.ID })
	pn, pb := m.used(func(a reins.Artifact) bool { return a.Project == k.Project })
	n, b := m.used(func(reins.Artifact) bool { return true })
	return rn < 4 && pn < 6 && n < 8 && rb+reserve <= 3000 && pb+reserve <= 5000 && b+reserve <= 7000
}

func (m *model) drop(gone func(reins.Artifact) bool) {
	var rest []reins.Artifact
	for _, a := range m.stored {
		if !gone(a) {
			rest = append(rest, a)
		}
	}
	m.stored = rest
}

// ART-3, ART-5: whatever is stored, deleted and purged in whatever order, the
// store admits exactly what fits, and what it charges is what is on disk.
func TestQuotasFollowTheModel_ART3_ART5(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path, err := os.MkdirTemp(base, "")
		if err != nil {
			rt.Fatal(err)
		}
		dir, err := os.Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		s, err := Open(dir, Options{Limits: tight})
		if err != nil {
			rt.Fatal(err)
		}
		s.disk.sync = func(*os.File) error { return nil }
		defer func() { _ = errors.Join(s.Close(context.Background()), dir.Close(), os.RemoveAll(path)) }()
		m := &model{}
		keys := rapid.SampledFrom([]reins.ResourceKey{{Project: "p", ID: "a"}, {Project: "p", ID: "b"}, {Project: "q", ID: "a"}, {Project: "q", ID: "c"}})
		rt.Repeat(map[string]func(*rapid.T){
			"put":    func(rt *rapid.T) { modelPut(rt, s, m, keys.Draw(rt, "key")) },
			"delete": func(rt *rapid.T) { modelDelete(rt, s, m, keys.Draw(rt, "key")) },
			"purge": func(rt *rapid.T) {
				k := keys.Draw(rt, "key")
				if err := s.Purge(context.Background(), k); err != nil {
					rt.Fatal(err)
				}
				m.drop(func(a reins.Artifact) bool { return a.Project == k.Project && a.Resource == k.ID })
			},
			"": func(rt *rapid.T) { agree(rt, s, m, path) },
		})
	})
}

func modelPut(rt *rapid.T, s *Store, m *model, k reins.ResourceKey) {
	size := rapid.IntRange(0, 3200).Draw(rt, "size")
	extra := rapid.SampledFrom([]int{0, 0, 0, 1, 700}).Draw(rt, "more than it has")
	known := rapid.Bool().Draw(rt, "size known") && size+extra > 0
	breaks := rapid.IntRange(0, 9).Draw(rt, "breaks off") == 0
	bound, reserve := int64(0), int64(size)
	if known {
		bound = int64(size + extra)
		reserve = bound
	}
	var r io.Reader = bytes.NewReader(noise(uint64(size), size))
	if breaks {
		r = io.MultiReader(r, iotest.ErrReader(errors.New("torn")))
	}
	a, err := s.Put(context.Background(), shot(k), r, bound)
	switch fits := m.fits(k, reserve); {
	case !fits && reins.CodeOf(err) != reins.CodeQuotaExceeded:
		rt.Fatalf("%d bytes that do not fit: %v", size, err)
	case fits && breaks && reins.CodeOf(err) != reins.CodeCancelled:
		rt.Fatalf("a source that broke off: %v", err)
	case fits && !breaks && err != nil:
		rt.Fatalf("%d bytes that fit: %v", size, err)
	case err == nil:
		m.stored = append(m.stored, a)
	}
}

func modelDelete(rt *rapid.T, s *Store, m *model, k reins.ResourceKey) {
	if len(m.stored) == 0 {
		return
	}
	a := rapid.SampledFrom(m.stored).Draw(rt, "artifact")
	err := s.Delete(context.Background(), Access{Key: k}, a.ID)
	if mine := a.Project == k.Project && a.Resource == k.ID; !mine {
		if reins.CodeOf(err) != reins.CodeNotFound {
			rt.Fatalf("deleted through another resource: %v", err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	if err := s.Delete(context.Background(), Access{Key: k}, a.ID); reins.CodeOf(err) != reins.CodeNotFound {
		rt.Fatalf("deleted twice: %v", err)
	}
	m.drop(func(x reins.Artifact) bool { return x.ID == a.ID })
}

func agree(rt *rapid.T, s *Store, m *model, path string) {
	n, bytes := m.used(func(reins.Artifact) bool { return true })
	if s.quota.total != (usage{n, bytes}) {
		rt.Fatalf("charged %+v, the model has %d and %d bytes", s.quota.total, n, bytes)
	}
	list, err := os.ReadDir(path)
	if err != nil || len(list) != n {
		rt.Fatalf("%d files on disk for %d artifacts, %v", len(list), n, err)
	}
	seen := map[reins.ResourceKey]int{}
	for _, a := range m.stored {
		k := reins.ResourceKey{Project: a.Project, ID: a.Resource}
		seen[k]++
		if st, err := os.Stat(filepath.Join(path, s.name(k, a.ID))); err != nil || st.Size() != a.Size {
			rt.Fatalf("artifact %s: %v", a.ID, err)
		}
	}
	for k, n := range seen {
		if got := s.List(Access{Key: k}); len(got) != n {
			rt.Fatalf("%s lists %d of %d", k, len(got), n)
		}
	}
}

// gated gives its bytes once it is opened, and says when it is first asked.
type gated struct {
	asked chan struct{}
	open  chan struct{}
	once  sync.Once
	rest  io.Reader
}

func newGated(b []byte) *gated {
	return &gated{asked: make(chan struct{}), open: make(chan struct{}), rest: bytes.NewReader(b)}
}

func (g *gated) Read(p []byte) (int, error) {
	g.once.Do(func() { close(g.asked) })
	<-g.open
	return g.rest.Read(p)
}

type putResult struct {
	a   reins.Artifact
	err error
}

func putLater(s *Store, a reins.Artifact, r io.Reader, bound int64) chan putResult {
	c := make(chan putResult, 1)
	go func() {
		a, err := s.Put(context.Background(), a, r, bound)
		c <- putResult{a, err}
	}()
	return c
}

// ART-3: space is reserved before bytes are taken, so what is under way counts.
func TestSpaceIsReservedFirst_ART3(t *testing.T) {
	s, path := newStore(t, Options{Limits: tight})
	slow := newGated(noise(1, 10))
	first := putLater(s, shot(key), slow, 2000)
	<-slow.asked
	if n, b := s.Usage(key); n != 1 || b != 2000 {
		t.Fatalf("a put under way is charged as %d and %d bytes", n, b)
	}
	if got := s.List(Access{Key: key}); len(got) != 0 {
		t.Fatalf("a put under way is listed: %v", got)
	}
	var touched bool
	_, err := s.Put(t.Context(), shot(key), readerFunc(func([]byte) (int, error) { touched = true; return 0, io.EOF }), 1001)
	wantCode(t, err, reins.CodeQuotaExceeded)
	if touched {
		t.Error("a refused put read from its source")
	}
	mustPut(t, s, shot(key), noise(2, 1000))
	close(slow.open)
	if r := <-first; r.err != nil || r.a.Size != 10 {
		t.Fatal(r.err)
	}
	mustPut(t, s, shot(key), noise(3, 1990)) // the rest of the reservation was given back
	if n, b := onDisk(t, path); n != 3 || b != 3000 {
		t.Errorf("%d files with %d bytes on disk", n, b)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestMoreThanSaidIsRefused_ART3(t *testing.T) {
	s, path := newStore(t, Options{Limits: tight})
	_, err := s.Put(t.Context(), shot(key), bytes.NewReader(noise(1, 101)), 100)
	wantCode(t, err, reins.CodeQuotaExceeded)
	_, err = s.Put(t.Context(), shot(key), bytes.NewReader(noise(1, 3001)), 0)
	wantCode(t, err, reins.CodeQuotaExceeded)
	if e := reins.AsError(err); e.Details["limit"] != "artifact_bytes_per_resource" || !strings.Contains(e.Message, "shop/till") {
		t.Errorf("the refusal names neither limit nor resource: %v", err)
	}
	some := mustPut(t, s, shot(key), []byte("x"))
	_, err = s.Put(t.Context(), shot(key), bytes.NewReader(nil), math.MaxInt64)
	wantCode(t, err, reins.CodeQuotaExceeded)
	if err := s.Delete(t.Context(), Access{Key: key}, some.ID); err != nil {
		t.Fatal(err)
	}
	if n, b := s.Usage(key); n != 0 || b != 0 {
		t.Errorf("%d artifacts and %d bytes stay charged", n, b)
	}
	if n, _ := onDisk(t, path); n != 0 {
		t.Errorf("%d files stay", n)
	}
}

// ART-3: admission is serial: of many at once exactly as many get in as fit.
func TestManyAtOnceNeverExceedTheQuota_ART3(t *testing.T) {
	s, path := newStore(t, Options{Limits: tight})
	var results []chan putResult
	for i := range 40 {
		results = append(results, putLater(s, shot(key), bytes.NewReader(noise(uint64(i), 900)), []int64{0, 900}[i%2]))
	}
	in := 0
	for _, c := range results {
		if r := <-c; r.err == nil {
			in++
		} else {
			wantCode(t, r.err, reins.CodeQuotaExceeded)
		}
	}
	// Unknown sizes may block each other out while they fill; known ones alone
	// would be three.
	if n, b := s.Usage(key); n != in || b != int64(in)*900 || in < 1 || in > 3 {
		t.Errorf("%d of 900 bytes got in, charged are %d with %d bytes", in, n, b)
	}
	if n, b := onDisk(t, path); n != in || b != int64(in)*900 {
		t.Errorf("%d files with %d bytes on disk for %d", n, b, in)
	}
}

// ART-5: of many deletes of one artifact one succeeds, and the quota is given
// back once.
func TestQuotaIsFreedExactlyOnce_ART5(t *testing.T) {
	s, _ := newStore(t, Options{Limits: tight})
	for range 30 {
		a := mustPut(t, s, shot(key), noise(1, 500))
		keep := mustPut(t, s, shot(key), noise(2, 700))
		var wg sync.WaitGroup
		var mu sync.Mutex
		done := 0
		for i := range 8 {
			wg.Go(func() {
				err := s.Delete(context.Background(), Access{Key: key}, a.ID)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					done++
				} else if reins.CodeOf(err) != reins.CodeNotFound {
					t.Errorf("delete %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n, b := s.Usage(key); done != 1 || n != 1 || b != 700 {
			t.Fatalf("%d deletes succeeded, %d artifacts with %d bytes are charged", done, n, b)
		}
		if err := s.Delete(t.Context(), Access{Key: key}, keep.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// ART-5: a purge takes exactly one resource, with what is being stored in it.
func TestPurgeTakesExactlyTheResource_ART5(t *testing.T) {
	s, path := newStore(t, Options{})
	other := reins.ResourceKey{Project: key.Project, ID: key.ID + "2"}
	mustPut(t, s, shot(key), noise(1, 10))
	mustPut(t, s, shot(key), noise(2, 10))
	kept := mustPut(t, s, shot(other), noise(3, 10))
	slow := newGated(noise(4, 10))
	under := putLater(s, shot(key), slow, 0)
	<-slow.asked

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, s.Purge(ended, key), reins.CodeCancelled)
	purged := make(chan error, 1)
	go func() { purged <- s.Purge(context.Background(), key) }()
	close(slow.open)
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	r := <-under
	wantCode(t, r.err, reins.CodeRetired)
	if n, b := s.Usage(key); n != 0 || b != 0 {
		t.Errorf("%d artifacts with %d bytes stay charged", n, b)
	}
	if got := s.List(Access{Key: other}); len(got) != 1 || got[0] != kept {
		t.Errorf("the other resource has %v", got)
	}
	if n, _ := onDisk(t, path); n != 1 {
		t.Errorf("%d files stay", n)
	}
}

// ART-5: a purge that comes when all is written but nothing is listed yet still
// takes it.
func TestPurgeAtTheLastMoment_ART5(t *testing.T) {
	s, path := newStore(t, Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.disk.sync = func(f *os.File) error {
		if f == s.dir { // the last step of a put
			wantCode(t, s.Purge(ended, key), reins.CodeCancelled)
		}
		return f.Sync()
	}
	_, err := s.Put(t.Context(), shot(key), strings.NewReader("x"), 0)
	wantCode(t, err, reins.CodeRetired)
	if n, _ := onDisk(t, path); n != 0 || len(s.List(Access{Key: key})) != 0 {
		t.Errorf("%d files stay", n)
	}
	if n, b := s.Usage(key); n != 0 || b != 0 {
		t.Errorf("%d artifacts with %d bytes stay charged", n, b)
	}
}
