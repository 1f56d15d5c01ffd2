package process

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// linkUp brings interface name up.
func linkUp(name string) error {
	return onInterface(name, func(fd int, r *unix.Ifreq) error {
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
			return err
		}
		r.SetUint16(r.Uint16() | unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
	})
}

// setAddress gives interface name the IPv4 address with a host mask.
func setAddress(name string, address [4]byte) error {
	return onInterface(name, func(fd int, r *unix.Ifreq) error {
		for _, set := range []struct {
			request uint
			value   [4]byte
		}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 255}}} {
			if err := r.SetInet4Addr(set.value[:]); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, set.request, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func onInterface(name string, do func(fd int, r *unix.Ifreq) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := do(fd, r); err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	return nil
}

// The stub link: a pair of interfaces joined to each other, one of them with
// an address for documentation. Chromium takes an interface that is up and has
// an address for a network; no route leads over it.
const (
	stubName = "up0"
	stubPeer = "up1"
)

var stubAddress = [4]byte{192, 0, 2, 1}

// addStub makes navigator.onLine true (CELL-2). It fails on a kernel without
// veth, and the cell does without then.
func addStub() error {
	if err := addVeth(stubName, stubPeer); err != nil {
		return fmt.Errorf("stub link: %w", err)
	}
	if err := setAddress(stubName, stubAddress); err != nil {
		return err
	}
	if err := linkUp(stubName); err != nil {
		return err
	}
	return linkUp(stubPeer)
}

// attribute encodes one rtnetlink attribute, padded to four bytes.
func attribute(kind uint16, payload []byte) []byte {
	size := unix.SizeofRtAttr + len(payload)
	b := make([]byte, (size+3)&^3)
	binary.NativeEndian.PutUint16(b, uint16(size))
	binary.NativeEndian.PutUint16(b[2:], kind)
	copy(b[unix.SizeofRtAttr:], payload)
	return b
}

func joined(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// vethPeer is VETH_INFO_PEER, which x/sys does not name.
const vethPeer = 1

// addVeth asks the kernel for a pair of joined interfaces.
func addVeth(name, peer string) error {
	info := make([]byte, unix.SizeofIfInfomsg)
	nameAttr := func(n string) []byte { return attribute(unix.IFLA_IFNAME, append([]byte(n), 0)) }
	body := joined(info, nameAttr(name), attribute(unix.IFLA_LINKINFO, joined(
		attribute(unix.IFLA_INFO_KIND, []byte("veth")),
		attribute(unix.IFLA_INFO_DATA, attribute(vethPeer, joined(info, nameAttr(peer)))),
	)))
	header := make([]byte, unix.SizeofNlMsghdr)
	binary.NativeEndian.PutUint32(header, uint32(len(header)+len(body)))
	binary.NativeEndian.PutUint16(header[4:], unix.RTM_NEWLINK)
	binary.NativeEndian.PutUint16(header[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	return netlink(append(header, body...))
}

// netlink sends one request and waits for its acknowledgement.
func netlink(request []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	reply := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(reply[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("netlink answered %d bytes that are no acknowledgement", n)
	}
	if code := int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// listen makes the egress listener, still a plain descriptor.
func listen() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	if err != nil {
		return -1, fmt.Errorf("egress listener: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(door.Port()), Addr: door.Addr().As4()})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("egress listener: %w", err)
	}
	return fd, nil
}
