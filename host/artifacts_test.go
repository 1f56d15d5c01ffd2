package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// TestArtifactsOfLeases is LSE-8: an agent sees what was made under its exact
// lease or marked for it, a person all of the resource.
func TestArtifactsOfLeases(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		one, two, person := w.lease(t, agentOf(key1, 1)), w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		put := func(lease string) string {
			a, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", MediaType: "text/plain", Name: "n.txt", LeaseID: lease}, strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			return a.ID
		}
		mine, nobodys := put(one.id), put("")
		list := func(l *lease) (out []string) {
			res, err := l.Do(ctx0, reins.Call{Action: reins.ListArtifacts{}})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range res.Artifacts {
				out = append(out, a.ID)
			}
			return out
		}
		if got := list(one); !slices.Equal(got, []string{mine}) {
			t.Errorf("the first agent sees %v", got)
		}
		if got := list(two); len(got) != 0 {
			t.Errorf("the second agent sees %v", got)
		}
		if got := list(person); len(got) != 2 {
			t.Errorf("the person sees %v", got)
		}
		res, err := one.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: mine, Offset: 1, Length: 3}})
		if err != nil || string(res.Data) != "ell" || res.Meta.LeaseID != one.id {
			t.Errorf("read %+v, %v", res, err)
		}
		for _, id := range []string{nobodys, "art_none"} {
			_, err = one.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: id}})
			code(t, err, reins.CodeNotFound)
			_, err = one.Do(ctx0, reins.Call{Action: reins.DeleteArtifact{Artifact: id}})
			code(t, err, reins.CodeNotFound)
		}
		if _, err := one.Do(ctx0, reins.Call{Action: reins.DeleteArtifact{Artifact: mine}}); err != nil {
			t.Error(err)
		}
		if len(w.cells) != 0 {
			t.Error("reading stored bytes started a browser")
		}
	})
}

// TestUploadsStayInside is ACT-3: a file is put where the browser reads it,
// under a name that is no path, whole or not at all.
func TestUploadsStayInside(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"plain.txt", "safe name.txt"} {
		if err := copyUpload(filepath.Join(dir, fmt.Sprint(i)), name, strings.NewReader("body")); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyUpload(filepath.Join(dir, "torn"), "x", &torn{}); err == nil {
		t.Error("a torn copy was not told")
	}
	var files []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if want := []string{"/0/plain.txt", "/1/safe name.txt"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v (%v)", files, err)
	}
}

type torn struct{ n int }

func (r *torn) Read(p []byte) (int, error) {
	if r.n++; r.n > 1 {
		return 0, errors.New("torn")
	}
	return len(p), nil
}
