package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/store"
)

// model is what a store should hold.
type model struct {
	resources map[string]reins.Attachment // by ID, current
	retired   map[string]bool
	purged    map[string]bool
	tokens    map[reins.Token]string // IDs of keys
	revoked   map[string]bool
	changes   int
}

// STO-1, RES-2, RES-5, ATT-2, API-2: whatever comes in whatever order, the store
// says what a small model says, opened anew at any point.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		path, ctx := filepath.Join(sub, "state.db"), t.Context()
		s, err := store.Open(ctx, path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		m := model{map[string]reins.Attachment{}, map[string]bool{}, map[string]bool{}, map[reins.Token]string{}, map[string]bool{}, 0}
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		// Content differs at the same revision too.
		attachments := rapid.Custom(func(t *rapid.T) reins.Attachment {
			a := attached(rapid.Uint64Range(0, 4).Draw(t, "revision"))
			if a.Session != nil && rapid.Bool().Draw(t, "other") {
				a.Session.Native = "other"
			}
			return a
		})
		expect := func(t *rapid.T, err error, want reins.Code) {
			if got := reins.CodeOf(err); got != want {
				t.Fatalf("%v, want %q", err, want)
			}
			if want == "" {
				m.changes++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				id, a := ids.Draw(t, "id"), attachments.Draw(t, "attachment")
				now, there := m.resources[id]
				_, err := s.Register(ctx, "x", reins.Registration{Key: key(id), Attachment: a})
				switch {
				case m.retired[id]:
					expect(t, err, reins.CodeRetired)
				case there && !now.Equal(a):
					expect(t, err, reins.CodeConflict)
				case there:
					expect(t, err, "")
					m.changes--
				default:
					expect(t, err, "")
					m.resources[id] = a
				}
			},
			"attach": func(t *rapid.T) {
				id, a := ids.Draw(t, "id"), attachments.Draw(t, "attachment")
				now, there := m.resources[id]
				err := s.Attach(ctx, "x", key(id), a)
				switch {
				case !there:
					expect(t, err, reins.CodeNotFound)
				case m.retired[id]:
					expect(t, err, reins.CodeRetired)
				case now.Equal(a):
					expect(t, err, "")
					m.changes--
				case a.Revision < now.Revision:
					expect(t, err, reins.CodeStaleRevision)
				case a.Revision == now.Revision:
					expect(t, err, reins.CodeConflict)
				default:
					expect(t, err, "")
					m.resources[id] = a
				}
			},
			"retire": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				err := s.Retire(ctx, "x", key(id))
				switch _, there := m.resources[id]; {
				case !there:
					expect(t, err, reins.CodeNotFound)
				case m.retired[id]:
					expect(t, err, "")
					m.changes--
				default:
					expect(t, err, "")
					m.retired[id] = true
				}
			},
			"purge": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				expect(t, s.Purged(ctx, "x", key(id)), "")
				if !m.retired[id] || m.purged[id] {
					m.changes--
				} else {
					m.purged[id] = true
				}
			},
			"create key": func(t *rapid.T) {
				k, token, err := s.CreateKey(ctx, "x", "p", nil)
				expect(t, err, "")
				m.tokens[token] = k.ID
			},
			"revoke key": func(t *rapid.T) {
				for _, id := range m.tokens { // any one
					again := m.revoked[id]
					expect(t, s.RevokeKey(ctx, "x", id), "")
					if again {
						m.changes--
					}
					m.revoked[id] = true
					return
				}
			},
			"open anew": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				var err error
				if s, err = store.Open(ctx, path, store.Options{}); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) { m.compare(t, s) },
		})
	})
}

func (m *model) compare(t *rapid.T, s *store.Store) {
	live := map[string]reins.Attachment{}
	for id, a := range m.resources {
		if !m.retired[id] {
			live[id] = a
		}
	}
	got, err := s.Resources(t.Context(), "")
	if err != nil || len(got) != len(live) {
		t.Fatalf("%d resources are not retired, not %d: %v", len(got), len(live), err)
	}
	for _, r := range got { // STO-2: never a retired one
		if a, ok := live[r.Key.ID]; !ok || !a.Equal(r.Attachment) {
			t.Fatalf("%s at %+v", r.Key, r.Attachment)
		}
	}
	left, err := s.Unpurged(t.Context())
	if err != nil || len(left) != len(m.retired)-len(m.purged) {
		t.Fatalf("%d retired resources have left something, not %d of %d: %v", len(left), len(m.retired)-len(m.purged), len(m.retired), err)
	}
	hashed, err := s.LiveKeys(t.Context())
	if err != nil || len(hashed) != len(m.tokens)-len(m.revoked) {
		t.Fatalf("%d live keys: %v", len(hashed), err)
	}
	for token, id := range m.tokens {
		k, err := s.FindKey(t.Context(), token)
		if m.revoked[id] != (reins.CodeOf(err) == reins.CodeUnauthorized) || err == nil && k.ID != id {
			t.Fatalf("key %s: %v", id, err)
		}
	}
	trail, err := s.Audit(t.Context(), store.Query{Limit: 10_000})
	if err != nil || len(trail) != m.changes {
		t.Fatalf("%d rows for %d changes: %v", len(trail), m.changes, err)
	}
}

// API-2, CAP-4, MCP-2: what a key is, who made it, and nothing of its secret.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, store.Options{})
	admin, adminToken, err := s.CreateKey(t.Context(), "x", "", nil)
	if err != nil || admin.Project != "" {
		t.Fatal(admin, err)
	}
	b := reins.Binding{
		Project: "p", Resource: "r", AuthorityID: "a", Revision: 3, Session: &reins.Session{Harness: "h", Native: "n"},
		Actor: "agent", Role: reins.RoleAgent, Peer: "chosen", Source: reins.SourceAPI, Run: "run",
	}
	agent, token, err := s.CreateKey(t.Context(), "x", "", &b)
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.FindKey(t.Context(), token)
	want := b
	want.Peer, want.Source = agent.ID, reins.SourceMCP // observed, never sent
	if err != nil || found.Project != "p" || found.Binding == nil || !found.Binding.Equal(want) {
		t.Errorf("%+v %v", found, err)
	}
	if found, err := s.FindKey(t.Context(), adminToken); err != nil || found.Binding != nil || found.ID != admin.ID {
		t.Errorf("%+v %v", found, err)
	}
	_, err = s.FindKey(t.Context(), "")
	code(t, err, reins.CodeUnauthorized)
	_, err = s.FindKey(t.Context(), token+"x")
	code(t, err, reins.CodeUnauthorized)
	_, _, err = s.CreateKey(t.Context(), "x", "q", &b)
	code(t, err, reins.CodeInvalidInput)
	_, _, err = s.CreateKey(t.Context(), "x", "a b", nil)
	code(t, err, reins.CodeInvalidInput)
	code(t, s.RevokeKey(t.Context(), "x", string(token)), reins.CodeNotFound)
	code(t, s.RevokeKey(t.Context(), "x", "key_"+admin.ID[4:len(admin.ID)-1]+"2"), reins.CodeNotFound)
	if all, err := s.Keys(t.Context(), "p"); err != nil || len(all) != 1 || all[0].ID != agent.ID {
		t.Errorf("%+v %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []reins.Token{token, adminToken} {
		if got := string(bytes); len(got) == 0 || strings.Contains(got, string(secret)) || strings.Contains(got, string(secret)[6:]) {
			t.Error("the file holds a secret")
		}
	}
}
