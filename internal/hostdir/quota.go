package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/disk"
)

// caches are what a browser keeps in a profile only to be faster, by the folder
// that they are in.
var caches = map[string][]string{
	".":       {"Cache", "Code Cache", "GPUCache", "ShaderCache", "GrShaderCache", "GraphiteDawnCache", "component_crx_cache"},
	"Default": {"Cache", "Code Cache", "GPUCache", "DawnGraphiteCache", "DawnWebGPUCache"},
}

// fit refuses a workspace that holds more than bound, when that is not 0: its
// browser would be ended soon after each start (WSP-2). Caches go first. Nobody
// runs on the profile.
func (w *Workspace) fit(ctx context.Context, profile *os.File, bound int64) error {
	if bound == 0 {
		return nil
	}
	held := disk.Usage(ctx, w.Profile)
	if held > bound {
		if err := dropCaches(ctx, profile); err != nil {
			return err
		}
		w.Notes = append(w.Notes, fmt.Sprintf("caches of a browser were removed from profile %q, which held %d bytes", w.Profile, held))
		held = disk.Usage(ctx, w.Profile)
	}
	if err := reins.ContextError(ctx); err != nil {
		return err // the sums are not whole
	}
	if held > bound {
		return reins.Errorf(reins.CodeQuotaExceeded, "the workspace of this browser holds %d bytes, above its bound of %d; raise workspace_bytes, or retire the resources that use it", held, bound).
			Recover(reins.RecoverNone).In(reins.PhaseStart)
	}
	return nil
}

func dropCaches(ctx context.Context, profile *os.File) error {
	for name, list := range caches {
		fd, err := unix.Openat(int(profile.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // no browser made it so: nothing of ours is in it
		}
		folder := os.NewFile(uintptr(fd), filepath.Join(profile.Name(), name))
		for _, each := range list {
			err = errors.Join(err, removeTree(ctx, folder, each))
		}
		if err = errors.Join(err, folder.Close()); err != nil {
			return reins.AsError(err)
		}
	}
	return nil
}
