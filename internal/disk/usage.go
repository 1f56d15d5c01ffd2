package disk

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// MaxEntries is how many files are counted; more are too many by themselves.
const MaxEntries = 1 << 19

// TooMany is what a tree of more than MaxEntries takes: more than any bound.
const TooMany = 1 << 62

// Usage adds up the bytes of all blocks of what is below dir, 0 when there is no
// such folder. What vanishes meanwhile does not count. When ctx ends the sum is of
// what was seen until then.
func Usage(ctx context.Context, dir string) int64 {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer root.Close()
	var sum int64
	entries := 0
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if entries++; entries > MaxEntries {
			sum = TooMany
		}
		if entries > MaxEntries || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil {
			return nil // removed meanwhile
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}
