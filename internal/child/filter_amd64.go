package child

import "golang.org/x/sys/unix"

const (
	nativeArch   = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // x32 calls have this bit and the same architecture
)

var (
	machineCallsOfArch = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_CREATE_MODULE, unix.SYS_USELIB}
	fileCallsOfArch    = []uint32{
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_MKNOD, unix.SYS_UNLINK,
		unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_READLINK, unix.SYS_CHMOD, unix.SYS_CHOWN,
		unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	}
	startCallsOfArch = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
)
