package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// maxKeys bounds the keys, with those that were revoked.
const maxKeys = 65_536

// kindKey is the prefix of the IDs of keys.
const kindKey capability.Kind = "key"

// Key is an API key without its secret (API-2). Without a project it is an
// administrator's; one with a binding is an agent's, and authenticates as exactly
// that (MCP-2).
type Key struct {
	ID      string         `json:"key"`
	Project string         `json:"project,omitempty"`
	Binding *reins.Binding `json:"binding,omitempty"`
	Created time.Time      `json:"created"`
	Revoked time.Time      `json:"revoked,omitzero"`
}

// CreateKey makes a key for a project, for all when it is empty, or for a binding,
// whose project it then has. The binding's peer is set to the key's ID, and its
// source to mcp: the door observes them. The token is returned here and never
// again; only its hash is kept.
func (s *Store) CreateKey(ctx context.Context, actor, project string, b *reins.Binding) (Key, reins.Token, error) {
	k := Key{ID: capability.NewID(kindKey), Project: project, Created: time.Now().UTC()}
	var binding sql.NullString
	if b != nil {
		bound := *b
		bound.Peer, bound.Source = k.ID, reins.SourceMCP
		if err := bound.Validate(); err != nil {
			return Key{}, "", err
		}
		if project != "" && project != bound.Project {
			return Key{}, "", reins.Errorf(reins.CodeInvalidInput, "the key's project %q is not its binding's, %q", project, bound.Project)
		}
		text, err := json.Marshal(bound)
		if err != nil {
			return Key{}, "", s.failed(err)
		}
		k.Project, k.Binding, binding = bound.Project, &bound, sql.NullString{String: string(text), Valid: true}
	} else if project != "" {
		if err := (reins.ResourceKey{Project: project, ID: "x"}).Validate(); err != nil {
			return Key{}, "", err
		}
	}
	token := capability.NewToken()
	hash := capability.Sum(token)
	err := s.change(ctx, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM keys").Scan(&n); err != nil {
			return err
		}
		if n >= maxKeys {
			return reins.Errorf(reins.CodeQuotaExceeded, "there are %d API keys already, revoked ones with them", n)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO keys (id, hash, project, binding, created) VALUES (?, ?, ?, ?, ?)",
			k.ID, hash[:], k.Project, binding, k.Created.UnixNano()); err != nil {
			return err
		}
		return s.note(ctx, tx, reins.Record{Project: k.Project, Actor: actor, Action: actionCreateKey, Detail: k.ID})
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, token, nil
}

const selectKeys = "SELECT id, hash, project, binding, created, revoked FROM keys "

// FindKey returns the key of a token. Whatever is wrong with it, unknown or
// revoked, the answer is the same unauthorized.
func (s *Store) FindKey(ctx context.Context, t reins.Token) (Key, error) {
	hash := capability.Sum(t)
	all, err := s.readKeys(ctx, selectKeys+"WHERE hash = ? AND revoked IS NULL", t, hash[:])
	if err != nil {
		return Key{}, err
	}
	if len(all) != 1 {
		return Key{}, reins.Errorf(reins.CodeUnauthorized, "the key is not valid")
	}
	return all[0], nil
}

// Keys lists the keys of a project, or all when it is empty, in the order in which
// they were made, with those that were revoked.
func (s *Store) Keys(ctx context.Context, project string) ([]Key, error) {
	return s.readKeys(ctx, selectKeys+"WHERE ? = '' OR project = ? ORDER BY created, id", "", project, project)
}

// readKeys reads keys; where a token is given, those that it is the token of.
func (s *Store) readKeys(ctx context.Context, query string, t reins.Token, arguments ...any) ([]Key, error) {
	rows, err := s.db.QueryContext(ctx, query, arguments...)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	var all []Key
	for rows.Next() {
		var k Key
		var hash []byte
		var binding sql.NullString
		var created int64
		var revoked sql.NullInt64
		if err := rows.Scan(&k.ID, &hash, &k.Project, &binding, &created, &revoked); err != nil {
			return nil, s.failed(err)
		}
		if t != "" && (len(hash) != len(capability.Hash{}) || !capability.Hash(hash).Matches(t)) {
			continue
		}
		if binding.Valid {
			k.Binding = &reins.Binding{}
			if err := json.Unmarshal([]byte(binding.String), k.Binding); err != nil {
				return nil, s.failed(err)
			}
		}
		k.Created = time.Unix(0, created).UTC()
		if revoked.Valid {
			k.Revoked = time.Unix(0, revoked.Int64).UTC()
		}
		all = append(all, k)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// RevokeKey ends a key for good. Again is a success that changes nothing; an
// unknown one is not_found.
func (s *Store) RevokeKey(ctx context.Context, actor, id string) error {
	if !capability.IsID(kindKey, id) { // perhaps the secret: not to be repeated (CAP-4)
		return reins.Errorf(reins.CodeNotFound, "what was given is not the ID of a key; list the keys to see them")
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var project string
		var revoked sql.NullInt64
		err := tx.QueryRowContext(ctx, "SELECT project, revoked FROM keys WHERE id = ?", id).Scan(&project, &revoked)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return reins.Errorf(reins.CodeNotFound, "there is no key %s", id)
		case err != nil || revoked.Valid:
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE keys SET revoked = ? WHERE id = ?", time.Now().UnixNano(), id); err != nil {
			return err
		}
		return s.note(ctx, tx, reins.Record{Project: project, Actor: actor, Action: actionRevokeKey, Detail: id})
	})
}
