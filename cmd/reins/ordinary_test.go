package main

import (
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// OVW-2: whom root becomes.
func TestOrdinaryUser(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, sudo string
		want       string
		code       reins.Code
	}{
		{name: me.Username, want: me.Username},
		{sudo: me.Username, want: me.Username},
		{name: "root", code: reins.CodeUnsafeHost},
		{name: "root", sudo: me.Username, code: reins.CodeUnsafeHost},
		{name: "no-such-user", sudo: me.Username, code: reins.CodeInvalidInput},
	} {
		t.Setenv("SUDO_USER", test.sudo)
		u, err := ordinaryUser(test.name)
		switch {
		case test.code != reins.CodeOf(err):
			t.Errorf("%+v: %v", test, err)
		case err == nil && u.Username != test.want:
			t.Errorf("%+v: %s", test, u.Username)
		}
	}
	t.Setenv("SUDO_USER", "root") // a root that called sudo is no answer
	if u, err := ordinaryUser(""); err == nil && u.Uid == "0" {
		t.Errorf("root would become %s", u.Username)
	} else if err != nil && (reins.CodeOf(err) != reins.CodeUnsafeHost || !strings.Contains(err.Error(), "--run-as USER")) {
		t.Errorf("no ordinary user: %v", err)
	}
}

// OVW-2: nothing of root's places goes on in the environment.
func TestEnvironmentOfOrdinaryUser(t *testing.T) {
	for _, name := range []string{"HOME", "USER", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "SUDO_USER", "TMPDIR"} {
		t.Setenv(name, "/root/of/"+name)
	}
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("HOMEBREW", "stays")
	got := environmentOf(&user.User{Username: "ann", HomeDir: "/home/ann"})
	for _, entry := range got {
		if strings.Contains(entry, "/root/of/") {
			t.Errorf("it keeps %s", entry)
		}
	}
	for _, entry := range []string{"HOME=/home/ann", "USER=ann", "LOGNAME=ann", "LANG=C.UTF-8", "HOMEBREW=stays", "PATH=" + os.Getenv("PATH")} {
		if !slices.Contains(got, entry) {
			t.Errorf("it lacks %s", entry)
		}
	}
}

func TestRootsGroupIsNotOrdinary(t *testing.T) {
	_, err := readIdentity(&user.User{Uid: "1000", Gid: "0", Username: "no-such-user"})
	if reins.CodeOf(err) != reins.CodeUnsafeHost {
		t.Errorf("%v", err)
	}
}

// Every code has an exit code, and kinds that a script must tell apart differ.
func TestExitCodes(t *testing.T) {
	for _, info := range reins.Codes() {
		if c := exitCode(info.Code); c < 1 || c == 128 || c > 130 {
			t.Errorf("%s ends with %d", info.Code, c)
		}
	}
	seen := map[int]reins.Code{}
	for _, code := range []reins.Code{
		reins.CodeInternal, reins.CodeInvalidInput, reins.CodeUnsafeHost, reins.CodeLocked, reins.CodeDenied,
		reins.CodeNotFound, reins.CodeStartupFailed, reins.CodeTimeout, reins.CodeCancelled,
	} {
		if other, taken := seen[exitCode(code)]; taken {
			t.Errorf("%s and %s end alike", code, other)
		}
		seen[exitCode(code)] = code
	}
}
