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
	err := s.change(ctx, func(tx *sql.Tx) error { return s.insertKey(ctx, tx, actor, k, binding, token) })
	if err != nil {
		return Key{}, "", err
	}
	return k, token, nil
}

func (s *Store) insertKey(ctx context.Context, tx *sql.Tx, actor string, k Key, binding sql.NullString, token reins.Token) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM keys").Scan(&n); err != nil {
		return err
	}
	if n >= maxKeys {
		return reins.Errorf(reins.CodeQuotaExceeded, "there are %d API keys already, revoked ones with them", n)
	}
	hash := capability.Sum(token)
	if _, err := tx.ExecContext(ctx, "INSERT INTO keys (id, hash, project, binding, created) VALUES (?, ?, ?, ?, ?)",
		k.ID, hash[:], k.Project, binding, k.Created.UnixNano()); err != nil {
		return err
	}
	return s.note(ctx, tx, reins.Record{Project: k.Project, Actor: actor, Action: actionCreateKey, Detail: k.ID})
}

// FirstKey makes an administrator's key when there never was any key. Hand gets its
// token before it is kept, to put it where its owner finds it: a process that ends
// between the two has made none, and the next one makes another.
func (s *Store) FirstKey(ctx context.Context, actor string, hand func(reins.Token) error) (made bool, err error) {
	k := Key{ID: capability.NewID(kindKey), Created: time.Now().UTC()}
	err = s.change(ctx, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM keys").Scan(&n); err != nil || n > 0 {
			return err
		}
		token := capability.NewToken()
		if err := hand(token); err != nil {
			return err
		}
		made = true
		return s.insertKey(ctx, tx, actor, k, sql.NullString{}, token)
	})
	return made && err == nil, err
}

const selectKeys = "SELECT id, hash, project, binding, created, revoked FROM keys "

// HashedKey is a key with the hash of its token.
type HashedKey struct {
	Key
	Hash capability.Hash
}

// FindKey returns the key of a token. Whatever is wrong with it, unknown or
// revoked, the answer is the same unauthorized.
func (s *Store) FindKey(ctx context.Context, t reins.Token) (Key, error) {
	hash := capability.Sum(t)
	all, err := s.readKeys(ctx, selectKeys+"WHERE hash = ? AND revoked IS NULL", hash[:])
	if err != nil {
		return Key{}, err
	}
	if len(all) != 1 || !all[0].Hash.Matches(t) {
		return Key{}, reins.Errorf(reins.CodeUnauthorized, "the key is not valid")
	}
	return all[0].Key, nil
}

// LiveKeys returns the keys that are not revoked: for whoever knows them again by
// their hashes, without asking the disk each time.
func (s *Store) LiveKeys(ctx context.Context) ([]HashedKey, error) {
	return s.readKeys(ctx, selectKeys+"WHERE revoked IS NULL ORDER BY created, id")
}

// Keys lists the keys of a project, or all when it is empty, in the order in which
// they were made, with those that were revoked.
func (s *Store) Keys(ctx context.Context, project string) ([]Key, error) {
	hashed, err := s.readKeys(ctx, selectKeys+"WHERE ? = '' OR project = ? ORDER BY created, id", project, project)
	var all []Key
	for _, k := range hashed {
		all = append(all, k.Key)
	}
	return all, err
}

func (s *Store) readKeys(ctx context.Context, query string, arguments ...any) ([]HashedKey, error) {
	rows, err := s.db.QueryContext(ctx, query, arguments...)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	var all []HashedKey
	for rows.Next() {
		var k HashedKey
		var hash []byte
		var binding sql.NullString
		var created int64
		var revoked sql.NullInt64
		if err := rows.Scan(&k.ID, &hash, &k.Project, &binding, &created, &revoked); err != nil {
			return nil, s.failed(err)
		}
		if len(hash) != len(k.Hash) {
			return nil, s.damaged(errors.New("the hash of a key has another length"))
		}
		k.Hash = capability.Hash(hash)
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
