package artifact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

var errDisk = errors.New("disk says no")

// breakStep makes one step of the disk fail at its nth use, before or after it
// took effect.
func breakStep(d disk, step string, nth int, after bool, fail error) disk {
	n := 0
	hit := func(do func() error) error {
		if n++; n != nth {
			return do()
		}
		if after {
			_ = do()
		}
		return fail
	}
	out := d
	switch step {
	case "write":
		out.write = func(f *os.File, b []byte) (c int, err error) {
			err = hit(func() (err error) { c, err = d.write(f, b); return err })
			return c, err
		}
	case "sync":
		out.sync = func(f *os.File) error { return hit(func() error { return d.sync(f) }) }
	case "link":
		out.link = func(dir *os.File, a, b string) error { return hit(func() error { return d.link(dir, a, b) }) }
	case "unlink":
		out.unlink = func(dir *os.File, name string) error { return hit(func() error { return d.unlink(dir, name) }) }
	}
	return out
}

// ART-2: whatever step of a write fails, before or after it took effect,
// nothing is listed, charged or left, and the next put works.
func TestATornWriteIsNeverListed_ART2(t *testing.T) {
	for _, c := range []struct {
		step string
		nth  int
	}{{"write", 1}, {"write", 2}, {"sync", 1}, {"sync", 2}, {"link", 1}, {"unlink", 1}} {
		for _, after := range []bool{false, true} {
			s, path := newStore(t, Options{})
			s.disk = breakStep(realDisk(), c.step, c.nth, after, errDisk)
			_, err := s.Put(t.Context(), shot(key), bytes.NewReader(noise(1, piece+10)), 0)
			wantCode(t, err, reins.CodeInternal)
			if !errors.Is(err, errDisk) || strings.Contains(err.Error(), "disk says no") {
				t.Errorf("%+v: the cause is lost, or told to the caller: %v", c, err)
			}
			if n, b := s.Usage(key); n != 0 || b != 0 {
				t.Errorf("%+v, after %v: %d and %d bytes stay charged", c, after, n, b)
			}
			if n, _ := onDisk(t, path); n != 0 || len(s.List(Access{Key: key})) != 0 {
				t.Errorf("%+v, after %v: %d files stay", c, after, n)
			}
			mustPut(t, s, shot(key), noise(2, 10))
		}
	}
}

func TestAFullDiskSaysSo(t *testing.T) {
	s, _ := newStore(t, Options{})
	s.disk = breakStep(realDisk(), "write", 1, false, &os.PathError{Op: "write", Path: "x", Err: unix.ENOSPC})
	_, err := s.Put(t.Context(), shot(key), strings.NewReader("x"), 0)
	wantCode(t, err, reins.CodeQuotaExceeded)
	if e := reins.AsError(err); e.Recovery != reins.RecoverFixHost || !strings.Contains(e.Message, "full") {
		t.Errorf("%v, recovery %s", err, e.Recovery)
	}
}

func TestABrokenSourceLeavesNothing_ART2(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		code reins.Code
	}{
		"torn":      {t.Context(), io.MultiReader(bytes.NewReader(noise(1, 5000)), iotest.ErrReader(errors.New("x"))), reins.CodeCancelled},
		"our error": {t.Context(), iotest.ErrReader(reins.Errorf(reins.CodeLeaseEnded, "ended")), reins.CodeLeaseEnded},
		"stuck":     {t.Context(), readerFunc(func([]byte) (int, error) { return 0, nil }), reins.CodeCancelled},
		"left": {gone, io.MultiReader(strings.NewReader("x"), readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, nil
		})), reins.CodeCancelled},
		"deadline": {t.Context(), iotest.ErrReader(context.DeadlineExceeded), reins.CodeTimeout},
	} {
		s, path := newStore(t, Options{})
		_, err := s.Put(c.ctx, shot(key), c.r, 0)
		if reins.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if n, _ := onDisk(t, path); n != 0 {
			t.Errorf("%s: %d files stay", name, n)
		}
		if n, b := s.Usage(key); n != 0 || b != 0 {
			t.Errorf("%s: %d and %d bytes stay charged", name, n, b)
		}
	}
}

// ART-5: a file that cannot be removed is seen by nobody, stays charged, and is
// removed by the next try, whoever makes it.
func TestAFileThatStaysIsChargedUntilItIsGone_ART5(t *testing.T) {
	again := map[string]func(t *testing.T, s *Store, id string){
		"delete": func(t *testing.T, s *Store, id string) {
			if err := s.Delete(t.Context(), Access{Key: key}, id); err != nil {
				t.Fatal(err)
			}
		},
		"purge": func(t *testing.T, s *Store, id string) {
			if err := s.Purge(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
		"the store itself": func(t *testing.T, s *Store, id string) {
			time.Sleep(retryAfter + time.Second) // virtual
			synctest.Wait()
		},
	}
	for name, f := range again {
		synctest.Test(t, func(t *testing.T) {
			s, path := newStore(t, Options{})
			a := mustPut(t, s, shot(key), noise(1, 100))
			s.disk = breakStep(realDisk(), "unlink", 1, false, errDisk)
			wantCode(t, s.Delete(t.Context(), Access{Key: key}, a.ID), reins.CodeInternal)
			_, err := s.Stat(Access{Key: key}, a.ID)
			wantCode(t, err, reins.CodeNotFound)
			if n, b := s.Usage(key); n != 1 || b != 100 {
				t.Errorf("charged %d with %d bytes while the file stays", n, b)
			}
			f(t, s, a.ID)
			if n, b := s.Usage(key); n != 0 || b != 0 {
				t.Errorf("%s: charged %d with %d bytes after the file went", name, n, b)
			}
			if n, _ := onDisk(t, path); n != 0 {
				t.Errorf("%s: %d files stay", name, n)
			}
		})
	}
}

// A removal that took effect and then failed frees the quota at the next try.
func TestARemovalOfUnknownOutcome_ART5(t *testing.T) {
	s, _ := newStore(t, Options{})
	a := mustPut(t, s, shot(key), noise(1, 100))
	s.disk = breakStep(realDisk(), "unlink", 1, true, errDisk)
	wantCode(t, s.Delete(t.Context(), Access{Key: key}, a.ID), reins.CodeInternal)
	if err := s.Delete(t.Context(), Access{Key: key}, a.ID); err != nil {
		t.Fatal(err)
	}
	if n, b := s.Usage(key); n != 0 || b != 0 {
		t.Errorf("charged %d with %d bytes", n, b)
	}
}

// LIFE-1: closing breaks off what is being stored and waits for it.
func TestCloseBreaksOffPuts_LIFE1(t *testing.T) {
	s, path := newStore(t, Options{})
	slow := newGated(noise(1, 10))
	put := putLater(s, shot(key), slow, 0)
	<-slow.asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, s.Close(ended), reins.CodeCancelled)
	close(slow.open)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := <-put
	wantCode(t, r.err, reins.CodeRuntimeStopped)
	if n, _ := onDisk(t, path); n != 0 {
		t.Errorf("%d files of the broken put stay", n)
	}
}

// ART-6: an expired artifact is gone from lists and reads at once, then from
// disk; kinds without a life stay.
func TestExpiry_ART6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, path := newStore(t, Options{Life: map[string]time.Duration{"screenshot": time.Hour, "download": 2 * time.Hour}})
		late := shot(key)
		late.Kind = "download"
		kept := shot(key)
		kept.Kind = "upload"
		a, b, c := mustPut(t, s, shot(key), noise(1, 10)), mustPut(t, s, late, noise(2, 10)), mustPut(t, s, kept, noise(3, 10))
		if !a.Expires.Equal(a.Created.Add(time.Hour)) || !b.Expires.Equal(b.Created.Add(2*time.Hour)) || !c.Expires.IsZero() {
			t.Fatal(a.Expires, b.Expires, c.Expires)
		}
		_, r, err := s.Open(t.Context(), Access{Key: key}, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()

		// The disk refuses: lists must not wait for it.
		s.disk = breakStep(realDisk(), "unlink", 1, false, errDisk)
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		if n := len(s.List(Access{Key: key})); n != 3 {
			t.Fatalf("%d listed just before the first expires", n)
		}
		time.Sleep(time.Nanosecond)
		if n := len(s.List(Access{Key: key})); n != 2 {
			t.Fatalf("%d listed when the first expires", n)
		}
		_, _, err = s.ReadChunk(t.Context(), Access{Key: key}, a.ID, 0, 1)
		wantCode(t, err, reins.CodeNotFound)
		synctest.Wait()
		_, err = r.Read(make([]byte, 1))
		wantCode(t, err, reins.CodeNotFound)
		if n, _ := s.Usage(key); n != 3 {
			t.Errorf("%d charged while the file stays", n)
		}
		time.Sleep(retryAfter)
		synctest.Wait()
		if n, _ := onDisk(t, path); n != 2 {
			t.Errorf("%d files after the retry", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, _ := onDisk(t, path); n != 1 {
			t.Errorf("%d files after the second expired", n)
		}
		time.Sleep(1000 * time.Hour)
		if got := s.List(Access{Key: key}); len(got) != 1 || got[0].ID != c.ID {
			t.Errorf("listed: %v", got)
		}
	})
	_, err := Open(os.Stdin, Options{Life: map[string]time.Duration{"x": -1}})
	wantCode(t, err, reins.CodeInvalidInput)
}
