package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// onSmallDisk mounts a file system of a few MiB on a directory, gives up the right
// to do so, and becomes a command: smalldisk DIRECTORY COMMAND [ARG...]. It is
// started in user and mount namespaces of its own, with its user mapped to itself.
func onSmallDisk() {
	runtime.LockOSThread()
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("small", os.Args[1], "tmpfs", 0, "size=24m,mode=700")
	}
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		err = syscall.Exec(os.Args[2], append([]string{"reins"}, os.Args[3:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "smalldisk:", err)
	os.Exit(1)
}

// A full disk below the runtime directory is told as such, by the calls that need
// it and by no other, costs nothing that is there, and is over when it is over.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	inner := program(t, "mcp", "--engine", "shell", "--dir", filepath.Join(disk, "runtime"))
	start := func() (*exec.Cmd, *sdk.ClientSession) {
		cmd := exec.Command(itself(t), append([]string{disk, inner.Path}, inner.Args[1:]...)...)
		cmd.Args[0], cmd.Env = "smalldisk", inner.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}
		return cmd, connect(t, cmd)
	}
	cmd, c := start()
	if text, failed := ask(t, c, "browser_screenshot", nil); failed {
		t.Fatal(text)
	}
	free := fillDisk(t, cmd, disk)
	if text, failed := ask(t, c, "browser_screenshot", nil); !failed || !strings.Contains(text, "quota_exceeded") || !strings.Contains(text, "disk of the runtime directory is full") {
		t.Errorf("a picture on a full disk: %q", text)
	}
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Errorf("a snapshot on a full disk: %q", text)
	}
	free()
	if text, failed := ask(t, c, "browser_screenshot", nil); failed {
		t.Errorf("once there is room: %q", text)
	}
	all := descendants(cmd.Process.Pid)
	fillDisk(t, cmd, disk)
	if err := c.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	gone(t, all, soon())
}

// fillDisk fills the disk that a command sees at a directory; free makes room.
func fillDisk(t *testing.T, cmd *exec.Cmd, disk string) (free func()) {
	t.Helper()
	path := filepath.Join(fmt.Sprintf("/proc/%d/root", cmd.Process.Pid), disk, "fill")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 4096)
	written := 0
	for err == nil {
		_, err = f.Write(chunk)
		written += len(chunk)
	}
	if !strings.Contains(err.Error(), "no space left") || written > 24<<20 {
		t.Fatalf("after %d bytes: %v", written, err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
