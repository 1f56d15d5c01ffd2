package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

// Check implements [cell.Backend] (CELL-10). It reads the host, asks the
// browsers for their versions, and seals one cell without a browser as proof:
// these run programs, at the same time, since a host's start waits for them.
func (b *Backend) Check(ctx context.Context) []cell.Finding {
	engines := []reins.Engine{reins.EngineFull, reins.EngineShell}
	if b.options.Engine != "" {
		engines = []reins.Engine{b.options.Engine}
	}
	browsers := make([]cell.Finding, len(engines))
	var programs sync.WaitGroup
	for i, e := range engines {
		programs.Go(func() { browsers[i] = b.checkBrowser(ctx, e) })
	}
	seal := b.checkSeal(ctx)
	programs.Wait()
	findings := []cell.Finding{checkUser(), checkBounds(readBound)}
	findings = append(findings, checkNamespaces()...)
	findings = append(findings, seal...)
	findings = append(findings, browsers...)
	return append(findings,
		checkFonts("/usr/share/fonts"),
		checkFontCache("/var/cache/fontconfig"),
		checkFileSystem(b.options.directory()),
		checkGroup(),
		b.checkClock(time.Now()),
	)
}

func (o Options) directory() string {
	if o.Directory != "" {
		return o.Directory
	}
	return os.TempDir()
}

func checkUser() cell.Finding {
	f := cell.Finding{Name: "user", OK: true, Detail: fmt.Sprintf("runs as user %d", os.Getuid())}
	if notRoot() != nil {
		f.OK, f.Detail, f.Remedy = false, "runs as root", "run as an ordinary user: sudo -u USER …, or su USER -s /bin/sh -c '…'"
	}
	return f
}

// bounds are those of a process that keep a browser from working when they are
// lower, as whatever started this program may have set them.
var bounds = []struct {
	name     string
	resource int
	least    uint64
	flag     string // of ulimit
}{
	{"open files", unix.RLIMIT_NOFILE, 256, "-n 4096"},
	{"processes and threads", unix.RLIMIT_NPROC, 256, "-u 4096"},
	{"address space", unix.RLIMIT_AS, 1 << 40, "-v unlimited"}, // reserved, not used
	{"data", unix.RLIMIT_DATA, 1 << 30, "-d unlimited"},
	{"stack", unix.RLIMIT_STACK, 1 << 20, "-s 8192"},
	{"size of a file", unix.RLIMIT_FSIZE, 64 << 20, "-f unlimited"},
}

// readBound is how high a bound of this process can go.
func readBound(resource int) (uint64, error) {
	var r unix.Rlimit
	err := unix.Getrlimit(resource, &r)
	if resource == unix.RLIMIT_NOFILE {
		return r.Max, err // the runtime raises it
	}
	return r.Cur, err
}

func checkBounds(read func(resource int) (uint64, error)) cell.Finding {
	f := cell.Finding{Name: "bounds", OK: true, Detail: "files, processes and memory of a process are not bounded too low"}
	for _, b := range bounds {
		if got, err := read(b.resource); err == nil && got < b.least {
			f.OK, f.Detail = false, fmt.Sprintf("the bound on %s of a process is %d, and a browser needs %d", b.name, got, b.least)
			f.Remedy = "start this program with a higher bound: ulimit " + b.flag
			break
		}
	}
	return f
}

// namespaceSettings are the known ways in which hosts forbid what a cell needs.
var namespaceSettings = []struct {
	file, forbids, remedy string
}{
	{"/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "install an AppArmor profile for this program with \"userns,\" (see aa-status), or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
}

// checkNamespaces reports the settings in the way. The AppArmor one may be
// answered by a profile, so by itself it is optional: the seal decides.
func checkNamespaces() []cell.Finding {
	var all []cell.Finding
	for _, s := range namespaceSettings {
		text, err := os.ReadFile(s.file)
		if err != nil {
			continue // this kernel has no such setting
		}
		value := strings.TrimSpace(string(text))
		f := cell.Finding{Name: strings.TrimPrefix(s.file, "/proc/sys/"), OK: value != s.forbids, Detail: "is " + value}
		f.Optional = strings.Contains(s.file, "apparmor")
		if !f.OK {
			f.Detail, f.Remedy = "is "+value+", which forbids namespaces to ordinary users", s.remedy
		}
		all = append(all, f)
	}
	return all
}

// checkSeal builds a cell to the point where the browser would be executed:
// clone, root, loopback, listener, dropped rights, filter.
func (b *Backend) checkSeal(ctx context.Context) []cell.Finding {
	begin := time.Now()
	online, err := probe(ctx)
	if errors.Is(err, errKilled) {
		online, err = probe(ctx) // that says nothing of the host
	}
	seal := cell.Finding{Name: "seal", OK: err == nil, Detail: fmt.Sprintf("a cell was sealed in %s", time.Since(begin).Round(100*time.Microsecond))}
	if err != nil {
		seal.Detail = err.Error()
		seal.Remedy = "see what else is found here, and try again"
		if reins.CodeOf(err) != reins.CodeStartupFailed {
			seal.Remedy = "allow unprivileged user namespaces to this program; inside a container, run it with seccomp and AppArmor profiles that permit clone, unshare, mount and pivot_root and with an unmasked /proc, or use the docker backend"
		}
		return []cell.Finding{seal}
	}
	link := cell.Finding{Name: "stub link", OK: online, Optional: true, Detail: "pages see navigator.onLine true"}
	if !online {
		link.Detail, link.Remedy = "pages see navigator.onLine false: no veth in this kernel", "modprobe veth"
	}
	return []cell.Finding{seal, link}
}

var errKilled = errors.New("somebody killed the probe")

// probe seals a cell and reports whether it has the stub link.
func probe(ctx context.Context) (online bool, err error) {
	if err := notRoot(); err != nil {
		return false, err
	}
	control, theirs, err := controlPair()
	if err != nil {
		return false, err
	}
	defer control.Close()
	defer theirs.Close()
	limits, err := reins.Limits{}.WithDefaults()
	if err != nil {
		return false, err
	}
	message, err := json.Marshal(plan{Probe: true, TimeZone: "UTC", Tasks: limits.CellTasks, SharedMemory: limits.SharedMemory, TempSpace: limits.TempSpace})
	if err != nil {
		return false, err
	}
	p, err := child.Start(ctx, initSpec(message, map[string]*os.File{fileControl: theirs, fileIn: theirs, fileOut: theirs}))
	if err != nil {
		return false, err
	}
	defer p.Stop(ctx, time.Second)
	theirs.Close()
	stop := context.AfterFunc(ctx, func() { control.SetReadDeadline(aLongTimeAgo) })
	defer stop()
	for {
		r, fds, err := receive(control)
		closeAll(fds)
		switch {
		case err != nil:
			if p.Stop(ctx, time.Second); p.Exit().Signal == unix.SIGKILL && ctx.Err() == nil {
				return false, errKilled
			}
			return false, fmt.Errorf("the probe ended (%s): %q", p.Exit(), lastLines(p.Stderr()))
		case r.Error != "":
			return false, fmt.Errorf("%s", r.Error)
		case r.Probed:
			return online, nil
		}
		online = r.Online
	}
}

func (b *Backend) checkBrowser(ctx context.Context, e reins.Engine) cell.Finding {
	f := cell.Finding{Name: "chromium", Optional: e == reins.EngineShell && b.options.Engine == ""}
	if e == reins.EngineShell {
		f.Name = "chromium-headless-shell"
	}
	p, err := b.options.find(e)
	var v version
	if err == nil {
		v, err = b.version(ctx, p)
	}
	if err != nil {
		f.Detail, f.Remedy = err.Message, "install Chromium "+fmt.Sprint(minVersion)+" or newer: apt install "+f.Name
		return f
	}
	f.OK, f.Detail = true, fmt.Sprintf("%s, version %s", p.path, v.text)
	return f
}

// checkFonts looks for one font file: without any, pages have no text at all.
func checkFonts(dir string) cell.Finding {
	f := cell.Finding{Name: "fonts", Detail: "no font below " + dir + ": pages would be blank", Remedy: "apt install fonts-liberation fonts-noto-color-emoji"}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{".ttf", ".otf", ".ttc", ".pfb"}, strings.ToLower(filepath.Ext(path))) {
			f.OK, f.Detail, f.Remedy = true, "found below "+dir, ""
			return fs.SkipAll
		}
		return nil
	})
	return f
}

// checkFontCache is optional: without the cache each start scans the fonts.
func checkFontCache(dir string) cell.Finding {
	f := cell.Finding{Name: "font cache", Optional: true, Remedy: "fc-cache --system-only as root, and chmod -R a+rX " + dir}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if file, openErr := os.Open(filepath.Join(dir, e.Name())); openErr == nil {
			file.Close()
			f.OK = f.OK || strings.Contains(e.Name(), ".cache-")
		} else {
			err = openErr
		}
	}
	switch {
	case err != nil:
		f.OK, f.Detail = false, fmt.Sprintf("cannot be read: %v; each start takes about 0.2 s longer", err)
	case !f.OK:
		f.Detail = "is empty; each start takes about 0.2 s longer"
	default:
		f.Detail, f.Remedy = dir+" is readable", ""
	}
	return f
}

// remoteFileSystems do not keep the promises that profiles need: locks, shared
// mappings, visible to this user in another namespace.
var remoteFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", unix.FUSE_SUPER_MAGIC: "FUSE",
	unix.V9FS_MAGIC: "9p", unix.MSDOS_SUPER_MAGIC: "FAT", 0x2011bab0: "exFAT", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS",
}

// checkFileSystem looks at dir, or where it would be made: the nearest folder
// above it that there is.
func checkFileSystem(dir string) cell.Finding {
	name := fmt.Sprintf("%.200q", dir)
	f := cell.Finding{Name: "file system", Detail: name + " is on a local file system"}
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for up := dir; errors.Is(err, unix.ENOENT) && filepath.Dir(up) != up; err = unix.Statfs(up, &st) {
		up = filepath.Dir(up)
	}
	kind, remote := remoteFileSystems[int64(uint32(st.Type))]
	switch {
	case err != nil:
		f.Detail, f.Remedy = fmt.Sprintf("%s cannot be looked at: %v", name, err), "name a directory that this user can enter and write to"
	case remote:
		f.Detail, f.Remedy = name+" is on "+kind, "put the runtime directory on a local file system such as ext4, xfs or btrfs"
	case st.Flags&unix.ST_RDONLY != 0:
		f.Detail, f.Remedy = name+" is read-only", "put the runtime directory where this user can write"
	default:
		f.OK = true
	}
	return f
}

func checkGroup() cell.Finding {
	f := cell.Finding{Name: "cgroup", Optional: true, OK: true, Detail: "memory and tasks of a cell are bounded by the kernel"}
	if _, err := delegated("/proc/self/cgroup", "/proc/self/mountinfo"); err != nil {
		f.OK, f.Detail = false, fmt.Sprintf("not delegated (%v); a watcher bounds a cell's memory", err)
		f.Remedy = "start under systemd with Delegate=yes and DelegateSubgroup=reins"
	}
	return f
}

// checkClock compares with something that cannot be from the future: the
// installed browser. With a wrong clock no certificate is valid.
func (b *Backend) checkClock(now time.Time) cell.Finding {
	f := cell.Finding{Name: "clock", OK: true, Detail: "is " + now.UTC().Format(time.RFC3339)}
	p, err := b.options.find(reins.EngineFull)
	if err != nil {
		return f
	}
	if info, statErr := os.Stat(p.path); statErr == nil && now.Add(24*time.Hour).Before(info.ModTime()) {
		f.OK, f.Detail = false, fmt.Sprintf("is %s, before the browser was installed", now.UTC().Format(time.RFC3339))
		f.Remedy = "set the clock: timedatectl set-ntp true"
	}
	return f
}
