package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inside is the parent's view into a cell: its own /proc, which lists the
// cell's processes only and by their numbers inside, and the file systems that
// are memory.
type inside struct {
	proc   *os.File
	memory []*os.File // /dev/shm and /tmp
}

// lookInside opens the views through init's root, whose mounts nothing in the
// cell can change.
func lookInside(initPID int) (*inside, error) {
	v := &inside{}
	root := fmt.Sprintf("/proc/%d/root", initPID)
	var err error
	if v.proc, err = os.Open(root + "/proc"); err != nil {
		return nil, err
	}
	for _, path := range []string{"/dev/shm", "/tmp"} {
		f, err := os.Open(root + path)
		if err != nil {
			v.close()
			return nil, err
		}
		v.memory = append(v.memory, f)
	}
	return v, nil
}

func (v *inside) close() {
	v.proc.Close()
	for _, f := range v.memory {
		f.Close()
	}
}

// volatile is how many bytes the cell's memory file systems hold.
func (v *inside) volatile() int64 {
	var sum int64
	for _, f := range v.memory {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err == nil {
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return sum
}

// task is what the kernel says about one process of a cell.
type task struct {
	pid        int // inside, as all IDs here
	parent     int
	kind       string // of Chromium's processes: "" for the browser, else --type
	service    string // --utility-sub-type
	memory     int64  // bytes nobody else holds: anonymous and swapped
	seccomp    int    // 2: filtered
	filters    int    // how many
	depth      int    // PID namespaces below the cell's own, counting that as 1
	caps       uint64 // effective and permitted
	noNewPrivs bool
	zombie     bool
}

// open opens the directory of process pid.
func (v *inside) open(pid int) (int, error) {
	return unix.Openat(int(v.proc.Fd()), strconv.Itoa(pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// tasks lists the cell's processes; those that end meanwhile are left out.
func (v *inside) tasks() ([]task, error) {
	fd, err := unix.Openat(int(v.proc.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), "proc")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []task
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		t, err := v.task(pid)
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH):
		case err != nil:
			return nil, err
		case !t.zombie:
			all = append(all, t)
		}
	}
	return all, nil
}

func (v *inside) task(pid int) (task, error) {
	dir, err := v.open(pid)
	if err != nil {
		return task{}, err
	}
	defer unix.Close(dir)
	return readTask(dir, pid)
}

func readTask(dir, pid int) (task, error) {
	status, err := readAt(dir, "status")
	if err != nil {
		return task{}, err
	}
	line, err := readAt(dir, "cmdline")
	if err != nil {
		return task{}, err
	}
	t := parseStatus(status)
	t.pid = pid
	t.kind, t.service = parseCommand(line)
	return t, nil
}

// readAt reads at most 64 KiB of a file below dir.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// network names the network namespace that process pid lives in.
func (v *inside) network(pid int) (string, error) {
	dir, err := v.open(pid)
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	name := make([]byte, 64)
	n, err := unix.Readlinkat(dir, "ns/net", name)
	if err != nil {
		return "", err
	}
	return string(name[:n]), nil
}

// parseStatus reads a /proc status file; what is missing stays zero, which is
// never the confined value.
func parseStatus(status []byte) task {
	t := task{caps: ^uint64(0)}
	for line := range bytes.Lines(status) {
		name, value, ok := strings.Cut(string(line), ":")
		fields := strings.Fields(value)
		if !ok || len(fields) == 0 {
			continue
		}
		number, _ := strconv.ParseInt(fields[0], 10, 64)
		switch name {
		case "State":
			t.zombie = fields[0] == "Z" || fields[0] == "X"
		case "PPid":
			t.parent = int(number)
		case "NSpid":
			t.depth = len(fields)
		case "RssAnon", "VmSwap":
			t.memory += number << 10
		case "Seccomp":
			t.seccomp = int(number)
		case "Seccomp_filters":
			t.filters = int(number)
		case "NoNewPrivs":
			t.noNewPrivs = number == 1
		case "CapEff":
			if caps, err := strconv.ParseUint(fields[0], 16, 64); err == nil {
				t.caps = caps
			}
		}
	}
	return t
}

// parseCommand reads a command line for what kind of Chromium process it is.
// Processes that the zygote forks have theirs in one string.
func parseCommand(line []byte) (kind, service string) {
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 || r == ' ' })
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "--type="); ok && kind == "" {
			kind = v
		}
		if v, ok := strings.CutPrefix(w, "--utility-sub-type="); ok && service == "" {
			service = v
		}
	}
	return kind, service
}
