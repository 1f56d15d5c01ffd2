package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reins-browser/reins"
)

// minVersion is the oldest Chromium that what Reins promises was proven on: the
// whole suite runs on it. With 150 the ordinary browser calls out at rest (CELL-8)
// and pages are read wrongly here and there.
const minVersion = 156

// Where distributions put the program itself, not its launcher script.
var (
	fullPaths = []string{
		"/usr/lib/chromium/chromium",
		"/usr/lib64/chromium-browser/chromium-browser",
		"/usr/lib/chromium-browser/chromium-browser",
		"/opt/google/chrome/chrome",
	}
	shellPaths = []string{
		"/usr/lib/chromium/chromium-headless-shell",
		"/usr/lib/chromium/headless_shell",
		"/usr/lib64/chromium-browser/headless_shell",
		"/usr/lib/chromium-browser/headless_shell",
	}
)

// program is an installed browser.
type program struct {
	path   string // on the host, without symlinks
	inside string // in the cell
	dir    string // host directory to appear at binPath, or empty
}

// version is a browser's, such as 156.0.8078.114.
type version struct {
	text  string
	major int
}

// userAgent is what an ordinary Chromium of the version says on Linux (CELL-9).
func (v version) userAgent() string {
	return fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", v.major)
}

// find returns the program of engine: the configured one, or the first of the
// usual places.
func (o Options) find(engine reins.Engine) (program, *reins.Error) {
	configured, usual, option, pkg := o.Chromium, fullPaths, "Chromium", "chromium"
	if engine == reins.EngineShell {
		configured, usual, option, pkg = o.Shell, shellPaths, "Shell", "chromium-headless-shell"
	}
	if configured != "" {
		return inspect(configured)
	}
	for _, path := range usual {
		if _, err := os.Stat(path); err == nil {
			return inspect(path)
		}
	}
	return program{}, reins.Errorf(reins.CodeStartupFailed, "no program of engine %q is installed where distributions put it; install the package %s or set %s to its path", string(engine), pkg, option).
		Recover(reins.RecoverFixHost)
}

// inspect checks that path is a program that a cell can run.
func inspect(path string) (program, *reins.Error) {
	refuse := func(format string, args ...any) (program, *reins.Error) {
		return program{}, reins.Errorf(reins.CodeStartupFailed, "browser %s "+format, append([]any{path}, args...)...).Recover(reins.RecoverFixHost)
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("does not exist; install it or name another")
	}
	if err != nil {
		return refuse("cannot be looked up (%w); name an absolute path that this user can read", err)
	}
	if !filepath.IsAbs(real) {
		return refuse("is not an absolute path; name it from the root on")
	}
	if real == "/usr/bin/snap" || strings.HasPrefix(real, "/snap/") {
		return refuse("is a snap: snapd confines it in a way that rules out a cell; install Chromium as an ordinary package or archive")
	}
	head := make([]byte, 256)
	f, err := os.Open(real)
	if err != nil {
		return refuse("cannot be read (%w); make it readable for this user", err)
	}
	defer f.Close()
	n, err := f.Read(head)
	if info, bad := f.Stat(); bad != nil || !info.Mode().IsRegular() {
		return refuse("is not a file; name the program itself, such as %s", fullPaths[0])
	}
	if head = head[:n]; err != nil || !bytes.HasPrefix(head, []byte("\x7fELF")) {
		return refuse("is a launcher script and not the program; name the program it starts, such as %s", fullPaths[0])
	}
	if strings.HasPrefix(real, "/usr/") {
		return program{path: real, inside: real}, nil
	}
	return program{path: real, inside: filepath.Join(binPath, filepath.Base(real)), dir: filepath.Dir(real)}, nil
}

// identity tells one installed program from its successor at the same path.
type identity struct {
	path string
	size int64
	time time.Time
}

var versionPattern = regexp.MustCompile(`\b(\d{2,4})(\.\d+){3}\b`)

// versionTime bounds one --version call.
const versionTime = 10 * time.Second

// version asks p which version it is, once for each program.
func (b *Backend) version(ctx context.Context, p program) (version, *reins.Error) {
	refuse := func(format string, args ...any) (version, *reins.Error) {
		return version{}, reins.Errorf(reins.CodeStartupFailed, "browser %s "+format, append([]any{p.path}, args...)...).Recover(reins.RecoverFixHost)
	}
	info, err := os.Stat(p.path)
	if err != nil {
		return refuse("cannot be looked up: %w", err)
	}
	key := identity{p.path, info.Size(), info.ModTime()}
	b.mu.Lock()
	v, known := b.versions[key]
	b.mu.Unlock()
	if known {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	out, err := ask(ctx, p.path)
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		if ended := reins.ContextError(ctx); ended != nil {
			return version{}, ended
		}
		if err != nil {
			return refuse("did not tell its version (%w; it said %.100q); check that it runs as this user", err, out)
		}
		return refuse("is no Chromium: asked for its version it said %.100q", out)
	}
	v.text = string(match[0])
	v.major, _ = strconv.Atoi(string(match[1]))
	if v.major < minVersion {
		return refuse("is version %s; Reins needs %d or newer", v.text, minVersion)
	}
	b.mu.Lock()
	b.versions[key] = v
	b.mu.Unlock()
	return v, nil
}

// ask runs a browser for its version, once more when somebody killed it. It does not
// outlive this process (OVW-1), as which it counts for the kernel by the thread that
// started it.
func ask(ctx context.Context, path string) (out []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 2 {
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Env = []string{"HOME=/nonexistent"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if out, err = cmd.Output(); cmd.ProcessState == nil {
			break // it was never started
		}
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if ctx.Err() != nil || !status.Signaled() || status.Signal() != syscall.SIGKILL {
			break
		}
	}
	return out, err
}
