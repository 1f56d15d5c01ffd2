package main

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/reins-browser/reins"
)

// becomeOrdinary makes this process an ordinary user's when it is root's: it
// gives up root for good and executes the program anew, before anything was
// opened (OVW-2). Otherwise it returns: nil when the process may go on, else why
// not. The user is name, else the one who called sudo, else "reins".
func becomeOrdinary(name string) error {
	if os.Geteuid() != 0 {
		return checkSame(name)
	}
	u, err := ordinaryUser(name)
	if err != nil {
		return err
	}
	id, err := readIdentity(u)
	if err != nil {
		return err
	}
	// The Go runtime does these three on every thread of the process.
	for _, step := range []error{syscall.Setgroups(id.groups), syscall.Setgid(id.gid), syscall.Setuid(id.uid)} {
		if step != nil {
			return reins.Errorf(reins.CodeUnsafeHost, "root could not become user %s: %w", u.Username, step)
		}
	}
	err = syscall.Exec("/proc/self/exe", os.Args, environmentOf(u))
	return reins.Errorf(reins.CodeUnsafeHost, "user %s cannot execute this program: %w", u.Username, err)
}

func checkSame(name string) error {
	if name == "" {
		return nil
	}
	if u, err := user.Lookup(name); err == nil && u.Uid == strconv.Itoa(os.Geteuid()) {
		return nil
	}
	return reins.Errorf(reins.CodeInvalidInput, "only root can become user %q; leave out --run-as", name)
}

// ordinaryUser finds whom root becomes.
func ordinaryUser(name string) (*user.User, error) {
	if name != "" {
		u, err := user.Lookup(name)
		switch {
		case err != nil:
			return nil, reins.Errorf(reins.CodeInvalidInput, "there is no user %q on this machine", name)
		case u.Uid == "0":
			return nil, reins.Errorf(reins.CodeUnsafeHost, "browsers never run as root; give an ordinary user with --run-as")
		}
		return u, nil
	}
	for _, each := range []string{os.Getenv("SUDO_USER"), "reins"} {
		if u, err := user.Lookup(each); err == nil && u.Uid != "0" {
			return u, nil
		}
	}
	return nil, reins.Errorf(reins.CodeUnsafeHost,
		"browsers never run as root; give an ordinary user with --run-as USER, or make one: useradd --create-home reins")
}

// identity is what the kernel knows a user by.
type identity struct {
	uid, gid int
	groups   []int
}

func readIdentity(u *user.User) (id identity, err error) {
	names, err := u.GroupIds()
	if err != nil {
		names = []string{u.Gid} // no group but the user's own is the safe answer
	}
	for _, n := range names {
		g, err := strconv.Atoi(n)
		if err != nil {
			return id, reins.Errorf(reins.CodeUnsafeHost, "group %q of user %s is not a number", n, u.Username)
		}
		id.groups = append(id.groups, g)
	}
	id.uid, err = strconv.Atoi(u.Uid)
	if err == nil {
		id.gid, err = strconv.Atoi(u.Gid)
	}
	if err != nil || id.uid == 0 || id.gid == 0 || slices.Contains(id.groups, 0) {
		return id, reins.Errorf(reins.CodeUnsafeHost, "user %s belongs to root's group; browsers need an ordinary user", u.Username)
	}
	return id, nil
}

// environmentOf is this environment without what names root's places.
func environmentOf(u *user.User) []string {
	rootly := []string{"HOME", "USER", "LOGNAME", "MAIL", "TMPDIR", "XDG_", "SUDO_"}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(rootly, func(r string) bool { return name == r || strings.HasSuffix(r, "_") && strings.HasPrefix(name, r) })
	})
	return append(env, "HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
}
