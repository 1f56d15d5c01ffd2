package hostdir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// maxCommandLine bounds what is read of one command line; the kernel's own
// bound on what can be executed is below it.
const maxCommandLine = 8 << 20

// user is one process that keeps a start from going on.
type user struct {
	pid   int
	doubt string // why it cannot be judged; empty when it uses the profiles
}

// inspect looks at every process of ours and returns nil when none has a
// --user-data-dir at or below root (OWN-3). Processes that are ending are waited
// for; what is still there then is locked, or fenced when it cannot be judged.
func (m machine) inspect(ctx context.Context, uid int, root string) error {
	end := time.Now().Add(m.wait)
	clean := 0
	for delay := 5 * time.Millisecond; ; delay = min(2*delay, 200*time.Millisecond) {
		u, err := m.findUser(uid, root)
		if err != nil {
			return err
		}
		if u == nil {
			// Twice, since the list of processes is not read at one instant: a
			// child may get a number that was passed already.
			if clean++; clean == 2 {
				return nil
			}
			continue
		}
		clean = 0
		if left := time.Until(end); left <= 0 {
			return u.refuse(root)
		} else if err := pause(ctx, min(delay, left)); err != nil {
			return reins.AsError(err)
		}
	}
}

func (u *user) refuse(root string) error {
	if u.doubt != "" {
		return fenced("process %d %s, so that it cannot be told whether it uses %q; end it or look at it as its owner", u.pid, u.doubt, root).With("pid", u.pid)
	}
	return reins.Errorf(reins.CodeLocked, "process %d still uses a browser profile in %q; end it or wait for it", u.pid, root).With("pid", u.pid)
}

// findUser returns a process that uses root or cannot be judged, or nil.
func (m machine) findUser(uid int, root string) (*user, error) {
	dir, err := os.Open(m.proc)
	if err != nil {
		return nil, fencedBy(err, "the processes in %s cannot be listed: %s; mount procfs there", m.proc, reason(err))
	}
	defer dir.Close()
	list, err := dir.Readdirnames(-1)
	if err != nil || !slices.Contains(list, "self") {
		return nil, fencedBy(err, "the processes in %s cannot be listed; mount procfs there", m.proc)
	}
	for _, name := range list {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if uses, doubt := m.judge(pid, uid, root); uses || doubt != "" {
			return &user{pid, doubt}, nil
		}
	}
	return nil, nil
}

// judge looks at one process. One that vanishes meanwhile uses nothing.
func (m machine) judge(pid, uid int, root string) (uses bool, doubt string) {
	dir := filepath.Join(m.proc, strconv.Itoa(pid))
	status, err := readBounded(filepath.Join(dir, "status"), 64<<10)
	if vanished(err) || err == nil && len(status) == 0 {
		return false, ""
	}
	if err != nil {
		return false, "hides its status"
	}
	ours, ok := ownership(status, uid)
	switch {
	case !ok:
		return false, "runs under several users or hides under which"
	case !ours:
		return false, ""
	}
	line, err := readBounded(filepath.Join(dir, "cmdline"), maxCommandLine)
	switch {
	case vanished(err):
		return false, ""
	case err != nil:
		return false, "hides its command line"
	case len(line) > maxCommandLine:
		return false, "has a command line without end"
	}
	return usesProfile(line, root), ""
}

// ownership reads the four IDs of a Uid line: all ours, none ours, or, not ok,
// anything else.
func ownership(status []byte, uid int) (ours, ok bool) {
	for line := range bytes.Lines(status) {
		rest, found := bytes.CutPrefix(line, []byte("Uid:"))
		if !found {
			continue
		}
		fields := strings.Fields(string(rest))
		if len(fields) != 4 {
			return false, false
		}
		n := 0
		for _, f := range fields {
			id, err := strconv.ParseUint(f, 10, 32)
			if err != nil {
				return false, false
			}
			if int(id) == uid {
				n++
			}
		}
		return n == 4, n == 0 || n == 4
	}
	return false, false
}

// usesProfile reports whether a command line holds an absolute user data
// directory at or below root, in any way that a browser takes one: as one
// argument with one dash or two, as two arguments, and inside the one blank
// separated string that browsers' children make of their title.
func usesProfile(line []byte, root string) bool {
	const flag = "-user-data-dir"
	rest := string(line)
	for {
		i := strings.Index(rest, flag)
		if i < 0 {
			return false
		}
		begins := i == 0 || strings.ContainsRune("-\x00 ", rune(rest[i-1]))
		rest = rest[i+len(flag):]
		if begins && len(rest) > 0 && (rest[0] == '=' || rest[0] == 0 || rest[0] == ' ') && below(rest[1:], root) {
			return true
		}
	}
}

// below reports whether the path that s begins with is root or below it. Where
// a path in a blank separated string ends cannot be told, so what follows root
// decides; otherwise the argument ends at NUL.
func below(s, root string) bool {
	s = strings.TrimLeft(s, `"' `)
	if rest, ok := strings.CutPrefix(s, root); ok && (rest == "" || strings.ContainsRune("\x00/ \"'", rune(rest[0]))) {
		return true
	}
	arg, _, _ := strings.Cut(s, "\x00")
	if !filepath.IsAbs(arg) {
		return false
	}
	if inside(filepath.Clean(arg), root) {
		return true
	}
	real, err := filepath.EvalSymlinks(arg)
	return err == nil && inside(real, root)
}

func inside(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
}

// readBounded reads at most one byte more than limit.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
