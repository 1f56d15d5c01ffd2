package child

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The fixed descriptors of a child; named ones follow.
const (
	messageFD  = 3
	lifelineFD = 4
	firstFD    = 5
)

const (
	magic      = "reins-child-1"
	argPrefix  = "reins:"
	messageMax = 16 << 20
	allSeals   = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
)

// message is what a child finds in descriptor 3.
type message struct {
	Magic string         `json:"magic"`
	Role  string         `json:"role"`
	Body  []byte         `json:"body,omitempty"`
	Files map[string]int `json:"files,omitempty"` // name to descriptor number
}

// seal writes m into a memory file that nobody can change any more.
func (m message) seal() (*os.File, error) {
	m.Magic = magic
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(data) > messageMax {
		return nil, fmt.Errorf("the start message is %d bytes, above the bound of %d", len(data), messageMax)
	}
	fd, err := unix.MemfdCreate("reins-child", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "start message")
	if _, err = f.Write(data); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, allSeals)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("start message: %w", err)
	}
	return f, nil
}

// readMessage reads the message of role from descriptor fd. It does not touch
// a descriptor that is not a sealed memory file.
func readMessage(fd int, role string) (message, error) {
	var m message
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&allSeals != allSeals {
		return m, fmt.Errorf("descriptor %d is not a sealed start message", fd)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size > messageMax {
		return m, fmt.Errorf("descriptor %d: start message of %d bytes (%v)", fd, st.Size, err)
	}
	data := make([]byte, st.Size)
	if n, err := unix.Pread(fd, data, 0); err != nil || n != len(data) {
		return m, fmt.Errorf("descriptor %d: start message: %w", fd, io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("descriptor %d: start message: %w", fd, err)
	}
	if m.Magic != magic || m.Role != role {
		return m, fmt.Errorf("descriptor %d: start message is for %q, not for %q", fd, m.Magic+" "+m.Role, role)
	}
	return m, nil
}
