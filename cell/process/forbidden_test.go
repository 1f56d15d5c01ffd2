package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

// asRoot runs where this user is mapped to root, which looks the same to a
// program as being root.
func asRoot(ctx context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	_, err = New(Options{}).Start(ctx, cell.Spec{Profile: "/", Downloads: "/"})
	_, err = fmt.Fprint(out, reins.CodeOf(err), " ", New(Options{}).Check(ctx)[0].OK)
	return err
}

func TestRootIsRefused_OVW2(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spec := child.Spec{Role: "root", Files: map[string]*os.File{"out": w}}
	spec.Isolate()
	spec.Attr.UidMappings[0].ContainerID, spec.Attr.GidMappings[0].ContainerID = 0, 0
	p, err := child.Start(t.Context(), spec)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	said := make([]byte, 100)
	n, _ := r.Read(said)
	if got := string(said[:n]); got != "unsafe_host false" {
		t.Errorf("said %q; %s", got, p.Stderr())
	}
}

// withoutNamespaces runs where this user may make no namespace, as on a host
// whose setting or security module forbids it.
func withoutNamespaces(ctx context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	// A child is not dumpable, which would forbid namespaces by itself.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	b := New(Options{})
	var seals []cell.Finding
	seals = append(seals, b.checkSeal(ctx)[0])
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return err
	}
	seals = append(seals, b.checkSeal(ctx)[0])
	_, err = b.Start(ctx, cell.Spec{Profile: "/tmp", Downloads: "/tmp"})
	return json.NewEncoder(out).Encode(struct {
		Seals []cell.Finding
		Start string
	}{seals, fmt.Sprint(err)})
}

// CELL-10: a host that forbids namespaces is told so by the check and by a start,
// each with the way out; nothing is started without them.
func TestForbiddenNamespaces_CELL10(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spec := child.Spec{Role: "bare", Files: map[string]*os.File{"out": w}}
	spec.Isolate()
	spec.Attr.Cloneflags = unix.CLONE_NEWUSER // it sees its own /proc, and no other user's bound changes
	spec.Attr.AmbientCaps = []uintptr{unix.CAP_SYS_RESOURCE}
	p, err := child.Start(t.Context(), spec)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Seals []cell.Finding
		Start string
	}
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		<-p.Done()
		t.Fatalf("%v; %s", err, p.Stderr())
	}
	<-p.Done()
	if len(said.Seals) != 2 || !said.Seals[0].OK {
		t.Fatalf("with namespaces: %+v", said.Seals)
	}
	if f := said.Seals[1]; f.OK || f.Remedy == "" || !strings.Contains(f.Detail, "namespaces") {
		t.Errorf("without: %+v", f)
	}
	if !strings.HasPrefix(said.Start, string(reins.CodeUnsafeHost)) || !strings.Contains(said.Start, "reins doctor") {
		t.Errorf("a start says %s", said.Start)
	}
}
