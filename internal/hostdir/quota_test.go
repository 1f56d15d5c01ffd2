package hostdir

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// WSP-2: a workspace above its bound is refused before a browser starts on it, and
// nothing is lost of it but what browsers make anew; it is free afterwards, and can
// be used again with a higher bound, or removed.
func TestAFullWorkspace_WSP2(t *testing.T) {
	path := newPath(t)
	with := func(bound int64) *Dir {
		d, err := open(t.Context(), path, Options{WorkspaceBytes: bound}, realMachine())
		check(t, err)
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		return d
	}
	fill := func(profile, name string, bytes int) {
		file := filepath.Join(profile, name)
		check(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, bytes), 0o600))
	}
	d := with(1 << 20)
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err)
	fill(w.Profile, "Default/Cookies", 100<<10)
	fill(w.Profile, "Default/Cache/Cache_Data/f_1", 1<<20)
	fill(w.Profile, "Default/Service Worker/CacheStorage/x", 100<<10)
	fill(w.Profile, "ShaderCache/x", 1<<20)
	check(t, w.Close())

	w, err = d.Workspace(t.Context(), "p", "w") // above it only with its caches
	check(t, err)
	for name, want := range map[string]bool{"Default/Cookies": true, "Default/Service Worker/CacheStorage/x": true, "Default/Cache": false, "ShaderCache": false} {
		if exists(filepath.Join(w.Profile, name)) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	if len(w.Notes) != 1 {
		t.Errorf("notes %v", w.Notes)
	}
	fill(w.Profile, "Default/IndexedDB/x", 1<<20)
	check(t, w.Close())

	for range 2 { // refused is not held
		_, err = d.Workspace(t.Context(), "p", "w")
		wantCode(t, err, reins.CodeQuotaExceeded)
		if !strings.Contains(err.Error(), "workspace_bytes") || !strings.Contains(err.Error(), "1048576") {
			t.Error(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Workspace(ended, "p", "w")
	wantCode(t, err, reins.CodeCancelled)
	mustClose(t, d)

	d = with(2 << 20)
	w, err = d.Workspace(t.Context(), "p", "w")
	check(t, err)
	if !exists(filepath.Join(w.Profile, "Default/IndexedDB/x")) {
		t.Error("what was kept is gone")
	}
	check(t, w.Close())
	mustClose(t, d)
	d = with(4096)
	check(t, d.RemoveWorkspace(t.Context(), "p", "w"))
	w, err = d.Workspace(t.Context(), "p", "w")
	check(t, err, w.Close())
}

// WSP-2, DIR-1: what a hostile page's browser made of its profile leads nowhere when
// caches are removed.
func TestCachesLeadNowhere_WSP2(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	check(t, os.MkdirAll(filepath.Join(outside, "Cache", "kept"), 0o700))
	d, err := open(t.Context(), newPath(t), Options{WorkspaceBytes: 64 << 10}, realMachine())
	check(t, err)
	defer func() { _ = d.Close(context.Background()) }()
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.Symlink(outside, filepath.Join(w.Profile, "Default")), os.Symlink(outside, filepath.Join(w.Profile, "ShaderCache")),
		os.WriteFile(filepath.Join(w.Profile, "x"), make([]byte, 128<<10), 0o600), w.Close())
	_, err = d.Workspace(t.Context(), "p", "w")
	wantCode(t, err, reins.CodeQuotaExceeded)
	if !exists(filepath.Join(outside, "Cache", "kept")) {
		t.Error("a link was followed")
	}
}
