package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts can do besides running programs.
var commands = map[string]func(ts *testscript.TestScript, neg bool, arguments []string){
	"serve": scriptServe,
	"site":  scriptSite,
	"take":  scriptTake,
}

// scriptServe is serve [FLAG...]: a `reins serve` of the script's own, which runs until
// the script ends, and then has to end well.
func scriptServe(ts *testscript.TestScript, neg bool, arguments []string) {
	path := os.Getenv("REINS_BIN")
	if path == "" {
		var err error
		path, err = os.Executable()
		ts.Check(err)
	}
	cmd := exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-level", "warn"}, arguments...)...)
	cmd.Args[0] = "reins"
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	said := bufio.NewScanner(out)
	for said.Scan() && !strings.HasPrefix(said.Text(), "  data ") {
	}
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			ts.Logf("reins serve: %v\n%s", err, log.String())
			ts.Fatalf("reins serve did not end well")
		}
	})
	if said.Text() == "" {
		ts.Fatalf("reins serve did not say where it is")
	}
}

// scriptSite is site NAME: a page on loopback whose address is in $NAME.
func scriptSite(ts *testscript.TestScript, neg bool, arguments []string) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1><label>Name <input id="name"></label>
<button onclick="document.querySelector('h1').textContent='Hello '+document.querySelector('#name').value">Greet</button>
<script>console.error('odd \u001b[31mred')</script>`)
	}))
	ts.Defer(site.Close)
	ts.Setenv(arguments[0], strings.TrimPrefix(site.URL, "http://"))
}

// scriptTake is take NAME PATTERN: what PATTERN's group found in the last standard
// output is in $NAME.
func scriptTake(ts *testscript.TestScript, neg bool, arguments []string) {
	found := regexp.MustCompile(arguments[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("nothing fits %s", arguments[1])
	}
	ts.Setenv(arguments[0], found[1])
}
