package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// targets is what the host has that a cell must not reach.
type targets struct {
	TCP      string // a listener on the host's loopback
	Abstract string // an abstract socket
	Path     string // a socket in the host's /tmp
	Secret   string // a file of this user's
}

// probed is what a program in a cell found.
type probed struct {
	Dial    map[string]string // what each attempt at the outside came to
	Sockets map[string]string
	Files   map[string]string
	Root    []string
	Devices []string
	PIDs    []string
	Env     []string
	Open    []string // descriptors
	Host    string
	Status  map[string]string
	Limits  map[string]string
	Tasks   int // processes that could be started
	Written map[string]int64
}

// beProbe is what the test binary does when it is started as a browser.
func beProbe() {
	raw, err := os.ReadFile(cell.UploadsPath + "/targets.json")
	var to targets
	if err == nil {
		err = json.Unmarshal(raw, &to)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := probed{Dial: map[string]string{}, Sockets: map[string]string{}, Files: map[string]string{}, Written: map[string]int64{}}
	p.identify()
	p.dial(to)
	p.touch(to)
	p.fill()
	p.multiply()
	data, err := json.Marshal(p)
	if err == nil {
		_, err = os.NewFile(4, "replies").Write(append(data, 0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// As a browser does, it ends at the end of the commands.
	_, _ = os.NewFile(3, "commands").Read(make([]byte, 1))
	os.Exit(0)
}

func said(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

func (p *probed) identify() {
	p.Env = os.Environ()
	p.Host, _ = os.Hostname()
	for dir, list := range map[string]*[]string{"/": &p.Root, "/dev": &p.Devices, "/proc": &p.PIDs} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if dir != "/proc" || e.Name()[0] <= '9' {
				*list = append(*list, e.Name())
			}
		}
	}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		var fd uintptr
		fmt.Sscan(filepath.Base(l), &fd)
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			target, _ := os.Readlink(l)
			kind, _, _ := strings.Cut(target, ":")
			p.Open = append(p.Open, filepath.Base(l)+" "+kind)
		}
	}
	p.Status, p.Limits = map[string]string{}, map[string]string{}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		p.Status[name] = strings.TrimSpace(value)
	}
	for name, resource := range map[string]int{"data": unix.RLIMIT_DATA, "tasks": unix.RLIMIT_NPROC, "files": unix.RLIMIT_NOFILE, "core": unix.RLIMIT_CORE} {
		var r unix.Rlimit
		_ = unix.Getrlimit(resource, &r)
		p.Limits[name] = fmt.Sprint(r.Max)
	}
}

func (p *probed) dial(to targets) {
	for name, at := range map[string][2]string{
		"host loopback": {"tcp", to.TCP},
		"host abstract": {"unix", "@" + to.Abstract},
		"host path":     {"unix", to.Path},
		"internet":      {"tcp", "8.8.8.8:53"},
		"internet udp":  {"udp", "8.8.8.8:53"},
		"private":       {"tcp", "10.0.0.1:80"},
		"link local":    {"tcp", "169.254.169.254:80"},
		"stub network":  {"tcp", "192.0.2.2:80"},
		"internet 6":    {"tcp", "[2001:4860:4860::8888]:53"},
		"own door":      {"tcp", door.String()},
		"name":          {"tcp", "example.com:80"},
	} {
		d := net.Dialer{Timeout: 2 * time.Second}
		c, err := d.Dial(at[0], at[1])
		if err == nil {
			_ = c.Close()
		}
		var dns *net.DNSError
		if errors.As(err, &dns) {
			err = errors.New("no such host")
		}
		p.Dial[name] = said(err)
	}
	for name, s := range map[string][3]int{
		"vsock":     {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"packet":    {unix.AF_PACKET, unix.SOCK_RAW, 0},
		"alg":       {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		"netfilter": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		"raw":       {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		"inet":      {unix.AF_INET, unix.SOCK_STREAM, 0},
	} {
		fd, err := unix.Socket(s[0], s[1], s[2])
		if err == nil {
			unix.Close(fd)
		}
		p.Sockets[name] = said(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	p.Sockets["io_uring"] = errno.Error()
}

func (p *probed) touch(to targets) {
	for name, path := range map[string]string{"secret": to.Secret, "shadow": "/etc/shadow", "init memory": "/proc/1/mem", "init root": "/proc/1/root/etc", "init environ": "/proc/1/environ"} {
		f, err := os.Open(path)
		if err == nil {
			f.Close()
		}
		p.Files["read "+name] = said(err)
	}
	for _, dir := range []string{"/", "/usr", "/etc", "/cell", cell.UploadsPath, cell.ProfilePath, cell.DownloadsPath, "/tmp", "/dev/shm"} {
		path := filepath.Join(dir, "made")
		err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755)
		p.Files["write "+dir] = said(err)
		if err == nil {
			_, err = os.StartProcess(path, []string{path}, &os.ProcAttr{})
			p.Files["execute in "+dir] = said(err)
			os.Remove(path)
		}
	}
	p.Files["mount"] = said(unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	p.Files["remount"] = said(unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	p.Files["kill init"] = said(unix.Kill(1, 0))
}

// fill writes until the bounded file systems are full.
func (p *probed) fill() {
	chunk := make([]byte, 1<<20)
	for _, path := range []string{"/tmp/fill", "/dev/shm/fill"} {
		f, err := os.Create(path)
		for err == nil {
			var n int
			n, err = f.Write(chunk)
			p.Written[path] += int64(n)
		}
		p.Files["fill "+path] = said(err)
		f.Close()
		os.Remove(path)
	}
}

// multiply starts processes until it may not.
func (p *probed) multiply() {
	for p.Tasks < 2000 {
		_, err := os.StartProcess("/bin/sleep", []string{"sleep", "100"}, &os.ProcAttr{})
		if err != nil {
			p.Files["multiply"] = said(err)
			return
		}
		p.Tasks++
	}
}

// look starts this test binary in place of a browser.
func look(t *testing.T, spec cell.Spec) probed {
	t.Helper()
	c := startProbe(t, spec)
	raw := readReply(t, c)
	var p probed
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("%v in %.300q", err, raw)
	}
	return p
}

func startProbe(t *testing.T, spec cell.Spec) *box {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Chromium: exe}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Kill(t.Context()) })
	return c.(*box)
}

func readReply(t *testing.T, c *box) []byte {
	t.Helper()
	from := c.Doors().FromBrowser
	_ = from.SetReadDeadline(time.Now().Add(30 * time.Second))
	var all []byte
	chunk := make([]byte, 64<<10)
	for !bytes.HasSuffix(all, []byte{0}) {
		n, err := from.Read(chunk)
		all = append(all, chunk[:n]...)
		if err != nil {
			t.Fatalf("%v after %.300q; stderr %q", err, all, c.init.Stderr())
		}
	}
	return all[:len(all)-1]
}

func probeSpec(t *testing.T) cell.Spec {
	t.Helper()
	limits, err := reins.Limits{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	limits.CellTasks, limits.TempSpace, limits.SharedMemory = 200, 16<<20, 64<<20
	limits.ProcessMemory = 4 << 30
	return cell.Spec{
		Key: reins.ResourceKey{Project: "p", ID: "r"}, Engine: reins.EngineFull, Locale: "de-DE", TimeZone: "Europe/Berlin",
		Profile: t.TempDir(), Downloads: t.TempDir(), Uploads: t.TempDir(), Limits: limits,
	}
}

func TestInside_CELL2_CELL3_CELL7_CELL9(t *testing.T) {
	spec := probeSpec(t)
	writeTargets(t, spec.Uploads)
	p := look(t, spec)
	const unreachable, refused, family, protocol = "network is unreachable", "connection refused", "address family not supported by protocol", "protocol not supported"
	const readOnly, missing, denied, perm = "read-only file system", "no such file or directory", "permission denied", "operation not permitted"
	check(t, "dial", p.Dial, map[string]string{
		"host loopback": refused, "host abstract": refused, "host path": missing,
		"internet": unreachable, "internet udp": unreachable, "private": unreachable, "link local": unreachable,
		"stub network": unreachable, "internet 6": unreachable, "own door": "ok", "name": "no such host",
	})
	check(t, "socket", p.Sockets, map[string]string{
		"vsock": family, "packet": family, "alg": family, "netfilter": protocol, "raw": protocol, "inet": "ok", "io_uring": "function not implemented",
	})
	check(t, "file", p.Files, map[string]string{
		"read secret": missing, "read shadow": missing, "read init memory": denied, "read init root": denied, "read init environ": denied,
		"write /": readOnly, "write /usr": readOnly, "write /etc": readOnly, "write /cell": readOnly, "write " + cell.UploadsPath: readOnly,
		"write " + cell.ProfilePath: "ok", "execute in " + cell.ProfilePath: denied,
		"write " + cell.DownloadsPath: "ok", "execute in " + cell.DownloadsPath: denied,
		"write /tmp": "ok", "execute in /tmp": denied, "write /dev/shm": "ok", "execute in /dev/shm": denied,
		"mount": perm, "remount": perm, "fill /tmp/fill": "no space left on device", "fill /dev/shm/fill": "no space left on device",
		"kill init": "ok", "multiply": "resource temporarily unavailable",
	})
	for _, dir := range []string{"home", "root", "srv", "mnt", "media", "run", "sys", "boot"} {
		if slices.Contains(p.Root, dir) {
			t.Errorf("/%s exists; the root has %q", dir, p.Root)
		}
	}
	if want := []string{"fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}; !slices.Equal(p.Devices, want) {
		t.Errorf("devices are %q", p.Devices)
	}
	if len(p.PIDs) != 2 {
		t.Errorf("processes are %q", p.PIDs)
	}
	if want := []string{"0 /dev/null", "1 /dev/null", "2 pipe", "3 pipe", "4 pipe"}; !slices.Equal(p.Open, want) {
		t.Errorf("descriptors are %q", p.Open)
	}
	if !slices.Equal(p.Env, environment(spec)) || p.Host != hostName {
		t.Errorf("host %q, environment %q", p.Host, p.Env)
	}
	uid := fmt.Sprint(os.Getuid())
	check(t, "status", p.Status, map[string]string{
		"CapInh": zeros, "CapPrm": zeros, "CapEff": zeros, "CapBnd": zeros, "CapAmb": zeros, "NoNewPrivs": "1", "Seccomp": "2",
		"Uid": strings.Join([]string{uid, uid, uid, uid}, "\t"),
	})
	check(t, "limit", p.Limits, map[string]string{"data": fmt.Sprint(4 << 30), "tasks": "200", "files": fmt.Sprint(openFiles), "core": "0"})
	if p.Tasks >= 200 || p.Written["/tmp/fill"] > 16<<20 || p.Written["/dev/shm/fill"] > 64<<20 {
		t.Errorf("%d tasks, %v bytes written", p.Tasks, p.Written)
	}
}

const zeros = "0000000000000000"

func check(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s %s: %q, want %q", what, name, got[name], w)
		}
	}
}

// writeTargets makes things on the host for a probe to try, and tells it.
func writeTargets(t *testing.T, dir string) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	to := targets{Abstract: "reins-test-" + t.Name(), Path: filepath.Join(t.TempDir(), "socket"), Secret: secret}
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", "@" + to.Abstract}, {"unix", to.Path}} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		if l.network == "tcp" {
			to.TCP = listener.Addr().String()
		}
	}
	raw, err := json.Marshal(to)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "targets.json"), raw, 0o600)
	}
	if err == nil {
		err = os.WriteFile(secret, []byte("secret"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A browser without a renderer under its own sandbox is not one to use.
func TestUnconfinedBrowserIsEnded_CELL4(t *testing.T) {
	spec := probeSpec(t)
	writeTargets(t, spec.Uploads)
	c := startProbe(t, spec)
	err := c.Verify(t.Context())
	if reins.CodeOf(err) != reins.CodeUnsafeHost {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); reins.CodeOf(err) != reins.CodeUnsafeHost {
		t.Errorf("the cell says %v", err)
	}
}

func TestBrowserThatFailsSaysWhy(t *testing.T) {
	spec := probeSpec(t) // without targets the probe exits with 1
	c := startProbe(t, spec)
	<-c.Done()
	err := c.Err()
	if reins.CodeOf(err) != reins.CodeBrowserEnded || !strings.Contains(err.Error(), "targets.json") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the cell says %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A browser that does not heed the end of its pipe is killed after the grace.
func TestCloseGrace_CELL6(t *testing.T) {
	spec := probeSpec(t)
	writeTargets(t, spec.Uploads)
	spec.Limits.CloseGrace = 150 * time.Millisecond
	c := startProbe(t, spec)
	readReply(t, c)
	// A copy of the pipe's end, as a driver has, keeps it open.
	held, err := unix.FcntlInt(mustFD(t, c.Doors().ToBrowser), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	begin := time.Now()
	if err := c.Close(t.Context()); err != nil || time.Since(begin) < spec.Limits.CloseGrace {
		t.Errorf("closed after %s: %v", time.Since(begin), err)
	}
	if c.init.Exit().Signal != syscall.SIGKILL || c.Err() != nil {
		t.Errorf("init ended by %s, the cell says %v", c.init.Exit(), c.Err())
	}
}

func mustFD(t *testing.T, f *os.File) uintptr {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n uintptr
	if err := raw.Control(func(fd uintptr) { n = fd }); err != nil {
		t.Fatal(err)
	}
	return n
}
