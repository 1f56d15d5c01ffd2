package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// limitFlag collects --limit NAME=VALUE.
type limitFlag struct {
	limits reins.Limits
	given  []string
}

// String, Type and Set implement pflag.Value.
func (l *limitFlag) String() string { return strings.Join(l.given, ",") }

// Type names the form in help.
func (l *limitFlag) Type() string { return "NAME=VALUE" }

// Set takes one limit, or several with commas between.
func (l *limitFlag) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		if err := l.set(strings.TrimSpace(one)); err != nil {
			return err
		}
		l.given = append(l.given, one)
	}
	return nil
}

func (l *limitFlag) set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("%.60q is not NAME=VALUE, such as resources=10000", s)
	}
	for _, info := range reins.LimitTable() {
		if info.Name != name {
			continue
		}
		n, err := limitValue(info, value)
		if err != nil {
			return err
		}
		next := l.limits
		text, _ := json.Marshal(map[string]int64{name: n}) // of a string and a number
		if err := json.Unmarshal(text, &next); err != nil {
			return fmt.Errorf("limit %s: %w", name, err)
		}
		// The rule about two limits together is the host's to check, of all of them.
		if _, err := next.WithDefaults(); err != nil && n != 0 && (n < info.Min || n > info.Max) {
			return fmt.Errorf("%s", reins.AsError(err).Message)
		}
		l.limits = next
		return nil
	}
	return fmt.Errorf("there is no limit %.60q; `reins serve --help` lists them", name)
}

// limitValue reads a value in the unit of its limit: a number, bytes with k, M, G or T
// behind (of 1,024), or a duration.
func limitValue(info reins.LimitInfo, s string) (int64, error) {
	switch info.Unit {
	case "duration":
		d, err := time.ParseDuration(s)
		if err != nil || d == 0 {
			return 0, fmt.Errorf("limit %s takes a duration such as 30s, not %.40q", info.Name, s)
		}
		return int64(d), nil
	case "bytes":
		digits := strings.TrimRight(s, "kMGTiB")
		shift, ok := map[string]uint{"": 0, "k": 10, "M": 20, "G": 30, "T": 40}[strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "i")]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || !ok || n <= 0 || n > 1<<62>>shift {
			return 0, fmt.Errorf("limit %s takes bytes such as 67108864 or 64M, not %.40q", info.Name, s)
		}
		return n << shift, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 && info.Min > 0 { // zero would mean the default
		return 0, fmt.Errorf("limit %s takes a number, not %.40q", info.Name, s)
	}
	return n, nil
}

// limitHelp lists the limits as help shows them.
func limitHelp() string {
	var b strings.Builder
	for _, i := range reins.LimitTable() {
		fmt.Fprintf(&b, "  %-28s %s: %s [%s..%s]\n", i.Name, i.What, limitText(i, i.Default), limitText(i, i.Min), limitText(i, i.Max))
	}
	return b.String()
}

// limitText writes a value in a limit's unit, shortly.
func limitText(i reins.LimitInfo, v int64) string {
	switch i.Unit {
	case "duration":
		return shortDuration(time.Duration(v))
	case "bytes":
		for _, u := range []struct {
			shift uint
			name  string
		}{{40, "T"}, {30, "G"}, {20, "M"}, {10, "k"}} {
			if v >= 1<<u.shift && v%(1<<u.shift) == 0 {
				return strconv.FormatInt(v>>u.shift, 10) + u.name
			}
		}
	}
	return strconv.FormatInt(v, 10)
}

// shortDuration is a duration without its zero parts.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
