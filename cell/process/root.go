package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins/cell"
)

// base is where the new root is mounted before it becomes the root: a
// directory that every host has and under which no source of a bind lies.
const base = "/proc"

const (
	readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	device   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// systemPaths are the host's files that a browser needs: libraries, fonts,
// certificates, and what the C library looks up. Absent ones are left out.
var systemPaths = []string{
	"/usr",
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", // links into /usr, or directories on older hosts
	"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/ld.so.cache",
	"/etc/mime.types", "/etc/nsswitch.conf", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/ssl/certs",
	"/var/cache/fontconfig",
}

// deviceNodes are all that a browser opens.
var deviceNodes = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// policyDirs are where the builds of Chromium look for managed policies.
var policyDirs = []string{"/etc/chromium/policies/managed", "/etc/opt/chrome/policies/managed"}

// buildRoot makes the cell's root and moves this process into it (CELL-2,
// CELL-3).
func buildRoot(p plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mountTmpfs("/", "size=1m,nr_inodes=1k,mode=0755", 0); err != nil {
		return err
	}
	steps := []func(plan) error{bindSystem, bindDevices, bindOwn, mountVolatile, writeFiles}
	for _, step := range steps {
		if err := step(p); err != nil {
			return err
		}
	}
	if err := setAttr("/", unix.MOUNT_ATTR_RDONLY, 0); err != nil {
		return err
	}
	return pivot()
}

func pivot() error {
	if err := unix.Chdir(base); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return unix.Chdir("/")
}

func bindSystem(p plan) error {
	for _, path := range systemPaths {
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if err := bind(path, path, readOnly, info.IsDir()); err != nil {
				return err
			}
			continue
		}
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if err := makeParent(path); err != nil {
			return err
		}
		if err := os.Symlink(target, base+path); err != nil {
			return err
		}
	}
	if p.BrowserDir == "" {
		return nil
	}
	return bind(p.BrowserDir, binPath, readOnly, true)
}

func bindDevices(plan) error {
	for _, path := range deviceNodes {
		if err := bind(path, path, device, false); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, base+"/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// bindOwn mounts the caller's directories, which are the only host files that
// the cell may change.
func bindOwn(p plan) error {
	for _, own := range []struct {
		host, inside string
		attr         uint64
	}{
		{p.Profile, cell.ProfilePath, writable},
		{p.Downloads, cell.DownloadsPath, writable},
		{p.Uploads, cell.UploadsPath, writable | unix.MOUNT_ATTR_RDONLY},
	} {
		if own.host == "" {
			continue
		}
		if err := bind(own.host, own.inside, own.attr, true); err != nil {
			return err
		}
	}
	return nil
}

func mountVolatile(p plan) error {
	if err := makeDir("/proc"); err != nil {
		return err
	}
	if err := unix.Mount("proc", base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, t := range []struct {
		path string
		size int64
	}{{"/dev/shm", p.SharedMemory}, {"/tmp", p.TempSpace}} {
		if err := makeDir(t.path); err != nil {
			return err
		}
		if err := mountTmpfs(t.path, fmt.Sprintf("size=%d,nr_inodes=64k,mode=1777", t.size), unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	return os.Mkdir(base+homePath, 0o700)
}

// writeFiles makes the files whose content must not be the host's.
func writeFiles(p plan) error {
	uid, gid := os.Getuid(), os.Getgid()
	files := map[string]string{
		"/etc/passwd":   fmt.Sprintf("browser:x:%d:%d::%s:/usr/sbin/nologin\n", uid, gid, homePath),
		"/etc/group":    fmt.Sprintf("browser:x:%d:\n", gid),
		"/etc/hosts":    "127.0.0.1 localhost\n::1 localhost\n",
		"/etc/hostname": hostName + "\n",
	}
	if len(p.Policies) > 0 {
		for _, dir := range policyDirs {
			files[dir+"/reins.json"] = string(p.Policies)
		}
	}
	for path, content := range files {
		if err := makeParent(path); err != nil {
			return err
		}
		if err := os.WriteFile(base+path, []byte(content), 0o444); err != nil {
			return err
		}
	}
	return os.Symlink("/usr/share/zoneinfo/"+p.TimeZone, base+"/etc/localtime")
}

func mountTmpfs(path, options string, flags uintptr) error {
	if err := unix.Mount("tmpfs", base+path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|flags, options); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", path, err)
	}
	return nil
}

// bind mounts the host's path at inside, with everything mounted below it.
func bind(path, inside string, attr uint64, dir bool) error {
	if err := makeTarget(inside, dir); err != nil {
		return err
	}
	if err := unix.Mount(path, base+inside, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", path, err)
	}
	return setAttr(inside, attr, unix.AT_RECURSIVE)
}

func setAttr(inside string, attr uint64, flags uint) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, base+inside, flags, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("protect %s: %w", inside, err)
	}
	return nil
}

func makeTarget(inside string, dir bool) error {
	if dir {
		return makeDir(inside)
	}
	if err := makeParent(inside); err != nil {
		return err
	}
	return os.WriteFile(base+inside, nil, 0o444)
}

func makeParent(inside string) error { return makeDir(filepath.Dir(inside)) }

func makeDir(inside string) error { return os.MkdirAll(base+inside, 0o755) }
