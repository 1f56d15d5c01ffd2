package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reins-browser/reins/host"
)

// TestMain makes this binary whatever it is started as: a child of a runtime, the
// program itself, or one of the clients below.
func TestMain(m *testing.M) {
	host.Main()
	if strings.HasPrefix(os.Args[0], "/opt/browser/") || strings.HasSuffix(os.Args[0], "/stand-in") {
		standIn()
		return
	}
	testscript.Main(m, map[string]func(){
		"reins":     main,
		"exits":     exitsWith,
		"client":    lostClient,
		"smalldisk": onSmallDisk,
	})
}

// exits runs a command that has to end with a code: exits CODE COMMAND [ARG...].
func exitsWith() {
	want, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		fmt.Fprintf(os.Stderr, "it ended with %d, not %d\n", got, want)
		os.Exit(1)
	}
}

// Whatever a user can type.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: commands,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return nil
		},
	})
}

// program is a command that runs reins as a client would start it.
func program(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	path := os.Getenv("REINS_BIN")
	if path == "" {
		path = itself(t)
	}
	cmd := exec.Command(path, arguments...)
	cmd.Args[0] = "reins"
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(t.TempDir(), "state"))
	return cmd
}

// itself is the test's own program, which plays other parts too (TestMain).
func itself(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
