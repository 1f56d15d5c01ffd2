package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

func TestCheck_CELL10(t *testing.T) {
	findings := New(Options{}).Check(t.Context())
	for _, f := range findings {
		t.Logf("%+v", f)
		if !f.OK && (!f.Optional || f.Remedy == "") {
			t.Errorf("%+v", f)
		}
		if f.OK && f.Remedy != "" || f.Detail == "" {
			t.Errorf("%+v", f)
		}
	}
	if len(findings) < 10 {
		t.Errorf("%d findings", len(findings))
	}
}

// CELL-10: who uses one engine only is not kept from it by what the other lacks,
// and not spared what its own lacks.
func TestCheckOfOneEngine(t *testing.T) {
	for _, c := range []struct {
		options Options
		name    string
		ok      bool
	}{
		{Options{Engine: reins.EngineShell, Chromium: "/does/not/exist"}, "chromium-headless-shell", true},
		{Options{Engine: reins.EngineShell, Shell: "/does/not/exist"}, "chromium-headless-shell", false},
		{Options{Engine: reins.EngineFull, Shell: "/does/not/exist"}, "chromium", true},
	} {
		var browsers []cell.Finding
		for _, f := range New(c.options).Check(t.Context()) {
			if strings.HasPrefix(f.Name, "chromium") {
				browsers = append(browsers, f)
			}
		}
		if len(browsers) != 1 || browsers[0].Name != c.name || browsers[0].OK != c.ok || browsers[0].Optional {
			t.Errorf("%+v: %+v", c.options, browsers)
		}
	}
}

func TestCheckSaysWhatIsMissing_CELL10(t *testing.T) {
	empty := t.TempDir()
	unreadable := t.TempDir()
	if err := os.WriteFile(filepath.Join(unreadable, "x.cache-9"), nil, 0); err != nil {
		t.Fatal(err)
	}
	b := New(Options{Chromium: "/usr/bin/chromium-that-is-not-there"})
	for name, f := range map[string]cell.Finding{
		"no browser":       b.checkBrowser(t.Context(), reins.EngineFull),
		"no fonts":         checkFonts(empty),
		"no font cache":    checkFontCache(empty),
		"missing cache":    checkFontCache(empty + "/missing"),
		"unreadable cache": checkFontCache(unreadable),
		"below a file":     checkFileSystem("/etc/hostname/below"),
		"clock":            New(Options{}).checkClock(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)),
	} {
		if f.OK || f.Detail == "" || f.Remedy == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f := b.checkSeal(ended); len(f) != 1 || f[0].OK {
		t.Errorf("a cancelled probe: %+v", f)
	}
}

func TestInspect_CELL10(t *testing.T) {
	dir := t.TempDir()
	script, snap, private := filepath.Join(dir, "script"), filepath.Join(dir, "snap"), filepath.Join(dir, "private")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec chromium\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(private, []byte("\x7fELF"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/snap/bin/chromium", snap); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		script: "launcher script", dir + "/missing": "does not exist", private: "cannot be read", snap: "does not exist", dir: "is not a file",
		"host_test.go": "absolute path", // relative, and there
	} {
		if _, err := inspect(path); err == nil || err.Recovery != reins.RecoverFixHost {
			t.Errorf("%s: %v", path, err)
		} else if !strings.Contains(err.Message, want) || strings.Contains(err.Message, "%!") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, refused := inspect(exe)
	if refused != nil || p.dir != filepath.Dir(p.path) || p.inside != binPath+"/"+filepath.Base(exe) {
		t.Errorf("%+v, %v", p, refused)
	}
}

func TestOldBrowserIsRefused_CELL10(t *testing.T) {
	for name, says := range map[string]string{"old": "Chromium 100.0.1.2", "mute": "hello"} {
		path := filepath.Join(t.TempDir(), "browser")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+says+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{}).version(t.Context(), program{path: path}); err == nil || err.Code != reins.CodeStartupFailed || strings.Contains(err.Message, "%!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAdmit_CELL12(t *testing.T) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // init's listener is plain TCP
	tcp, err := plain.Listen(t.Context(), "tcp4", door.String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	other, err := plain.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer six.Close()
	path, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer path.Close()
	for name, c := range map[string]struct {
		l    net.Listener
		want string
	}{
		"host's network": {tcp, "network"}, "another address": {other, "not at"}, "IPv6": {six, "family"}, "unix": {path, "family"},
	} {
		f, err := c.l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		refused(t, name, f, c.want)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "not listening", os.NewFile(uintptr(fd), ""), "listening")
	f, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "a file", f, "family")
}

func refused(t *testing.T, name string, f *os.File, want string) {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	l, err := admit(fd)
	if l != nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
	if err := unix.Close(fd); err == nil {
		t.Errorf("%s: the descriptor was left open", name)
	}
}

func TestReceive_CELL12(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	n := int(null.Fd())
	for name, c := range map[string]struct {
		data string
		fds  []int
		ok   bool
	}{
		"one descriptor": {`{"listening":true}`, []int{n}, true},
		"none":           {`{"browser":7}`, nil, true},
		"two":            {`{"listening":true}`, []int{n, n}, false},
		"too many":       {`{"listening":true}`, []int{n, n, n, n, n, n, n, n, n, n}, false},
		"not JSON":       {`listening`, []int{n}, false},
		"too long":       {`{"error":"` + strings.Repeat("x", controlMax) + `"}`, []int{n}, false},
	} {
		ours, theirs, err := controlPair()
		if err != nil {
			t.Fatal(err)
		}
		var rights []byte
		if c.fds != nil {
			rights = unix.UnixRights(c.fds...)
		}
		if err := unix.Sendmsg(int(theirs.Fd()), []byte(c.data), rights, nil, 0); err != nil {
			t.Fatal(err)
		}
		before := descriptorCount(t)
		_, fds, err := receive(ours)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		closeAll(fds)
		if after := descriptorCount(t); after != before {
			t.Errorf("%s: %d descriptors before, %d after", name, before, after)
		}
		ours.Close()
		theirs.Close()
	}
}

func descriptorCount(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A start that fails at any step leaves neither process nor descriptor.
func TestFailedStartLeavesNothing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*plan){
		"no such browser": func(p *plan) { p.Browser = "/usr/bin/not-there" },
		"bad bind":        func(p *plan) { p.Profile = "/not/there" },
		"bad tmpfs":       func(p *plan) { p.SharedMemory = -1 },
	} {
		before := descriptorCount(t)
		s, refused := prepared(probeSpec(t))
		if refused != nil {
			t.Fatal(refused)
		}
		p, refused := inspect(exe)
		if refused != nil {
			t.Fatal(refused)
		}
		pl, refused := planFor(s, p, version{major: 156})
		if refused != nil {
			t.Fatal(refused)
		}
		breakIt(&pl)
		c := newBox(s, version{})
		err := c.launch(t.Context(), pl)
		c.abort()
		if code := reins.CodeOf(err); code != reins.CodeStartupFailed && code != reins.CodeUnsafeHost {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
		select {
		case <-c.init.Done():
		default:
			t.Errorf("%s: init was not reaped", name)
		}
		if after := descriptorCount(t); after > before {
			t.Errorf("%s: %d descriptors before, %d after", name, before, after)
		}
	}
}

// A parent that dies between the fork and the parent-death signal leaves an
// init that only its lifeline can tell; here it is closed with the parent alive.
func TestLifelineEndsTheCell_CELL5(t *testing.T) {
	spec := probeSpec(t)
	writeTargets(t, spec.Uploads)
	c := startProbe(t, spec)
	readReply(t, c)
	c.init.Ask()
	select {
	case <-c.Done():
	case <-time.After(time.Second):
		t.Fatal("the cell lives on")
	}
}

func TestGroup_CELL7(t *testing.T) {
	mount := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(mount, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mounts := write("mountinfo", "20 1 0:20 / /proc rw - proc proc rw\n36 25 0:31 / "+mount+" rw,nosuid shared:9 - cgroup2 cgroup2 rw\n")
	own := write("own", "4:memory:/legacy\n0::/user/reins.service/main\n")
	const group = "user/reins.service/"
	if _, err := delegated(own, mounts); err == nil {
		t.Error("delegated without controllers")
	}
	control := write(group+subtreeControl, "")
	write(group+"cgroup.controllers", "cpu memory\n")
	if _, err := delegated(own, mounts); err == nil {
		t.Error("delegated without the pids controller")
	}
	write(group+"cgroup.controllers", "cpu memory pids\n")
	if err := os.Chmod(control, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := delegated(own, mounts); err == nil {
		t.Error("delegated to another user")
	}
	if err := os.Chmod(control, 0o644); err != nil {
		t.Fatal(err)
	}
	parent, err := delegated(own, mounts)
	if err != nil || parent != mount+"/user/reins.service" {
		t.Errorf("%q, %v", parent, err)
	}
	if _, err := delegated(write("root", "0::/\n"), mounts); err == nil {
		t.Error("delegated in the root group")
	}
	if _, err := delegated(write("none", "1:cpu:/x\n"), mounts); err == nil {
		t.Error("delegated without cgroup v2")
	}
	if err := enable(parent); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(control); err != nil || string(got) != "+memory +pids" {
		t.Errorf("enabled %q (%v)", got, err)
	}
	g := makeGroup(parent, reins.Limits{CellMemory: 123, CellTasks: 45})
	if g == nil {
		t.Fatal("no group")
	}
	for file, want := range map[string]string{"memory.max": "123", "pids.max": "45", "memory.swap.max": "0"} {
		if got, err := os.ReadFile(filepath.Join(g.path, file)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v)", file, got, err)
		}
	}
	// Groups of parents that are gone go; this process's stay.
	gone := filepath.Join(parent, groupPrefix+"2147483646-1")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("the group of a dead parent is there: %v", err)
	}
	if _, err := os.Stat(g.path); err != nil {
		t.Error(err)
	}
	var spec child.Spec
	if g.admit(&spec); !spec.Attr.UseCgroupFD {
		t.Error("not admitted")
	}
	for _, file := range []string{"memory.max", "pids.max", "memory.swap.max"} { // in a real group these are no files to remove
		_ = os.Remove(filepath.Join(g.path, file))
	}
	g.remove()
	if _, err := os.Stat(g.path); !os.IsNotExist(err) {
		t.Errorf("the group is there: %v", err)
	}
}

func TestVictim_CELL7(t *testing.T) {
	browser := task{pid: 2, memory: 500}
	for name, c := range map[string]struct {
		tasks []task
		want  int // process, 0 for none
	}{
		"largest renderer":      {[]task{browser, {pid: 3, kind: "renderer", memory: 200}, {pid: 4, kind: "renderer", memory: 300}}, 4},
		"gpu, not a tiny page":  {[]task{browser, {pid: 3, kind: "renderer", memory: 10}, {pid: 4, kind: "gpu-process", memory: 900}}, 4},
		"renderer before gpu":   {[]task{browser, {pid: 3, kind: "renderer", memory: 200}, {pid: 4, kind: "gpu-process", memory: 900}}, 3},
		"the browser itself":    {[]task{{pid: 2, memory: 5000}, {pid: 3, kind: "renderer", memory: 10}}, 0},
		"never a zygote":        {[]task{browser, {pid: 3, kind: "zygote", memory: 900}}, 0},
		"files in memory alone": {nil, 0},
	} {
		total := int64(1)
		for _, p := range c.tasks {
			total += p.memory
		}
		got, ok := victim(c.tasks, total)
		if got.pid != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

func TestConfined_CELL4(t *testing.T) {
	good := task{pid: 9, kind: "renderer", seccomp: 2, filters: 2, depth: 3, noNewPrivs: true}
	if err := good.confined(reins.EngineFull, false); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*task){
		"no filter":        func(p *task) { p.seccomp = 0 },
		"only the cell's":  func(p *task) { p.filters = 1 },
		"own PID space":    func(p *task) { p.depth = 1 },
		"capability":       func(p *task) { p.caps = 1 << unix.CAP_SYS_ADMIN },
		"privileges":       func(p *task) { p.noNewPrivs = false },
		"network service":  func(p *task) { p.kind, p.service, p.filters = "utility", "network.mojom.NetworkService", 1 },
		"gpu process":      func(p *task) { p.kind, p.filters = "gpu-process", 1 },
		"unreadable":       func(p *task) { *p = parseStatus(nil) },
		"browser with cap": func(p *task) { p.kind, p.caps = "", 1 },
	} {
		p := good
		change(&p)
		if err := p.confined(reins.EngineFull, false); err == nil {
			t.Errorf("%s: confined", name)
		}
	}
	gpu := task{kind: "gpu-process", seccomp: 2, filters: 1, depth: 1, noNewPrivs: true}
	if err := gpu.confined(reins.EngineFull, true); err != nil {
		t.Errorf("with WebGL: %v", err)
	}
}

func FuzzParseStatus(f *testing.F) {
	real, err := os.ReadFile("/proc/self/status")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	f.Add([]byte("CapEff:\t0\nCapEff:\tzz\nNSpid:\t1 2 3\nSeccomp:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := parseStatus(b)
		if p.caps == 0 && !strings.Contains(string(b), "CapEff:") {
			t.Errorf("no capabilities out of %q", b)
		}
		_, _ = parseCommand(b)
	})
}

func TestParseCommand(t *testing.T) {
	for line, want := range map[string][2]string{
		"/usr/lib/chromium/chromium\x00--headless=new\x00":                            {"", ""},
		"/x --type=utility --utility-sub-type=network.mojom.NetworkService --lang=en": {"utility", "network.mojom.NetworkService"},
		"/x\x00--type=renderer\x00--user-agent=a --type=zygote\x00":                   {"renderer", ""},
	} {
		if kind, service := parseCommand([]byte(line)); kind != want[0] || service != want[1] {
			t.Errorf("%q: %q, %q", line, kind, service)
		}
	}
}

func TestPlanSurvivesItsForm(t *testing.T) {
	s, refused := prepared(probeSpec(t))
	if refused != nil {
		t.Fatal(refused)
	}
	want, refused := planFor(s, program{inside: "/usr/x"}, version{major: 156})
	if refused != nil {
		t.Fatal(refused)
	}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got plan
	if err := json.Unmarshal(raw, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
}
