package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = reins.ResourceKey{Project: "shop", ID: "till"}

// newStore makes a store over a fresh folder and returns both.
func newStore(t *testing.T, o Options) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "artifacts")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// noise is size bytes that compress and repeat nowhere, the same for a seed.
func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func shot(k reins.ResourceKey) reins.Artifact {
	return reins.Artifact{Project: k.Project, Resource: k.ID, Kind: "screenshot", MediaType: "image/png", Name: "page.png"}
}

func mustPut(t *testing.T, s *Store, a reins.Artifact, b []byte) reins.Artifact {
	t.Helper()
	got, err := s.Put(t.Context(), a, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("put: %v (%v)", err, errors.Unwrap(err))
	}
	return got
}

func wantCode(t *testing.T, err error, code reins.Code) {
	t.Helper()
	if e := (*reins.Error)(nil); !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
}

// onDisk is the number of files in the store's folder and their bytes.
func onDisk(t testing.TB, path string) (count int, size int64) {
	list, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return len(list), size
}

func TestWhatIsStoredComesBack_ART1(t *testing.T) {
	s, _ := newStore(t, Options{})
	for i, size := range []int{0, 1, piece - 1, piece, piece + 1, blockSize, blockSize + 1, 3*blockSize + 77} {
		want := noise(uint64(i), size)
		a := shot(key)
		a.LeaseID, a.Owner = "lease_1", "ada"
		for _, bound := range []int64{0, int64(size), int64(size) + 1000} {
			got, err := s.Put(t.Context(), a, bytes.NewReader(want), bound)
			if err != nil {
				t.Fatalf("%d bytes, bound %d: %v", size, bound, err)
			}
			sum := sha256.Sum256(want)
			if got.Size != int64(size) || got.SHA256 != hex.EncodeToString(sum[:]) || got.Kind != "screenshot" ||
				got.MediaType != "image/png" || got.Name != "page.png" || got.LeaseID != "lease_1" || got.Owner != "ada" ||
				got.Project != key.Project || got.Resource != key.ID || got.Created.IsZero() || !got.Expires.IsZero() {
				t.Fatalf("described as %+v", got)
			}
			meta, r, err := s.Open(t.Context(), Access{Key: key}, got.ID)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(b, want) || meta != got {
				t.Fatalf("%d bytes came back as %d, %v", size, len(b), err)
			}
			if err := errors.Join(r.Close(), r.Close()); err != nil {
				t.Fatal(err)
			}
			if n, used := s.Usage(key); n != 1 || used != int64(size) {
				t.Fatalf("charged %d artifacts, %d bytes for one of %d", n, used, size)
			}
			if err := s.Delete(t.Context(), Access{Key: key}, got.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestChunksAndSeeking_LSE8(t *testing.T) {
	s, _ := newStore(t, Options{})
	want := noise(5, 2*blockSize+100)
	a := mustPut(t, s, shot(key), want)
	acc := Access{Key: key}
	for _, c := range []struct{ offset, length int64 }{
		{0, 0}, {0, 1}, {blockSize - 1, 2}, {blockSize, MaxChunk}, {7, 5 * MaxChunk}, {2 * blockSize, 0}, {int64(len(want)), 10},
	} {
		meta, b, err := s.ReadChunk(t.Context(), acc, a.ID, c.offset, c.length)
		n := c.length
		if n == 0 || n > MaxChunk {
			n = MaxChunk
		}
		end := min(c.offset+n, int64(len(want)))
		if err != nil || !bytes.Equal(b, want[c.offset:end]) || meta != a {
			t.Errorf("chunk %+v: %d bytes, %v", c, len(b), err)
		}
	}
	for _, c := range [][2]int64{{-1, 1}, {0, -1}, {int64(len(want)) + 1, 0}} {
		_, _, err := s.ReadChunk(t.Context(), acc, a.ID, c[0], c[1])
		wantCode(t, err, reins.CodeInvalidInput)
	}
	_, r, err := s.Open(t.Context(), acc, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if at, err := r.Seek(-50, io.SeekEnd); err != nil || at != int64(len(want))-50 {
		t.Fatal(at, err)
	}
	if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, want[len(want)-50:]) {
		t.Fatal(len(b), err)
	}
	_, err = r.Seek(-1, io.SeekStart)
	wantCode(t, err, reins.CodeInvalidInput)
}

// ART-2: nothing that a caller says is in a path; files are private; the same
// IDs have other paths in another store.
func TestPathsAreKeyedDigests_ART2(t *testing.T) {
	s, path := newStore(t, Options{})
	a := shot(reins.ResourceKey{Project: "..", ID: "."})
	a.ID, a.Name, a.Owner = "../../../etc/passwd", "../../x\x00y", "/"
	got := mustPut(t, s, a, []byte("hello"))
	if got.ID == a.ID {
		t.Fatal("the caller chose the ID")
	}
	list, err := os.ReadDir(path)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	name := list[0].Name()
	if len(name) != 64 || strings.Trim(name, "0123456789abcdef") != "" {
		t.Errorf("the file is called %q", name)
	}
	info, err := list[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	other, _ := newStore(t, Options{})
	k := reins.ResourceKey{Project: "..", ID: "."}
	if s.name(k, got.ID) != name || other.name(k, got.ID) == name {
		t.Error("a path does not depend on the store's key alone")
	}
	if s.name(reins.ResourceKey{Project: "a", ID: "bc"}, "d") == s.name(reins.ResourceKey{Project: "ab", ID: "c"}, "d") {
		t.Error("two resources share a path")
	}
}

func TestCorruptBytesAreNeverGivenOut_ART4(t *testing.T) {
	alter := map[string]func(t *testing.T, file string){
		"a bit flipped": func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt([]byte{0xff}, 2*blockSize-1)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, file string) {
			if err := os.Truncate(file, blockSize); err != nil {
				t.Fatal(err)
			}
		},
		"longer": func(t *testing.T, file string) {
			if err := os.Truncate(file, 2*blockSize+1); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
		"a link to the same bytes": func(t *testing.T, file string) {
			if err := errors.Join(os.Rename(file, file+"x"), os.Symlink(file+"x", file)); err != nil {
				t.Fatal(err)
			}
		},
		"linked elsewhere": func(t *testing.T, file string) {
			if err := os.Link(file, file+"x"); err != nil {
				t.Fatal(err)
			}
		},
		"a folder": func(t *testing.T, file string) {
			if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, f := range alter {
		t.Run(name, func(t *testing.T) {
			s, path := newStore(t, Options{})
			a := mustPut(t, s, shot(key), noise(1, 2*blockSize))
			f(t, filepath.Join(path, s.name(key, a.ID)))
			_, r, err := s.Open(t.Context(), Access{Key: key}, a.ID)
			wantCode(t, err, reins.CodeCorrupt)
			if r != nil {
				t.Error("a reader came with the error")
			}
			_, b, err := s.ReadChunk(t.Context(), Access{Key: key}, a.ID, blockSize, 10)
			wantCode(t, err, reins.CodeCorrupt)
			if b != nil {
				t.Error("bytes came with the error")
			}
		})
	}
	t.Run("altered after the check", func(t *testing.T) {
		s, path := newStore(t, Options{})
		want := noise(1, 2*blockSize)
		a := mustPut(t, s, shot(key), want)
		_, r, err := s.Open(t.Context(), Access{Key: key}, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		alter["a bit flipped"](t, filepath.Join(path, s.name(key, a.ID)))
		b, err := io.ReadAll(r)
		wantCode(t, err, reins.CodeCorrupt)
		if !bytes.Equal(b, want[:blockSize]) {
			t.Errorf("%d bytes of the altered block were given out", len(b)-blockSize)
		}
	})
}

func TestOwnersAndLeases_ART4_LSE8(t *testing.T) {
	s, _ := newStore(t, Options{})
	mine := shot(key)
	mine.Owner, mine.LeaseID = "ada", "lease_a"
	a := mustPut(t, s, mine, []byte("x"))
	free := mustPut(t, s, shot(key), []byte("y"))
	other := reins.ResourceKey{Project: "shop", ID: "other"}
	for _, c := range []struct {
		name string
		acc  Access
		sees []string
	}{
		{"the parent", Access{Key: key}, []string{a.ID, free.ID}},
		{"the owner", Access{Key: key, Owner: "ada"}, []string{a.ID}},
		{"the lease", Access{Key: key, LeaseID: "lease_a"}, []string{a.ID}},
		{"another owner", Access{Key: key, Owner: "bob"}, nil},
		{"another lease", Access{Key: key, LeaseID: "lease_b"}, nil},
		{"the owner under another lease", Access{Key: key, Owner: "ada", LeaseID: "lease_b"}, nil},
		{"another resource", Access{Key: other}, nil},
		{"another project", Access{Key: reins.ResourceKey{Project: "x", ID: key.ID}}, nil},
	} {
		var got []string
		for _, x := range s.List(c.acc) {
			got = append(got, x.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.sees) {
			t.Errorf("%s lists %v, want %v", c.name, got, c.sees)
		}
		for _, id := range []string{a.ID, free.ID} {
			if strings.Contains(fmt.Sprint(c.sees), id) {
				if _, err := s.Stat(c.acc, id); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			_, err := s.Stat(c.acc, id)
			wantCode(t, err, reins.CodeNotFound)
			_, _, err = s.Open(t.Context(), c.acc, id)
			wantCode(t, err, reins.CodeNotFound)
			_, _, err = s.ReadChunk(t.Context(), c.acc, id, 0, 1)
			wantCode(t, err, reins.CodeNotFound)
			wantCode(t, s.Delete(t.Context(), c.acc, id), reins.CodeNotFound)
		}
	}
	if err := s.Delete(t.Context(), Access{Key: key, Owner: "ada"}, a.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Delete(t.Context(), Access{Key: key}, a.ID), reins.CodeNotFound)
}

func TestReadersEndWithTheirArtifact_LSE6(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(s *Store, id string) error
		code reins.Code
	}{
		"delete": {func(s *Store, id string) error { return s.Delete(context.Background(), Access{Key: key}, id) }, reins.CodeNotFound},
		"purge":  {func(s *Store, id string) error { return s.Purge(context.Background(), key) }, reins.CodeNotFound},
		"close":  {func(s *Store, id string) error { return s.Close(context.Background()) }, reins.CodeRuntimeStopped},
	} {
		s, _ := newStore(t, Options{})
		a := mustPut(t, s, shot(key), noise(2, 4096))
		_, r, err := s.Open(t.Context(), Access{Key: key}, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		if _, err := r.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := end.do(s, a.ID); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = r.Read(buf)
		wantCode(t, err, end.code)
		if strings.Trim(string(r.buf), "\x00") != "" {
			t.Errorf("%s: the reader still holds bytes", name)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	s, path := newStore(t, Options{})
	a := mustPut(t, s, shot(key), []byte("x"))
	if err := errors.Join(s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), shot(key), strings.NewReader("y"), 0)
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, _, err = s.Open(t.Context(), Access{Key: key}, a.ID)
	wantCode(t, err, reins.CodeRuntimeStopped)
	wantCode(t, s.Delete(t.Context(), Access{Key: key}, a.ID), reins.CodeRuntimeStopped)
	wantCode(t, s.Purge(t.Context(), key), reins.CodeRuntimeStopped)
	if n := len(s.List(Access{Key: key})); n != 0 {
		t.Errorf("a closed store lists %d artifacts", n)
	}
	if n, _ := onDisk(t, path); n != 1 {
		t.Errorf("%d files are left; they are for the folder's owner to remove", n)
	}
}

func TestFolderMustBeFresh_DIR3(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"public":    func(p string) error { return os.Chmod(p, 0o750) },
		"not empty": func(p string) error { return os.WriteFile(filepath.Join(p, "x"), nil, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "a")
		if err := errors.Join(os.Mkdir(path, 0o700), spoil(path)); err != nil {
			t.Fatal(name, err)
		}
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(dir, Options{})
		wantCode(t, err, reins.CodeFenced)
		_ = dir.Close()
	}
	_, err := Open(nil, Options{})
	wantCode(t, err, reins.CodeInvalidInput)
}

func TestBadDescriptionsAreRefused(t *testing.T) {
	s, path := newStore(t, Options{})
	for name, spoil := range map[string]func(*reins.Artifact){
		"project":  func(a *reins.Artifact) { a.Project = "" },
		"resource": func(a *reins.Artifact) { a.Resource = "a/b" },
		"kind":     func(a *reins.Artifact) { a.Kind = "Screen shot" },
		"no kind":  func(a *reins.Artifact) { a.Kind = "" },
		"owner":    func(a *reins.Artifact) { a.Owner = strings.Repeat("x", 257) },
		"lease":    func(a *reins.Artifact) { a.LeaseID = strings.Repeat("x", 129) },
	} {
		a := shot(key)
		spoil(&a)
		if _, err := s.Put(t.Context(), a, strings.NewReader("x"), 0); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.Put(t.Context(), shot(key), nil, 0)
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = s.Put(t.Context(), shot(key), strings.NewReader("x"), -1)
	wantCode(t, err, reins.CodeInvalidInput)
	for in, want := range map[string]string{
		"": "application/octet-stream", "image/png": "image/png", "TEXT/Plain; charset=UTF-8": "text/plain; charset=UTF-8",
		"x": "application/octet-stream", "text/html\r\nX: y": "application/octet-stream", "a/b" + strings.Repeat("c", 300): "application/octet-stream",
	} {
		if got := mediaType(in); got != want {
			t.Errorf("media type %q becomes %q, want %q", in, got, want)
		}
	}
	if n, _ := onDisk(t, path); n != 0 {
		t.Errorf("%d files after refusals", n)
	}
}
