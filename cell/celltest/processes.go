package celltest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process is one process of the host, by number and start time, so that a
// number given to another one is not mistaken for it.
type process struct {
	pid, parent int
	started     string
	command     string
}

// processes lists all that run on the host now; ended ones are left out.
func processes(t *testing.T) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

func look(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return process{pid, parent, fields[19], string(line)}, true
}

// ofProfile returns the processes of the cell whose browser uses profile, its
// init first: that one names the host's path on its command line (OWN-3).
func ofProfile(t *testing.T, profile string) []process {
	t.Helper()
	all := processes(t)
	var found []process
	for _, p := range all {
		if strings.Contains(p.command+"\x00", "--user-data-dir="+profile+"\x00") {
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ {
		for _, p := range all {
			if p.parent == found[i].pid {
				found = append(found, p)
			}
		}
	}
	return found
}

// waitGone fails when one of list is there after a second (CELL-5), or another
// process of the profile is.
func waitGone(t *testing.T, profile string, list []process) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		var left []process
		for _, p := range list {
			if now, ok := look(p.pid); ok && now.started == p.started {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			left = ofProfile(t, profile)
		}
		switch took := time.Since(begin); {
		case len(left) == 0:
			return took
		case took > time.Second:
			for _, p := range left {
				waits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", p.pid))
				t.Logf("%d %.60q is in state %q, in %q", p.pid, p.command, statusOf(t, p.pid)["State"], waits)
			}
			t.Fatalf("%d of %d processes are there after %s", len(left), len(list), took)
		}
		pause(t)
	}
}

// pause waits a moment between two looks at the kernel, which gives no sign.
func pause(t *testing.T) {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-t.Context().Done():
	}
}

// until waits for a condition that nothing announces.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); pause(t) {
		if time.Since(begin) > patience {
			t.Fatalf("%s did not come about in %s", what, patience)
		}
	}
}

func dumpable() error {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// tree lists what is below dir, sizes left out.
func tree(dir string) map[string]bool {
	all := map[string]bool{}
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all[path] = true
		return nil
	})
	return all
}

// statusOf reads the lines of a process's status.
func statusOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		all[name] = strings.TrimSpace(value)
	}
	return all
}

// network names the network that a process lives in.
func network(t *testing.T, pid int) string {
	t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	return name
}
