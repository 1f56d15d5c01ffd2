package chromium

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Tree lists a process and all below it, with the fields of their stat files
// after the name: parent, times and so on.
func Tree(root int) (pids []int, stats [][]string) {
	children, all := map[int][]int{}, map[int][]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		stat, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue // it ended
		}
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, _ := strconv.Atoi(after[1])
		children[parent] = append(children[parent], pid)
		all[pid] = after
	}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		queue = append(queue, children[queue[0]]...)
		if fields := all[queue[0]]; fields != nil {
			pids, stats = append(pids, queue[0]), append(stats, fields)
		}
	}
	return pids, stats
}

// CPU is the time that a process and all below it have had on a core; the
// kernel tells it in hundredths of a second.
func CPU(root int) time.Duration {
	_, stats := Tree(root)
	return used(stats)
}

// OwnCPU is the same of a process alone.
func OwnCPU(pid int) time.Duration {
	pids, stats := Tree(pid)
	if len(pids) == 0 {
		return 0
	}
	return used(stats[:1])
}

func used(stats [][]string) (sum time.Duration) {
	for _, fields := range stats {
		for _, f := range fields[11:13] { // user and system
			n, _ := strconv.ParseInt(f, 10, 64)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// Split is [CPU] of a Reins process in two: of its own processes, and of the
// browsers below it.
func Split(root int) (own, browsers time.Duration) {
	pids, stats := Tree(root)
	for i, pid := range pids {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // it may have ended
		if t := used(stats[i : i+1]); strings.HasPrefix(string(name), "chrom") || strings.HasPrefix(string(name), "headless") {
			browsers += t
		} else {
			own += t
		}
	}
	return own, browsers
}
