package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins/internal/child"
)

// cellFilter is what processes of a cell may still ask of the kernel: anything
// that Chromium and its sandbox need, over unix, inet and netlink sockets
// (CELL-2). A vsock would reach the machine outside whatever the namespaces.
var cellFilter = child.Filter{
	Families:   []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
	Files:      true,
	Start:      true,
	Namespaces: true,
}

// openFiles bounds the descriptors of each process; Chromium's browser process
// with many tabs stays far below.
const openFiles = 8192

// InitMain is the first process of a cell; a program lists it under [InitRole]
// in child.Main. It lives twice: first it builds the cell with the capabilities
// of a new user namespace, then, executed again without any, it starts the
// browser, reaps, and ends with it or with the parent (CELL-5).
func InitMain(ctx context.Context, self *child.Self) error {
	var p plan
	if err := json.Unmarshal(self.Message, &p); err != nil {
		return fmt.Errorf("start message: %w", err)
	}
	files := map[string]*os.File{}
	for _, name := range []string{fileControl, fileIn, fileOut} {
		f, err := self.File(name)
		if err != nil {
			return err
		}
		files[name] = f
	}
	if !p.Sealed {
		return build(self, p, files)
	}
	if err := supervise(ctx, p, files); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		leave(1)
	}
	leave(0)
	return nil
}

// leave ends this process at once, and with it the cell: nothing here has to be
// flushed, and what a runtime does before an exit can take a second.
func leave(code int) { syscall.Exit(code) }

// build makes the cell around this process and executes it again.
func build(self *child.Self, p plan, files map[string]*os.File) error {
	// Capabilities belong to the thread, and the one that drops them has to be
	// the one that executes.
	runtime.LockOSThread()
	control := files[fileControl]
	fail := func(err error) error {
		_ = send(control, report{Error: err.Error(), Host: true})
		return err
	}
	if err := unix.Sethostname([]byte(hostName)); err != nil {
		return fail(fmt.Errorf("host name: %w", err))
	}
	if err := buildRoot(p); err != nil {
		return fail(err)
	}
	if err := linkUp("lo"); err != nil {
		return fail(err)
	}
	online := addStub() == nil
	fd, err := listen()
	if err != nil {
		return fail(err)
	}
	if err := send(control, report{Listening: true, Online: online}, fd); err != nil {
		return fail(err)
	}
	unix.Close(fd)
	if err := child.DropCapabilities(); err != nil {
		return fail(err)
	}
	p.Sealed, p.Policies = true, nil
	message, err := json.Marshal(p)
	if err != nil {
		return fail(err)
	}
	return fail(self.Become(child.Spec{Role: self.Role, Args: self.Args, Message: message, Files: files}))
}

// supervise starts the browser and ends when it does, when the parent asks or
// is gone. The kernel ends all that is left of the cell then.
func supervise(ctx context.Context, p plan, files map[string]*os.File) error {
	control := files[fileControl]
	fail := func(err error, host bool) error {
		_ = send(control, report{Error: err.Error(), Host: host})
		return err
	}
	err := child.Confine(child.Confinement{Files: openFiles, Tasks: uint64(p.Tasks), Filter: &cellFilter})
	if err != nil {
		return fail(err, true)
	}
	if p.Probe {
		return send(control, report{Probed: true})
	}
	pid, err := execute(p, files)
	if err != nil {
		return fail(err, false)
	}
	// The browser must be the only one to hold its ends, or it would never see
	// the end of the pipe.
	files[fileIn].Close()
	files[fileOut].Close()
	if err := send(control, report{Browser: pid}); err != nil {
		return err
	}
	control.Close()
	ended := make(chan error, 1)
	go func() { ended <- reap(pid) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// execute starts the browser with the DevTools pipe as descriptors 3 and 4.
func execute(p plan, files map[string]*os.File) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   p.Env,
		Files: []uintptr{null.Fd(), null.Fd(), 2, files[fileIn].Fd(), files[fileOut].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	pid, err := syscall.ForkExec(p.Browser, append([]string{p.Browser}, p.Args...), attr)
	if err != nil {
		return 0, fmt.Errorf("execute %s: %w", p.Browser, err)
	}
	// Set from outside and not before the fork, so that it does not bound this
	// process too; the browser is still being linked.
	var bound unix.Rlimit
	if err = unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &bound); err == nil {
		bound.Max = min(bound.Max, uint64(p.Data))
		bound.Cur = bound.Max
		err = unix.Prlimit(pid, unix.RLIMIT_DATA, &bound, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("bound of the browser's data: %w", err)
	}
	return pid, nil
}

// reap collects every process that ends in the cell until the browser has.
func reap(browser int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case pid == browser && status.Signaled():
			return fmt.Errorf("the browser was ended by signal %q", status.Signal())
		case pid == browser && status.ExitStatus() != 0:
			return fmt.Errorf("the browser ended with exit status %d", status.ExitStatus())
		case pid == browser:
			return nil
		}
	}
}
