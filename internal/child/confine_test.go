package child_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins/internal/child"
)

// confined takes the filter in its message and tries what filters forbid. The
// attempts run on fresh threads too, since a filter must reach all of them.
func confined(_ context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	var f child.Filter
	if err := json.Unmarshal(self.Message, &f); err != nil {
		return err
	}
	parked := make(chan func())
	go func() { // a thread that exists before the filter
		runtime.LockOSThread()
		for job := range parked {
			job()
		}
	}()
	if err := child.Confine(child.Confinement{Files: 64, Memory: 1 << 30, Filter: &f}); err != nil {
		return err
	}
	got := map[string]string{}
	done := make(chan struct{})
	parked <- func() { attempts(got); close(done) }
	<-done
	return json.NewEncoder(out).Encode(got)
}

func attempts(got map[string]string) {
	say := func(name string, err error) {
		got[name] = "ok"
		if err != nil {
			got[name] = err.Error()
		}
	}
	errOf := func(_ int, err error) error { return err }
	raw := func(nr uintptr, a, b, c uintptr) error {
		if _, _, e := syscall.Syscall(nr, a, b, c); e != 0 {
			return e
		}
		return nil
	}
	say("open", errOf(unix.Open("/etc/hostname", unix.O_RDONLY, 0)))
	say("unix", errOf(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)))
	say("inet", errOf(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)))
	say("vsock", errOf(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)))
	say("netlink", errOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)))
	say("netfilter", errOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)))
	say("icmp", errOf(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)))
	_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	say("pair", err)
	say("io_uring", raw(unix.SYS_IO_URING_SETUP, 1, 0, 0))
	say("mount", unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	say("ptrace", raw(unix.SYS_PTRACE, 0, 0, 0))
	say("kill", unix.Kill(os.Getppid(), 0))
	say("tgkill self", unix.Tgkill(os.Getpid(), os.Getpid(), 0))
	say("tgkill", unix.Tgkill(os.Getppid(), os.Getppid(), 0))
	say("unshare", unix.Unshare(unix.CLONE_NEWIPC|unix.CLONE_NEWUSER))
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	say("start", err)
	if err == nil {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
	say("setuid", errOf(0, unix.Prctl(unix.PR_SET_DUMPABLE, 2, 0, 0, 0)))
	n := make(chan int)
	go func() { runtime.LockOSThread(); n <- 1 }() // a new thread must still be possible
	say("thread", errOf(<-n, nil))
}

func TestFilter_DRV5_CELL2(t *testing.T) {
	const perm, family, nosys = "operation not permitted", "address family not supported by protocol", "function not implemented"
	always := map[string]string{
		"io_uring": nosys, "mount": perm, "ptrace": perm, "vsock": family, "thread": "ok", "tgkill self": "ok",
	}
	for _, c := range []struct {
		name   string
		filter child.Filter
		want   map[string]string
	}{
		{"strict", child.Filter{}, map[string]string{
			"open": perm, "unix": family, "inet": family, "pair": family, "kill": perm, "tgkill": perm, "unshare": perm, "start": perm}},
		{"files", child.Filter{Files: true}, map[string]string{"open": "ok", "unix": family, "start": perm}},
		{"sockets", child.Filter{Families: []uint32{unix.AF_UNIX, unix.AF_INET}}, map[string]string{
			"unix": "ok", "inet": "ok", "pair": "ok", "open": perm}},
		{"protocols", child.Filter{Families: []uint32{unix.AF_NETLINK, unix.AF_INET}}, map[string]string{
			"netlink": "ok", "netfilter": "protocol not supported", "icmp": "protocol not supported", "inet": "ok"}},
		{"starting", child.Filter{Files: true, Start: true}, map[string]string{"start": "ok", "kill": "ok", "unshare": perm}},
		{"cell", child.Filter{Families: []uint32{unix.AF_UNIX}, Files: true, Start: true, Namespaces: true}, map[string]string{
			"start": "ok", "unix": "ok", "inet": family}},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, err := json.Marshal(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			p, r := withOut(t, child.Spec{Role: "confined", Message: message})
			var got map[string]string
			if err := json.NewDecoder(r).Decode(&got); err != nil {
				<-p.Done()
				t.Fatalf("%v; %s; stderr %q", err, p.Exit(), p.Stderr())
			}
			for _, want := range []map[string]string{always, c.want} {
				for k, v := range want {
					if got[k] != v {
						t.Errorf("%s: %q, want %q", k, got[k], v)
					}
				}
			}
		})
	}
}

// greedy confines its memory and then takes more than that.
func greedy(_ context.Context, self *child.Self) error {
	if err := child.Confine(child.Confinement{Memory: 64 << 20}); err != nil {
		return err
	}
	var hold [][]byte
	for range 64 {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hold = append(hold, b)
	}
	return fmt.Errorf("took %d MiB", 16*len(hold))
}

func TestMemoryBoundEndsTheChild_DRV3(t *testing.T) {
	p := start(t, child.Spec{Role: "greedy"})
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("still running")
	}
	// The runtime says "out of memory", fails where it found out, or is the
	// race detector's; an entry that returned would have exited with 0 or 1.
	if code := p.Exit().Code; code == 0 || code == 1 || strings.Contains(p.Stderr(), "took") {
		t.Errorf("%s: %.200q", p.Exit(), p.Stderr())
	}
}

// capable has capabilities in its namespace, drops them and becomes "later".
func capable(_ context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	if err := child.Confine(child.Confinement{}); err == nil {
		return fmt.Errorf("Confine accepted a process with capabilities")
	}
	runtime.LockOSThread()
	if err := child.DropCapabilities(); err != nil {
		return err
	}
	return self.Become(child.Spec{Role: "later", Args: self.Args, Message: []byte("again"), Files: map[string]*os.File{"out": out}})
}

func TestBecomeKeepsTheDroppedRights_CELL2(t *testing.T) {
	s := child.Spec{Role: "capable", Args: []string{"--user-data-dir=/x"}}
	s.Isolate()
	s.Attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	p, r := withOut(t, s)
	got := readStatus(t, p, r)
	if got.PID != 1 || got.Message != "again" || len(got.Args) != 1 || got.Args[0] != "--user-data-dir=/x" {
		t.Errorf("became %+v", got)
	}
	if strings.Trim(got.Caps, "0") != "" || strings.Trim(got.Bounding, "0") != "" || got.NoNewPrivs != 1 || got.Dumpable != 0 {
		t.Errorf("capabilities %s, bounding %s, no new privileges %d, dumpable %d", got.Caps, got.Bounding, got.NoNewPrivs, got.Dumpable)
	}
}
