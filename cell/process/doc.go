// Package process is the cell backend that needs nothing but a Linux kernel
// and an ordinary user: a cell is a set of namespaces with a tiny init.
//
// # What happens at a start
//
// The parent makes the DevTools pipe and a control socket and re-executes its
// own binary as the init of new user, network, PID, mount, IPC and UTS
// namespaces, its user mapped to itself (CELL-2). With three ambient
// capabilities in that namespace, init builds a minimal read-only root and
// pivots into it, brings lo up, adds a stub link, listens on 127.0.0.1 and
// sends the listening descriptor out. Then it drops every capability on one
// thread, executes itself again, takes on a system call filter and resource
// bounds, and starts Chromium, whose own sandbox is on (CELL-4). The parent
// checks what it was sent (CELL-12) and closes the control socket.
//
// [Backend.Start] returns when Chromium was executed. Whether it works is the
// driver's to find out; the DevTools pipe may be written to at once. Callers
// list [InitMain] under [InitRole] in child.Main.
//
// # What a cell has
//
// Of the host: /usr and its symlinks, fonts, certificates and the dynamic
// linker's cache, read-only; six device nodes. Of its own: /proc, bounded
// tmpfs on /tmp and /dev/shm, a made-up passwd and host name, the managed
// policies. Of the caller: the profile and downloads, writable, the uploads,
// read-only. Nothing else exists, and no route leads anywhere: what the
// browser asks of a network arrives at the listener (CELL-3). A browser that
// lies outside /usr has its directory at /opt/browser.
//
// flags.go holds every switch of Chromium with its reason, policy.go the
// managed policies, root.go the root.
//
// # Bounds
//
// Data size, tasks, open files and core files are bounded by the kernel,
// temporary and shared memory by their tmpfs. The memory of the whole cell is
// bounded by cgroup v2 when the program runs in a delegated subtree, else by a
// watcher that kills the largest renderer; disk is watched (CELL-7), and so are
// the processes that Chromium forks others from, which it starts once. The facts
// of a cell say which.
//
// # Ends
//
// Every process of a cell lives in its PID namespace, so the end of init is
// the end of all, before init can be reaped. Init ends when the browser
// process does, when its lifeline closes, and by the parent-death signal
// (CELL-5). [cell.Cell] Done is closed after init was reaped, the watcher
// joined and the doors closed: no goroutine outlives it.
//
// Close works by the end of the DevTools pipe, so a driver that holds a copy
// of it must have ended before; otherwise the grace passes and init is killed.
//
// # Testing
//
// cell/celltest runs against it with both engines. The root, the network and
// the filter are proven from inside by a probe program that is started in
// place of Chromium. Run tests as an ordinary user.
package process
