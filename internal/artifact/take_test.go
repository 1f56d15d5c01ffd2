package artifact

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

func hostileFolder(t *testing.T) (*os.File, string) {
	t.Helper()
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir, path
}

// ACT-10: a plain file is taken, stored and removed from the folder.
func TestTakeADownload_ACT10(t *testing.T) {
	s, _ := newStore(t, Options{})
	dir, path := hostileFolder(t)
	for _, size := range []int{0, 1, piece + 1} {
		want := noise(1, size)
		if err := os.WriteFile(filepath.Join(path, "guid"), want, 0o644); err != nil {
			t.Fatal(err)
		}
		a := shot(key)
		a.Kind, a.Name = "download", "../../<b>\u202egpj.exe"
		got, err := s.Take(t.Context(), a, dir, "guid")
		if err != nil {
			t.Fatal(err)
		}
		if got.Size != int64(size) || got.Name != "_b_gpj.exe" {
			t.Errorf("taken as %+v", got)
		}
		_, r, err := s.Open(t.Context(), Access{Key: key}, got.ID)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		_ = r.Close()
		if n, _ := onDisk(t, path); n != 0 {
			t.Error("the file stays in the folder")
		}
	}
}

// ACT-10: whatever else a cell puts there is refused at once, leads nowhere and
// stays where it is.
func TestHostileFilesAreNotTaken_ACT10(t *testing.T) {
	s, stored := newStore(t, Options{Limits: tight})
	dir, path := hostileFolder(t)
	at := func(name string) string { return filepath.Join(path, name) }
	secret := filepath.Join(t.TempDir(), "secret")
	sock, err := net.Listen("unix", at("socket"))
	err = errors.Join(err,
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.WriteFile(secret+"2", []byte("secret"), 0o600),
		os.Symlink(secret+"2", at("link")),
		os.Link(secret, at("hard")),
		os.Symlink(path, at("up")),
		os.Mkdir(at("dir"), 0o700),
		os.WriteFile(at("dir/inner"), []byte("x"), 0o600),
		unix.Mkfifo(at("fifo"), 0o600),
		os.WriteFile(at("sparse"), nil, 0o600),
		os.Truncate(at("sparse"), 1<<40),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	before, _ := onDisk(t, path)
	for _, c := range []struct {
		name string
		code reins.Code
	}{
		{"link", reins.CodeToolFailed}, {"hard", reins.CodeToolFailed}, {"dir", reins.CodeToolFailed},
		{"fifo", reins.CodeToolFailed}, {"socket", reins.CodeToolFailed}, {"none", reins.CodeToolFailed},
		{"sparse", reins.CodeQuotaExceeded},
		{"dir/inner", reins.CodeInvalidInput}, {"up/hard", reins.CodeInvalidInput}, {"../x", reins.CodeInvalidInput},
		{"..", reins.CodeInvalidInput}, {".", reins.CodeInvalidInput}, {"", reins.CodeInvalidInput},
		{"a\x00b", reins.CodeInvalidInput}, {"/etc/hostname", reins.CodeInvalidInput},
	} {
		if _, err := s.Take(t.Context(), shot(key), dir, c.name); reins.CodeOf(err) != c.code {
			t.Errorf("%q: %v, want %s", c.name, err, c.code)
		}
	}
	if n, _ := onDisk(t, path); n != before {
		t.Errorf("%d of %d entries stay", n, before)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file behind the links is now %q, %v", b, err)
	}
	if n, _ := onDisk(t, stored); n != 0 {
		t.Errorf("%d files were stored", n)
	}
}

// ACT-10: a file that changes while it is copied is not taken.
func TestAChangingDownloadIsNotTaken_ACT10(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grows": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte("more"))
			return errors.Join(err, f.Close())
		},
		"shrinks": func(p string) error { return os.Truncate(p, 10) },
		"is rewritten and hides it": func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p, noise(9, 2*piece), 0o600), os.Chtimes(p, info.ModTime(), info.ModTime()))
		},
		"is rewritten": func(p string) error { return os.WriteFile(p, noise(9, 2*piece), 0o600) },
	} {
		s, stored := newStore(t, Options{})
		dir, path := hostileFolder(t)
		file := filepath.Join(path, "guid")
		if err := os.WriteFile(file, noise(1, 2*piece), 0o600); err != nil {
			t.Fatal(err)
		}
		first := true
		s.disk.write = func(f *os.File, b []byte) (int, error) {
			if first {
				first = false
				if err := change(file); err != nil {
					t.Error(err)
				}
			}
			return f.Write(b)
		}
		_, err := s.Take(t.Context(), shot(key), dir, "guid")
		if code := reins.CodeOf(err); code != reins.CodeToolFailed && code != reins.CodeQuotaExceeded {
			t.Errorf("%s: %v", name, err)
		}
		if n, _ := onDisk(t, stored); n != 0 {
			t.Errorf("%s: %d files were stored", name, n)
		}
	}
}
