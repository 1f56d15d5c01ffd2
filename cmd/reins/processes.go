package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descendants lists pid and every process below it.
func descendants(pid int) []int {
	children := map[int][]int{}
	directories, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range directories {
		stat, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue // it ended
		}
		id, _ := strconv.Atoi(filepath.Base(d))
		// The name before it may hold anything, even what looks like this.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], id)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// memoryHeld adds up what only pid and the processes below it hold, in bytes:
// Reins' own and the browser's. Shared code is not counted.
func memoryHeld(pid int) (own, browser int64) {
	for _, id := range descendants(pid) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		held, name := int64(0), ""
		for line := range strings.Lines(string(status)) {
			key, value, _ := strings.Cut(line, ":")
			switch fields := strings.Fields(value); key {
			case "Name":
				name = strings.TrimSpace(value)
			case "RssAnon", "RssShmem":
				if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
					held += n << 10
				}
			}
		}
		if strings.HasPrefix(name, "chrom") || strings.HasPrefix(name, "headless") {
			browser += held
		} else {
			own += held
		}
	}
	return own, browser
}
