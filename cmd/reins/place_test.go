package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// DIR-1: a place that cannot hold a runtime directory is said in every call, by
// name and with the way out; one that can be made is made.
func TestPlaces(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"real", "shut"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(base, "shut"), 0o500); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, says string }{
		"missing parents":     {"a/b/c", ""},
		"a file":              {"file", `cannot be opened as a directory: not a directory`},
		"below a file":        {"file/x", `/file" for the runtime directory cannot be made: not a directory; choose a place`},
		"a link":              {"link", `name the directory itself, not a link`},
		"read-only":           {"shut", `has mode 0500; it must be 0700`},
		"below a read-only":   {"shut/x", `cannot be made: permission denied; choose a place`},
		"somebody else's":     {"/root", `is closed to user `},
		"in somebody else's":  {"/usr/reins", `"/usr/reins" cannot be made: permission denied`},
		"the root":            {"/", `cannot be the root of the file system`},
		"longer than allowed": {strings.Repeat("x/", 1000), `bytes; use at most 1024`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(base, dir)
			}
			text, failed := ask(t, connect(t, program(t, "mcp", "--engine", "shell", "--dir", dir)), "browser_snapshot", nil)
			if failed != (c.says != "") || !strings.Contains(text, c.says) || len(text) > 1000 {
				t.Errorf("it said %q", text)
			}
			if failed && !strings.Contains(text, "whoever runs this server has to fix") {
				t.Errorf("the client is told to do what it cannot: %q", text)
			}
		})
	}
}

// What the server and its browser make is their user's alone, whatever the mask of
// files was that they were started under.
func TestFileMask(t *testing.T) {
	for _, mask := range []string{"000", "777"} {
		dir := filepath.Join(t.TempDir(), "runtime")
		inner := program(t, "mcp", "--engine", "full", "--dir", dir)
		cmd := exec.Command("/bin/bash", append([]string{"-c", "umask " + mask + ` && exec -a reins "$0" "$@"`, inner.Path}, inner.Args[1:]...)...)
		cmd.Env = inner.Env
		c := connect(t, cmd)
		if text, failed := ask(t, c, "browser_screenshot", nil); failed {
			t.Errorf("under the mask %s: %s", mask, text)
		}
		seen := 0
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			info, serr := os.Lstat(path)
			if err != nil || serr != nil || e.Type()&os.ModeSymlink != 0 {
				return nil // a browser at work makes and removes
			}
			if seen++; info.Mode().Perm()&0o077 != 0 || info.Mode().Perm()&0o600 != 0o600 {
				t.Errorf("under the mask %s: %s has mode %s", mask, path, info.Mode())
			}
			return nil
		})
		if seen < 10 {
			t.Errorf("under the mask %s: only %d files", mask, seen)
		}
		_ = c.Close()
	}
}

// OWN-7, B121: a runtime whose directory goes while it runs ends at once; the call
// after that says so, and the next one has a new runtime. Tools stay.
func TestLostDirectoryIsSaidAndReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runtime")
	cmd := program(t, "mcp", "--engine", "shell", "--dir", dir)
	c := connect(t, cmd)
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Fatal(text)
	}
	all := descendants(cmd.Process.Pid)
	if err := os.RemoveAll(dir); err != nil {
		t.Logf("removing it under a browser: %v", err)
	}
	gone(t, all[1:], soon())
	if tools, err := c.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 6 {
		t.Errorf("the tools: %v %v", tools, err)
	}
	text, failed := ask(t, c, "browser_snapshot", nil)
	if !failed || !strings.Contains(text, "lost its directory") || !strings.Contains(text, dir) || !strings.Contains(text, "Retryable: yes") {
		t.Errorf("the first call said %q", text)
	}
	if text, failed = ask(t, c, "browser_snapshot", nil); failed {
		t.Errorf("the second call said %q", text)
	}
	all = descendants(cmd.Process.Pid)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	gone(t, all, soon())
	if left, err := filepath.Glob(filepath.Join(dir, "generations", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// What a host says unasked is a page's text, and not for the server's stderr.
func TestUnaskedWordsAreNotLogged(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	said := make(chan struct{}, 64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<h1>Hello</h1>")
				_, _ = in.Peek(0)
				fmt.Fprint(conn, "UNASKED WORDS\r\n\r\n")
				_, _ = in.ReadByte() // until the other end has had enough
				said <- struct{}{}
			}()
		}
	}()
	var stderr lockedText
	cmd := program(t, "mcp", "--engine", "shell", "--allow", l.Addr().String())
	cmd.Stderr = &stderr
	c := connect(t, cmd)
	for range 3 {
		if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": "http://" + l.Addr().String() + "/"}); failed {
			t.Fatal(text)
		}
		<-said
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := stderr.String(); strings.Contains(got, "UNASKED") || !strings.Contains(got, "Chromium is up") {
		t.Errorf("stderr is %q", got)
	}
}

// lockedText collects what several goroutines write.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// copyProgram makes a program of its own at path.
func copyProgram(t *testing.T, from, path string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A working directory that is gone, and a program whose file is: a server goes on,
// with new drivers and browsers too.
func TestDeletedProgram(t *testing.T) {
	inner := program(t, "mcp", "--engine", "shell")
	copied := filepath.Join(t.TempDir(), "reins")
	copyProgram(t, inner.Path, copied)
	cmd := exec.Command(copied, inner.Args[1:]...)
	cmd.Args[0], cmd.Env, cmd.Dir = "reins", inner.Env, t.TempDir()
	c := connect(t, cmd)
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cmd.Dir); err != nil {
		t.Fatal(err)
	}
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Fatal(text)
	}
	for _, pid := range descendants(cmd.Process.Pid)[1:] {
		_ = syscall.Kill(pid, syscall.SIGKILL) // some end with others
	}
	for try := 0; ; try++ { // their end may be seen before, during or after a call
		text, failed := ask(t, c, "browser_snapshot", nil)
		if !failed {
			break
		}
		if try == 2 || !strings.Contains(text, "Retryable: yes") {
			t.Fatal(text)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
