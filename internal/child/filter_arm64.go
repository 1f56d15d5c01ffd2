package child

import "golang.org/x/sys/unix"

const (
	nativeArch   = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0
)

// The older calls by path do not exist on this architecture.
var machineCallsOfArch, fileCallsOfArch, startCallsOfArch []uint32
