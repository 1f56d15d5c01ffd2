package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
)

// group is the cgroup v2 of one cell, beside the one this program runs in.
type group struct {
	path string
	dir  *os.File
}

// newGroup makes the group of a cell with its bounds, nil when this program
// does not run in a delegated subtree with the memory and task controllers
// (under systemd: Delegate=yes and DelegateSubgroup=).
func newGroup(l reins.Limits) *group {
	parent, err := delegated("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil || enable(parent) != nil {
		return nil
	}
	sweep(parent)
	return makeGroup(parent, l)
}

// groupPrefix is followed by the process ID of the cell's parent.
const groupPrefix = "reins-cell-"

// sweep removes the groups of parents that were killed. Their cells ended with
// them, so the groups are empty.
func sweep(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, path := range old {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(path)
		}
	}
}

// controllers are what a cell's group needs.
var controllers = []string{"memory", "pids"}

// enable passes the controllers on to parent's groups; a delegated subtree has
// them to give and need not have given them yet.
func enable(parent string) error {
	return os.WriteFile(filepath.Join(parent, subtreeControl), []byte("+"+strings.Join(controllers, " +")), 0o644)
}

const subtreeControl = "cgroup.subtree_control"

func makeGroup(parent string, l reins.Limits) *group {
	path, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", groupPrefix, os.Getpid()))
	if err != nil {
		return nil
	}
	g := &group{path: path}
	for _, set := range [][2]string{
		{"memory.max", strconv.FormatInt(l.CellMemory, 10)},
		{"memory.swap.max", "0"},
		{"pids.max", strconv.Itoa(l.CellTasks)},
	} {
		if err := os.WriteFile(filepath.Join(path, set[0]), []byte(set[1]), 0o644); err != nil && set[0] != "memory.swap.max" {
			g.remove()
			return nil
		}
	}
	if g.dir, err = os.Open(path); err != nil {
		g.remove()
		return nil
	}
	return g
}

// admit makes a process that is started from s be in the group from its first
// instruction.
func (g *group) admit(s *child.Spec) {
	s.Attr.UseCgroupFD = true
	s.Attr.CgroupFD = int(g.dir.Fd())
}

// remove removes the group, which is empty by then.
func (g *group) remove() {
	if g.dir != nil {
		g.dir.Close()
	}
	_ = os.Remove(g.path)
}

// delegated returns the directory beside this program's own cgroup in which it
// may make groups that bound memory and tasks. Processes live in leaves only,
// so the place is the parent of its own.
func delegated(cgroupFile, mountFile string) (string, error) {
	own, err := ownGroup(cgroupFile)
	if err != nil {
		return "", err
	}
	mount, err := unifiedMount(mountFile)
	if err != nil {
		return "", err
	}
	parent := filepath.Dir(filepath.Join(mount, own))
	if !strings.HasPrefix(parent, mount) {
		return "", fmt.Errorf("this program runs in the root of cgroup v2")
	}
	available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	for _, need := range controllers {
		if !slices.Contains(strings.Fields(string(available)), need) {
			return "", fmt.Errorf("controller %s is not delegated to %s", need, parent)
		}
	}
	for _, path := range []string{parent, filepath.Join(parent, subtreeControl)} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return "", fmt.Errorf("%s is not this user's: %w", path, err)
		}
	}
	return parent, nil
}

// ownGroup reads the path of the v2 hierarchy from a /proc/self/cgroup.
func ownGroup(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("this program is in no cgroup v2")
}

// unifiedMount finds where cgroup v2 is mounted.
func unifiedMount(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if ok && len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			return fields[4], nil
		}
	}
	return "", fmt.Errorf("cgroup v2 is not mounted")
}
