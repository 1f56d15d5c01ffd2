package process

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// InitRole is the role under which a program lists [InitMain] in child.Main.
const InitRole = "cell"

// Names of the init's descriptors.
const (
	fileControl = "control"
	fileIn      = "devtools-in"
	fileOut     = "devtools-out"
)

// door is where the egress listener is, on the cell's own loopback.
var door = netip.MustParseAddrPort("127.0.0.1:3128")

const (
	hostName = "browser" // the same in all cells: a profile's lock names it
	homePath = "/tmp/home"
	binPath  = "/opt/browser" // of a browser outside /usr
)

// plan is what init is told to do, in both its lives.
type plan struct {
	Sealed bool // second life: the root is built, the rights are gone
	Probe  bool // end where the browser would be started: for Check

	Browser    string // path inside
	BrowserDir string // host directory that appears at binPath, or empty
	Args       []string
	Env        []string
	TimeZone   string
	Policies   []byte // managed policies, JSON; empty for an engine that reads none

	Profile, Downloads, Uploads string // host paths

	Data         int64 // bytes per process
	Tasks        int
	SharedMemory int64
	TempSpace    int64
}

// report is a message of init over the control socket.
type report struct {
	Listening bool   `json:"listening,omitempty"` // the listener comes with it
	Online    bool   `json:"online,omitempty"`    // the stub link exists
	Browser   int    `json:"browser,omitempty"`   // its process ID inside
	Error     string `json:"error,omitempty"`
	Probed    bool   `json:"probed,omitempty"` // a probe got to where the browser would be started
	Host      bool   `json:"host,omitempty"`   // the error is the host's: it cannot hold a rule
}

// controlMax bounds one message on the control socket.
const controlMax = 4 << 10

// send writes one message, with at most one descriptor. It is used by init
// before its second life, when nothing but itself runs in the cell.
func send(control *os.File, r report, fds ...int) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	raw, err := control.SyscallConn()
	if err != nil {
		return err
	}
	ctlErr := raw.Control(func(fd uintptr) { err = unix.Sendmsg(int(fd), data, rights, nil, unix.MSG_NOSIGNAL) })
	if ctlErr != nil {
		return ctlErr
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// receive reads one message and the descriptors that came with it, which are
// then the caller's. More than one descriptor, or a message cut short, is
// refused and everything received is closed (CELL-12).
func receive(c *net.UnixConn) (report, []int, error) {
	var r report
	data, oob := make([]byte, controlMax), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, flags, _, err := c.ReadMsgUnix(data, oob)
	fds, parseErr := descriptors(oob[:oobn])
	if err == nil && n == 0 && len(fds) == 0 {
		err = io.EOF
	}
	if err == nil {
		err = parseErr
	}
	if err == nil && (len(fds) > 1 || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0) {
		err = fmt.Errorf("control socket: a message of %d bytes with %d descriptors is not one of init's", n, len(fds))
	}
	if err == nil {
		err = json.Unmarshal(data[:n], &r)
	}
	if err != nil {
		closeAll(fds)
		return report{}, nil, err
	}
	return r, fds, nil
}

func descriptors(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	var all []int
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return all, fmt.Errorf("control socket: %w", err)
		}
		all = append(all, fds...)
	}
	return all, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		syscall.Close(fd)
	}
}

// admit checks that fd is what a cell may hand out: a listening IPv4 stream
// socket at the door's address, in another network namespace than this one
// (CELL-12). It takes fd over.
func admit(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "egress listener")
	defer f.Close()
	for _, want := range []struct {
		name          string
		option, value int
	}{
		{"family", unix.SO_DOMAIN, unix.AF_INET},
		{"type", unix.SO_TYPE, unix.SOCK_STREAM},
		{"listening", unix.SO_ACCEPTCONN, 1},
		{"protocol", unix.SO_PROTOCOL, unix.IPPROTO_TCP},
	} {
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, want.option)
		if err != nil {
			return nil, fmt.Errorf("the cell handed out a descriptor whose %s cannot be told: %w", want.name, err)
		}
		if got != want.value {
			return nil, fmt.Errorf("the cell handed out a descriptor whose %s is %d, not %d", want.name, got, want.value)
		}
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("egress listener: %w", err)
	}
	at, ok := name.(*unix.SockaddrInet4)
	if !ok || netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)) != door {
		return nil, fmt.Errorf("the cell handed out a listener that is not at %s", door)
	}
	if err := elsewhere(fd); err != nil {
		return nil, err
	}
	return net.FileListener(f)
}

// elsewhere checks that the socket fd belongs to a network that is not this
// process's own.
func elsewhere(fd int) error {
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("egress listener: its network: %w", err)
	}
	defer unix.Close(ns)
	var theirs, ours unix.Stat_t
	if err := unix.Fstat(ns, &theirs); err != nil {
		return fmt.Errorf("egress listener: its network: %w", err)
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &ours); err != nil {
		return fmt.Errorf("own network: %w", err)
	}
	if theirs.Dev == ours.Dev && theirs.Ino == ours.Ino {
		return fmt.Errorf("the cell handed out a listener of the host's network")
	}
	return nil
}
