package hostdir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

func heldFolder(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Open(t.TempDir())
	check(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// LIFE-4: whatever a browser, or a hostile one, leaves in its profile goes, and
// nothing that it points to does.
func TestRemovingAHostileTree_LIFE4(t *testing.T) {
	dir := heldFolder(t)
	outside := t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "kept"), []byte("x"), 0o600), os.Mkdir(filepath.Join(outside, "folder"), 0o500))
	tree := filepath.Join(dir.Name(), "tree")
	at := func(name string) string { return filepath.Join(tree, name) }
	check(t, os.Mkdir(tree, 0o700),
		os.Symlink(outside, at("link to a folder")),
		os.Symlink(filepath.Join(outside, "kept"), at("link to a file")),
		os.Symlink("nowhere", at("broken link")),
		os.Symlink(".", at("loop")),
		os.Link(filepath.Join(outside, "kept"), at("hard link")),
		unix.Mkfifo(at("pipe"), 0o000),
		os.WriteFile(at("name\nwith \xff\x01 bytes"), nil, 0o000),
		os.WriteFile(at("-rf"), nil, 0o400),
		os.WriteFile(at("sparse"), nil, 0o600), os.Truncate(at("sparse"), 1<<40))
	l, err := net.Listen("unix", at("socket"))
	check(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	check(t, l.Close())
	for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o777, 0o777 | os.ModeSticky | os.ModeSetgid} {
		sub := at(fmt.Sprintf("mode %o", mode))
		check(t, os.MkdirAll(filepath.Join(sub, "in", "ner"), 0o700), os.WriteFile(filepath.Join(sub, "in", "x"), nil, 0o600),
			os.Chmod(filepath.Join(sub, "in"), mode), os.Chmod(sub, mode))
	}
	check(t, os.Chmod(tree, 0))
	check(t, removeTree(t.Context(), dir, "tree"))
	if exists(tree) {
		t.Error("the tree is still there")
	}
	if b, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(b) != "x" {
		t.Errorf("a file outside: %q, %v", b, err)
	}
	info, err := os.Stat(filepath.Join(outside, "folder"))
	if err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a folder outside: %v, %v", info, err)
	}
	check(t, removeTree(t.Context(), dir, "tree")) // gone is a success
}

// LIFE-4: neither depth nor breadth uses up descriptors, stack or patience.
func TestRemovingADeepAndAWideTree_LIFE4(t *testing.T) {
	dir := heldFolder(t)
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for i := range 1500 { // by descriptor: the path is longer than paths may be
		name := fmt.Sprintf("level-%04d", i)
		check(t, unix.Mkdirat(fd, name, 0o700))
		if i == 40 {
			check(t, unix.Mkdirat(fd, "read only", 0o500))
		}
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err, unix.Close(fd))
		fd = next
	}
	check(t, unix.Close(fd))
	wide := filepath.Join(dir.Name(), "level-0000", "wide")
	check(t, os.Mkdir(wide, 0o700))
	for i := range 3 * batch {
		check(t, os.WriteFile(filepath.Join(wide, fmt.Sprint(i)), nil, 0o600))
	}
	before := descriptors(t)
	var limit unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(before) + 150, Max: limit.Max}))
	err = removeTree(t.Context(), dir, "level-0000")
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit), err)
	if left := entries(t, dir.Name()); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	return len(entries(t, "/proc/self/fd"))
}

// A tree that somebody still writes to is removed as far as it goes; a removal
// that was broken off goes on when called again.
func TestRemovalGoesOn_LIFE2(t *testing.T) {
	dir := heldFolder(t)
	tree := filepath.Join(dir.Name(), "tree")
	for i := range 20 {
		check(t, os.MkdirAll(filepath.Join(tree, fmt.Sprint(i), "x"), 0o700))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, removeTree(ended, dir, "tree"), reins.CodeCancelled)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(filepath.Join(tree, "late", fmt.Sprint(i%50)), nil, 0o600)
				_ = os.Mkdir(filepath.Join(tree, "late"), 0o700)
			}
		}
	})
	for range 20 {
		if err := removeTree(t.Context(), dir, "tree"); err != nil {
			wantCode(t, err, reins.CodeFenced)
		}
	}
	close(stop)
	wg.Wait()
	check(t, removeTree(t.Context(), dir, "tree"))
	if exists(tree) {
		t.Error("the tree is still there")
	}
}

// WSP-1, B071: fifty incarnations leave nothing, whether they were removed or
// went with their generation.
func TestSlotsLeaveNothing_WSP1_B071(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	before := descriptors(t)
	var left []*Slot
	for i := range 50 {
		s, err := d.NewSlot()
		check(t, err)
		for _, p := range []string{s.Profile, s.Downloads, s.Uploads} {
			info, err := os.Lstat(p)
			if err != nil || info.Mode() != os.ModeDir|0o700 || !inside(p, d.Profiles().Name()) || !filepath.IsAbs(p) {
				t.Fatalf("%s: %v, %v", p, info, err)
			}
			check(t, os.WriteFile(filepath.Join(p, "x"), make([]byte, 10000), 0o600))
		}
		if s.DownloadsFolder().Name() != s.Downloads || s.UploadsFolder().Name() != s.Uploads {
			t.Fatal("held folders are others")
		}
		if i%5 == 0 {
			left = append(left, s)
			continue
		}
		check(t, s.Remove(t.Context()), s.Remove(t.Context()))
	}
	if got := entries(t, d.Profiles().Name()); len(got) != len(left) {
		t.Errorf("%d slots on disk, %d are used", len(got), len(left))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, left[0].Remove(ended), reins.CodeCancelled)
	check(t, left[0].Remove(t.Context()))
	profiles := d.Profiles().Name()
	mustClose(t, d)
	for _, s := range left {
		check(t, s.Remove(t.Context()))
	}
	if exists(profiles) || len(entries(t, filepath.Join(path, generationsName))) != 0 {
		t.Error("profiles are left")
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors while open, %d after", before, after)
	}
}

// A slot may be removed while the directory closes.
func TestSlotsAndCloseTogether_LIFE1(t *testing.T) {
	for range 10 {
		d := mustOpen(t, newPath(t), realMachine())
		var slots []*Slot
		for range 8 {
			s, err := d.NewSlot()
			check(t, err)
			slots = append(slots, s)
		}
		var wg sync.WaitGroup
		errs := make([]error, len(slots)+1)
		for i, s := range slots {
			wg.Go(func() { errs[i] = s.Remove(context.Background()) })
		}
		wg.Go(func() { errs[len(slots)] = d.Close(context.Background()) })
		wg.Wait()
		if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			t.Fatal(errors.Join(errs...))
		}
	}
}
