package host

import (
	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// maxLater is how many ends of downloads are kept for a lease that does nothing.
const maxLater = 32

// leaseLocked is the live lease of that ID, or nil.
func (s *state) leaseLocked(id string) *lease {
	for _, g := range s.grants {
		if g.lease != nil && g.lease.id == id {
			return g.lease
		}
	}
	return nil
}

// tellLater keeps how a download ended for the next result of its lease: who has
// only results would never hear of it (ACT-10).
func (r *resource) tellLater(leaseID string, d reins.Download) {
	r.update(func(s *state) {
		l := s.leaseLocked(leaseID)
		if l == nil {
			return
		}
		if l.later = append(l.later, d); len(l.later) > maxLater {
			l.later = l.later[1:]
		}
	})
}

// addLater puts the downloads that ended since the lease's last result into res.
func (op *operation) addLater(res *reins.Result) {
	var later []reins.Download
	op.r.update(func(*state) { later, op.lease.later = op.lease.later, nil })
	if len(later) == 0 {
		return
	}
	if res.Changes == nil {
		res.Changes = &reins.Changes{Settled: true}
	}
	res.Changes.Downloads = append(later, res.Changes.Downloads...)
}

// ended is how a download ended that its action did not wait for.
func ended(e driver.Event) reins.Download {
	switch {
	case e.Download != nil:
		return *e.Download
	case e.Saved != nil:
		return reins.Download{Name: e.Saved.Name, URL: e.Saved.URL, State: "completed"}
	}
	return reins.Download{State: e.Note}
}
