package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

func TestWhoUsesAProfile_OWN3(t *testing.T) {
	root := filepath.Join(t.TempDir(), "my gen", "profiles")
	check(t, os.MkdirAll(filepath.Join(root, "x"), 0o700), os.Symlink(root, filepath.Join(filepath.Dir(root), "alias")))
	alias := filepath.Join(filepath.Dir(root), "alias")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"chromium", "--user-data-dir=" + root}, true},
		{[]string{"chromium", "--user-data-dir=" + root + "/x/y"}, true},
		{[]string{"sleep", "--user-data-dir=" + root + "/"}, true},
		{[]string{"chromium", "-user-data-dir=" + root + "/x"}, true},
		{[]string{"chromium", "--user-data-dir", root + "/x"}, true},
		{[]string{"chromium", "--no-first-run", "--user-data-dir=" + root + "/../profiles//x/./"}, true},
		{[]string{"chromium", "--user-data-dir=/elsewhere", "--user-data-dir=" + root}, true},
		{[]string{"chromium --type=renderer --user-data-dir=" + root + "/x --lang=en"}, true},
		{[]string{"chromium --type=renderer --user-data-dir=" + root}, true},
		{[]string{"chromium", `--user-data-dir="` + root + `"`}, true},
		{[]string{"chromium", "--user-data-dir=" + alias + "/x"}, true},
		{[]string{"--user-data-dir=" + root}, true},
		{[]string{"chromium", "--user-data-dir=" + root + "2"}, false},
		{[]string{"chromium", "--user-data-dir=" + filepath.Dir(root)}, false},
		{[]string{"chromium", "--user-data-dir=profiles"}, false},
		{[]string{"chromium", "--user-data-dir"}, false},
		{[]string{"chromium", "--user-data-dir="}, false},
		{[]string{"vi", root + "/x"}, false},
		{[]string{"chromium", "--other-user-data-dirs=" + root}, false},
		{[]string{"chromium", "--disk-cache-dir=" + root}, false},
		{nil, false},
	} {
		if got := usesProfile([]byte(strings.Join(c.args, "\x00")+"\x00"), root); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}

func TestWhoseAProcessIs_OWN3(t *testing.T) {
	for line, want := range map[string][2]bool{
		"Uid:\t7\t7\t7\t7\n":           {true, true},
		"Name:\tx\nUid:\t8\t8\t8\t8\n": {false, true},
		"Uid:\t7\t0\t0\t0\n":           {false, false},
		"Uid:\t0\t0\t0\t7\n":           {false, false},
		"Uid:\t7\t7\t7\n":              {false, false},
		"Uid:\t7\t7\t7\t7\t7\n":        {false, false},
		"Uid:\t7\t7\t7\tx\n":           {false, false},
		"Uid:\t-7\t7\t7\t7\n":          {false, false},
		"Gid:\t7\t7\t7\t7\n":           {false, false},
		"Name:\tUid:\t7\n":             {false, false},
	} {
		if ours, ok := ownership([]byte(line), 7); ours != want[0] || ok != want[1] {
			t.Errorf("%q: %v %v", line, ours, ok)
		}
	}
}

func FuzzUsesProfile(f *testing.F) {
	f.Add("chromium\x00--user-data-dir=/r/x\x00")
	f.Add("--user-data-dir")
	f.Add("-user-data-dir=-user-data-dir==/r")
	f.Fuzz(func(t *testing.T, line string) {
		usesProfile([]byte(line), "/r/nowhere")
		if !usesProfile([]byte(line+"\x00--user-data-dir=/r/nowhere/x\x00"), "/r/nowhere") {
			t.Fatalf("%q hides an argument", line)
		}
	})
}

// OWN-3: what cannot be judged fences, others' processes do not count, and what
// is no process is none.
func TestProcessesThatCannotBeJudged_OWN3(t *testing.T) {
	uid, root := os.Geteuid(), "/nowhere/profiles"
	mine := fmt.Sprint(uid)
	for name, c := range map[string]struct {
		prep func(p *fakeProc)
		code reins.Code
	}{
		"none":          {func(p *fakeProc) {}, ""},
		"no profile":    {func(p *fakeProc) { p.ours(10, "bash") }, ""},
		"ours uses it":  {func(p *fakeProc) { p.ours(10, "x", "--user-data-dir="+root+"/a") }, reins.CodeLocked},
		"other user's":  {func(p *fakeProc) { p.process(10, "77777\t77777\t77777\t77777", "x", "--user-data-dir="+root) }, ""},
		"mixed":         {func(p *fakeProc) { p.process(10, mine+"\t77777\t77777\t77777", "x") }, reins.CodeFenced},
		"mixed at last": {func(p *fakeProc) { p.process(10, "77777\t77777\t77777\t"+mine, "x") }, reins.CodeFenced},
		"no Uid line":   {func(p *fakeProc) { p.write("10/status", "Name:\tx\n") }, reins.CodeFenced},
		"status hidden": {func(p *fakeProc) { check(p.t, os.MkdirAll(filepath.Join(p.path, "10/status"), 0o700)) }, reins.CodeFenced},
		"command hidden": {func(p *fakeProc) {
			p.ours(10)
			check(p.t, os.Remove(filepath.Join(p.path, "10/cmdline")), os.Mkdir(filepath.Join(p.path, "10/cmdline"), 0o700))
		}, reins.CodeFenced},
		"vanished before its status": {func(p *fakeProc) { check(p.t, os.Mkdir(filepath.Join(p.path, "10"), 0o700)) }, ""},
		"vanished before its command": {func(p *fakeProc) {
			p.ours(10)
			check(p.t, os.Remove(filepath.Join(p.path, "10/cmdline")))
		}, ""},
		"zombie":       {func(p *fakeProc) { p.ours(10); p.write("10/cmdline", "") }, ""},
		"not a number": {func(p *fakeProc) { p.write("10x/status", "") }, ""},
		"no procfs":    {func(p *fakeProc) { check(p.t, os.RemoveAll(filepath.Join(p.path, "self"))) }, reins.CodeFenced},
		"nothing":      {func(p *fakeProc) { check(p.t, os.RemoveAll(p.path)) }, reins.CodeFenced},
	} {
		p := newFakeProc(t, time.Now())
		c.prep(p)
		err := p.machine().inspect(t.Context(), uid, root)
		if reins.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if c.code == reins.CodeLocked && (reins.AsError(err).Details["pid"] != 10 || !strings.Contains(err.Error(), "process 10")) {
			t.Errorf("%s: it does not say who: %v", name, err)
		}
	}
}

// OWN-3: processes are waited for, two seconds and no longer; one that ends
// meanwhile does not count; the caller may leave.
func TestProcessesAreWaitedFor_OWN3(t *testing.T) {
	const root = "/nowhere/profiles"
	run := func(end time.Duration, left bool) (took time.Duration, err error) {
		synctest.Test(t, func(t *testing.T) {
			p := newFakeProc(t, time.Now())
			p.ours(10, "x", "--user-data-dir="+root)
			m := realMachine()
			m.proc = p.path
			if end > 0 {
				time.AfterFunc(end, func() { p.end(10) })
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if left {
				cancel(errors.New("left"))
			}
			began := time.Now()
			err = m.inspect(ctx, os.Geteuid(), root)
			took = time.Since(began)
		})
		return took, err
	}
	took, err := run(0, false)
	wantCode(t, err, reins.CodeLocked)
	if took != 2*time.Second {
		t.Errorf("locked was said after %s", took)
	}
	took, err = run(1200*time.Millisecond, false)
	if err != nil || took < 1200*time.Millisecond || took > 1400*time.Millisecond {
		t.Errorf("a process that ended after 1.2 s: %v after %s", err, took)
	}
	if took, err = run(0, true); err == nil || took > 100*time.Millisecond {
		t.Errorf("a caller that left: %v after %s", err, took)
	}
}

// OWN-3 with a real process, no browser at all, on a real generation.
func TestARealProcessKeepsItsGeneration_OWN3(t *testing.T) {
	path := newPath(t)
	old := abandoned(t, path)
	profile := filepath.Join(path, generationsName, old.Generation, profilesName, "some")
	c := startChild(t, "idle", "--user-data-dir="+profile)
	if c.line() != "up" {
		t.Fatal("no child")
	}
	before := picture(t, path)
	began := time.Now()
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeLocked)
	if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
		t.Errorf("locked was said after %s", took)
	}
	if reins.AsError(err).Details["pid"] != c.Process.Pid {
		t.Errorf("it names another process: %v", err)
	}
	samePicture(t, before, picture(t, path))
	// It ends while the next start waits: that start succeeds.
	time.AfterFunc(100*time.Millisecond, func() { _ = c.in.Close() })
	ended := make(chan struct{})
	go func() { c.end(); close(ended) }()
	mustOpen(t, path, realMachine())
	<-ended
	if exists(profile) {
		t.Error("the old generation is still there")
	}
}
