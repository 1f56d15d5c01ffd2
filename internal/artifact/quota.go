package artifact

import (
	"github.com/reins-browser/reins"
)

// usage is a number of artifacts and their bytes.
type usage struct {
	count int
	bytes int64
}

func (u usage) plus(v usage) usage { return usage{u.count + v.count, u.bytes + v.bytes} }

// ledger is the arithmetic of ART-3: three scopes, two quantities. It decides
// and counts; it is not locked and touches no disk.
type ledger struct {
	limits    reins.Limits
	resources map[reins.ResourceKey]usage
	projects  map[string]usage
	total     usage
}

func newLedger(l reins.Limits) ledger {
	return ledger{limits: l, resources: map[reins.ResourceKey]usage{}, projects: map[string]usage{}}
}

// scope is one of the three that a key is in.
type scope struct {
	name       string
	used       usage
	max        usage
	countLimit string
	bytesLimit string
}

func (l *ledger) scopes(key reins.ResourceKey) [3]scope {
	m := &l.limits
	return [3]scope{
		{"resource " + key.String(), l.resources[key], usage{m.ArtifactsPerResource, m.ArtifactBytesResource},
			"artifacts_per_resource", "artifact_bytes_per_resource"},
		{"project " + key.Project, l.projects[key.Project], usage{m.ArtifactsPerProject, m.ArtifactBytesProject},
			"artifacts_per_project", "artifact_bytes_per_project"},
		{"the runtime", l.total, usage{m.Artifacts, m.ArtifactBytes},
			"artifacts", "artifact_bytes"},
	}
}

// take charges want to all three scopes or to none.
func (l *ledger) take(key reins.ResourceKey, want usage) error {
	for _, s := range l.scopes(key) {
		if want.count > s.max.count-s.used.count {
			return reins.Errorf(reins.CodeQuotaExceeded,
				"%s holds %d artifacts, as many as limit %s allows; delete some first", s.name, s.used.count, s.countLimit).
				In(reins.PhaseArtifact).With("limit", s.countLimit)
		}
		if want.bytes > s.max.bytes-s.used.bytes {
			return reins.Errorf(reins.CodeQuotaExceeded,
				"%s holds %d bytes of artifacts and %d more are above limit %s of %d; delete some first or store less",
				s.name, s.used.bytes, want.bytes, s.bytesLimit, s.max.bytes).
				In(reins.PhaseArtifact).With("limit", s.bytesLimit)
		}
	}
	l.add(key, want)
	return nil
}

// room returns how many bytes could be charged to key now.
func (l *ledger) room(key reins.ResourceKey) int64 {
	scopes := l.scopes(key)
	least := scopes[0].max.bytes - scopes[0].used.bytes
	for _, s := range scopes[1:] {
		least = min(least, s.max.bytes-s.used.bytes)
	}
	return least
}

// give takes back what was charged.
func (l *ledger) give(key reins.ResourceKey, back usage) {
	l.add(key, usage{-back.count, -back.bytes})
}

func (l *ledger) add(key reins.ResourceKey, u usage) {
	l.total = l.total.plus(u)
	if l.resources[key] = l.resources[key].plus(u); l.resources[key] == (usage{}) {
		delete(l.resources, key)
	}
	if l.projects[key.Project] = l.projects[key.Project].plus(u); l.projects[key.Project] == (usage{}) {
		delete(l.projects, key.Project)
	}
}
