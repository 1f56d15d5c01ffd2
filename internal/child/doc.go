// Package child starts the processes that Reins is made of: re-executions of
// the program's own binary, one per role, that end with their parent.
//
// # Being a child
//
// A program lists its roles first thing in main (a test binary: in TestMain):
//
//	child.Main(map[string]child.Entry{"driver": driver.Main, "cell": process.InitMain})
//
// In an ordinary process Main only remembers the roles and returns. In a child
// it runs the role's [Entry] and exits: 0 when the entry returned nil, else 1
// with the error as the last line of stderr. Whether this is a child is decided
// by descriptor 3, a sealed memory file holding the role, its message and the
// names of its descriptors, together with the program name "reins:ROLE". The
// environment has no say: a child's is empty (DRV-1).
//
// A child has exactly the descriptors it was given by name ([Self.File]), plus
// /dev/null as stdin and stdout, a pipe as stderr and a file mask of its own; what an embedding program
// let slip through is closed before the entry runs. Flags of a description are
// left as they are: a socket that is non-blocking in the parent is so in the
// child and honours deadlines there, and os.File.Fd must not be called on it
// because that makes it blocking for both. No child is dumpable.
//
// # Starting one
//
//	p, err := child.Start(ctx, child.Spec{Role: "driver", Files: map[string]*os.File{"link": end}})
//
// Start refuses with invalid_input when Main was not called or does not know
// the role, with unsafe_host when the host forbids its namespaces, with
// startup_failed when the kernel refuses otherwise. The context bounds
// the call, not the process. The caller keeps its files and closes its copies.
// Children sit in a session of their own, so a terminal's Ctrl-C does not reach
// them, and their Pdeathsig is SIGKILL (OVW-1): all are forked by one locked
// thread that lives as long as any of them, because that signal belongs to the
// forking thread and not to the process.
//
// [Process.Done] is closed when the child is reaped; that happens on its own.
// [Process.Stop] is the ladder: end the context of the entry, SIGTERM, SIGKILL.
// stderr is kept as a ring of its last 16 KiB ([Process.Stderr]).
//
// The entry's context ends when the parent asks it to stop and when the parent
// is gone; for the first process of a PID namespace, whose parent-death signal
// can be lost, the latter is what counts.
//
// # Giving up rights
//
// [Confine] takes rights from the running child, on all its threads: memory,
// task and descriptor bounds, no core, no-new-privileges, and a [Filter] of
// system calls whose zero value suits a process that only computes and speaks
// over descriptors it already has. [DropCapabilities] followed by [Self.Become]
// is for a child that was given capabilities: it drops them on one locked
// thread and executes itself again, which also works in a program with cgo,
// where no call reaches all threads.
//
// A process that is to be confined from the start gets its namespaces in
// [Spec.Attr]; see [Spec.Isolate] for the usual ones.
//
// # Testing
//
// A test binary is a child like any other program: call Main in TestMain. The
// only package state is the table of roles and the forking thread, both of
// which belong to the process by their nature.
package child
