package host

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// ACT-10, LSE-8: a download that ended after its action is told once, with its
// artifact or why there is none, in the next result of the lease whose action
// began it, and in nobody else's.
func TestLaterDownloadIsTold(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		mine, other := w.lease(t, agentOf(key1, 1)), w.lease(t, agentOf(key1, 1))
		look := func(l *lease) []reins.Download {
			t.Helper()
			res, err := l.Do(ctx0, reins.Call{Action: reins.Snapshot{}})
			if err != nil {
				t.Fatal(err)
			}
			if res.Changes == nil {
				return nil
			}
			return res.Changes.Downloads
		}
		look(mine)
		look(other)
		r.mu.Lock()
		conn := r.st.inc.conn
		r.mu.Unlock()
		if err := os.WriteFile(filepath.Join(conn.inc.room.Downloads().Name(), "guid"), []byte("a,b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		conn.hear(driver.Event{
			Kind: "download", Lease: mine.id, Saved: &driver.Saved{GUID: "guid", Name: "receipt.csv", Size: 4},
			Download: &reins.Download{Name: "receipt.csv", State: "completed"},
		})
		conn.hear(driver.Event{
			Kind: "download", Lease: mine.id, Note: "cancelled",
			Download: &reins.Download{Name: "big.zip", State: "cancelled", Reason: "it is too large"},
		})
		synctest.Wait()
		if got := look(other); len(got) != 0 {
			t.Errorf("another lease is told of %+v", got)
		}
		told := map[string]reins.Download{}
		for _, d := range look(mine) {
			told[d.Name] = d
		}
		if d := told["receipt.csv"]; d.State != "completed" || d.Artifact == nil || d.Artifact.LeaseID != mine.id || d.Artifact.Size != 4 {
			t.Errorf("told %+v", d)
		}
		if d := told["big.zip"]; d.State != "cancelled" || d.Reason != "it is too large" {
			t.Errorf("told %+v", d)
		}
		if got := look(mine); len(got) != 0 {
			t.Errorf("told again: %+v", got)
		}
	})
}
