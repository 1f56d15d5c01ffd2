package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// Filter says which system calls are left. The zero value leaves a process
// that computes, starts threads and works with the descriptors it has: it
// opens nothing by path, makes no socket, starts nothing, signals nobody but
// itself. Each field gives one thing back.
//
// Never left are calls of a foreign ABI (the process is killed), io_uring
// (ENOSYS: whatever it does escapes a filter), and what only administers or
// inspects a machine: mounts, modules, clocks, tracing, keys, bpf (EPERM).
type Filter struct {
	Families   []uint32 // address families that sockets may be of, at most eight; others are EAFNOSUPPORT. Of inet only TCP and UDP, of netlink only routes
	Files      bool     // open, create, rename, remove and look up by path; change directory and root
	Start      bool     // make processes, execute programs, signal other processes
	Namespaces bool     // make user namespaces and what they permit; needs Start
}

// Where seccomp_data holds what a filter reads; low words, both architectures
// being little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg2   = 32
)

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// assembler collects a filter program. Every rule it adds either returns or
// falls through with the call's number in the accumulator.
type assembler struct{ code []unix.SockFilter }

func (a *assembler) load(offset uint32) {
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (a *assembler) ret(action uint32) {
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// unless skips the next n instructions when test does not hold for k.
func (a *assembler) unless(test uint16, k uint32, n uint8) {
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: n})
}

func (a *assembler) refuse(errno unix.Errno, calls ...uint32) {
	for _, nr := range calls {
		a.unless(unix.BPF_JEQ, nr, 1)
		a.ret(unix.SECCOMP_RET_ERRNO | uint32(errno))
	}
}

// onlyArg0 lets call nr through when its first argument is one of values.
func (a *assembler) onlyArg0(nr uint32, values []uint32, errno unix.Errno) {
	a.unless(unix.BPF_JEQ, nr, uint8(2+2*len(values)))
	a.load(dataArg0)
	for _, v := range values {
		a.unless(unix.BPF_JEQ, v, 1)
		a.ret(unix.SECCOMP_RET_ALLOW)
	}
	a.ret(unix.SECCOMP_RET_ERRNO | uint32(errno))
}

// sockets lets call nr make sockets of the families, and of those only the
// protocols that programs for people use: the others (raw netlink dialects,
// SCTP, MPTCP, …) are kernel code that a page's attacker need not reach.
func (f Filter) sockets(a *assembler, nr uint32) {
	var body assembler
	body.load(dataArg0)
	for _, family := range f.Families {
		protocols, limited := protocolsOf[family]
		if !limited {
			body.unless(unix.BPF_JEQ, family, 1)
			body.ret(unix.SECCOMP_RET_ALLOW)
			continue
		}
		body.unless(unix.BPF_JEQ, family, uint8(2+2*len(protocols)))
		body.load(dataArg2)
		for _, p := range protocols {
			body.unless(unix.BPF_JEQ, p, 1)
			body.ret(unix.SECCOMP_RET_ALLOW)
		}
		body.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT))
	}
	body.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT))
	a.unless(unix.BPF_JEQ, nr, uint8(len(body.code)))
	a.code = append(a.code, body.code...)
}

var protocolsOf = map[uint32][]uint32{
	unix.AF_INET:    {0, unix.IPPROTO_TCP, unix.IPPROTO_UDP},
	unix.AF_INET6:   {0, unix.IPPROTO_TCP, unix.IPPROTO_UDP},
	unix.AF_NETLINK: {unix.NETLINK_ROUTE},
}

// program assembles the filter for this process: rules about "itself" name its
// process ID.
func (f Filter) program() []unix.SockFilter {
	var a assembler
	a.load(dataArch)
	a.unless(unix.BPF_JEQ, nativeArch, 1)
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1})
	a.ret(unix.SECCOMP_RET_KILL_PROCESS)
	a.load(dataNumber)
	if foreignCalls != 0 {
		a.unless(unix.BPF_JGE, foreignCalls, 1)
		a.ret(unix.SECCOMP_RET_KILL_PROCESS)
	}
	a.refuse(unix.ENOSYS, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	a.refuse(unix.EPERM, machineCalls...)
	a.refuse(unix.EPERM, machineCallsOfArch...)
	f.sockets(&a, unix.SYS_SOCKET)
	f.sockets(&a, unix.SYS_SOCKETPAIR)
	if !f.Files {
		a.refuse(unix.EPERM, fileCalls...)
		a.refuse(unix.EPERM, fileCallsOfArch...)
	}
	f.starting(&a)
	a.ret(unix.SECCOMP_RET_ALLOW)
	return a.code
}

// starting adds the rules about processes and namespaces. clone3 hides its
// flags from a filter; ENOSYS makes the C library use clone.
func (f Filter) starting(a *assembler) {
	if !f.Start {
		a.refuse(unix.EPERM, startCalls...)
		a.refuse(unix.EPERM, startCallsOfArch...)
		self := []uint32{uint32(os.Getpid())}
		a.onlyArg0(unix.SYS_TGKILL, self, unix.EPERM)
		a.onlyArg0(unix.SYS_PRLIMIT64, append(self, 0), unix.EPERM)
	}
	if f.Start && f.Namespaces {
		return
	}
	a.refuse(unix.ENOSYS, unix.SYS_CLONE3)
	a.refuse(unix.EPERM, unix.SYS_UNSHARE)
	a.unless(unix.BPF_JEQ, unix.SYS_CLONE, 6)
	a.load(dataArg0)
	a.unless(unix.BPF_JSET, newNamespaces, 1)
	a.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	thread := uint32(unix.CLONE_THREAD)
	if f.Start {
		thread = ^uint32(0) // any flags; clone always names an exit signal or a thread
	}
	a.unless(unix.BPF_JSET, thread, 1)
	a.ret(unix.SECCOMP_RET_ALLOW)
	a.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
}

// machineCalls administer or inspect the machine; nothing here needs them.
var machineCalls = []uint32{
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_PTRACE, unix.SYS_KCMP,
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// fileCalls work by path. Looking at what a path is stays: it reads nothing
// and C libraries use it for descriptors.
var fileCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_UNLINKAT,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_READLINKAT,
	unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE,
	unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_CHROOT, unix.SYS_STATFS, unix.SYS_INOTIFY_ADD_WATCH,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET,
}

// startCalls make, replace or reach other processes.
var startCalls = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_KILL, unix.SYS_TKILL,
	unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
}
