package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/reins-browser/reins"
)

// The changes that this package records in the audit trail.
const (
	actionRegister  = "register"
	actionAttach    = "attach"
	actionRetire    = "retire"
	actionPurge     = "purge"
	actionCreateKey = "createKey"
	actionRevokeKey = "revokeKey"
)

// Register keeps a registration, made by an actor for the audit trail, and returns
// what is kept. The same again returns what there is and changes nothing; anything
// different at its key is conflict (RES-2), a retired key is retired (RES-5). The
// key is complete: making IDs is the runtime's.
func (s *Store) Register(ctx context.Context, actor string, r reins.Registration) (reins.Registration, error) {
	none := reins.Registration{}
	spec, err := r.Spec.WithDefaults()
	if err == nil {
		err = errors.Join(r.Key.Validate(), checkAttachment(r.Attachment))
	}
	if err != nil {
		return none, reins.AsError(err)
	}
	r.Spec = spec
	text, err := json.Marshal(spec)
	if err != nil {
		return none, s.failed(err)
	}
	kept := r
	err = s.change(ctx, func(tx *sql.Tx) error {
		switch there, err := s.find(ctx, tx, r.Key); {
		case err == nil:
			was, err := json.Marshal(there.Spec)
			if err != nil {
				return err
			}
			if string(was) != string(text) || !there.Attachment.Equal(r.Attachment) {
				return reins.Errorf(reins.CodeConflict, "resource %s is registered with another attachment or spec; use another ID", r.Key)
			}
			kept = there
			return nil
		case reins.CodeOf(err) != reins.CodeNotFound:
			return err
		}
		kept.Created = time.Now().UTC()
		if _, err := tx.ExecContext(ctx, "INSERT INTO resources (project, id, spec, created) VALUES (?, ?, ?, ?)",
			r.Key.Project, r.Key.ID, string(text), kept.Created.UnixNano()); err != nil {
			return err
		}
		harness, native := columns(r.Attachment.Session)
		if _, err := tx.ExecContext(ctx, "INSERT INTO attachments (project, resource, revision, authority, harness, native) VALUES (?, ?, ?, ?, ?, ?)",
			r.Key.Project, r.Key.ID, int64(r.Attachment.Revision), r.Attachment.AuthorityID, harness, native); err != nil {
			return err
		}
		return s.note(ctx, tx, reins.Record{Project: r.Key.Project, Resource: r.Key.ID, Actor: actor, Action: actionRegister, Revision: r.Attachment.Revision})
	})
	if err != nil {
		return none, err
	}
	return kept, nil
}

// checkAttachment is the vocabulary's check, and that SQLite can hold it.
func checkAttachment(a reins.Attachment) error {
	if a.Revision > math.MaxInt64 {
		return reins.Errorf(reins.CodeInvalidInput, "revision %d is above %d", a.Revision, int64(math.MaxInt64))
	}
	return a.Validate()
}

func columns(s *reins.Session) (harness, native sql.NullString) {
	if s == nil {
		return harness, native
	}
	return sql.NullString{String: s.Harness, Valid: true}, sql.NullString{String: s.Native, Valid: true}
}

// Attach keeps a newer attachment. The current one again is a success that changes
// nothing; an older revision is stale_revision, another content at the same one
// conflict, both naming the current one (ATT-2).
func (s *Store) Attach(ctx context.Context, actor string, key reins.ResourceKey, a reins.Attachment) error {
	if err := errors.Join(key.Validate(), checkAttachment(a)); err != nil {
		return reins.AsError(err)
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		there, err := s.find(ctx, tx, key)
		if err != nil {
			return err
		}
		now := there.Attachment
		switch {
		case a.Equal(now):
			return nil
		case a.Revision < now.Revision:
			return reins.Errorf(reins.CodeStaleRevision, "revision %d of resource %s is older than the current one, %d", a.Revision, key, now.Revision).With("revision", now.Revision)
		case a.Revision == now.Revision:
			return reins.Errorf(reins.CodeConflict, "resource %s has another attachment at revision %d; use a newer one", key, now.Revision).With("revision", now.Revision)
		}
		harness, native := columns(a.Session)
		res, err := tx.ExecContext(ctx, "UPDATE attachments SET revision = ?, authority = ?, harness = ?, native = ? WHERE project = ? AND resource = ? AND revision = ?",
			int64(a.Revision), a.AuthorityID, harness, native, key.Project, key.ID, int64(now.Revision))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, errors.New("the attachment changed under its transaction"))
		}
		return s.note(ctx, tx, reins.Record{Project: key.Project, Resource: key.ID, Actor: actor, Action: actionAttach, Revision: a.Revision})
	})
}

// Retire ends a resource for good (RES-5). Again is a success that changes nothing.
// What it left behind is to be removed then, and [Store.Purged] to be called.
func (s *Store) Retire(ctx context.Context, actor string, key reins.ResourceKey) error {
	if err := key.Validate(); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		switch _, err := s.find(ctx, tx, key); {
		case reins.CodeOf(err) == reins.CodeRetired:
			return nil
		case err != nil:
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO retirements (project, resource, at) VALUES (?, ?, ?)", key.Project, key.ID, time.Now().UnixNano()); err != nil {
			return err
		}
		return s.note(ctx, tx, reins.Record{Project: key.Project, Resource: key.ID, Actor: actor, Action: actionRetire})
	})
}

// Purged keeps that nothing of a retired resource is left. Again, or of one that is
// not retired, changes nothing.
func (s *Store) Purged(ctx context.Context, actor string, key reins.ResourceKey) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE retirements SET purged = ? WHERE project = ? AND resource = ? AND purged IS NULL", time.Now().UnixNano(), key.Project, key.ID)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return s.note(ctx, tx, reins.Record{Project: key.Project, Resource: key.ID, Actor: actor, Action: actionPurge})
	})
}

// Unpurged returns what is retired and has left something behind, or may have: what
// a start has to finish.
func (s *Store) Unpurged(ctx context.Context) ([]reins.Registration, error) {
	all, _, err := read(ctx, s.db, selectUnpurged)
	if err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// Projects lists the projects that have a resource which is not retired, in order.
func (s *Store) Projects(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT r.project FROM resources r
		LEFT JOIN retirements t ON t.project = r.project AND t.resource = r.id WHERE t.at IS NULL ORDER BY r.project`)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			return nil, s.failed(err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// Resource returns what is kept of a key: not_found or retired where there is none
// any more.
func (s *Store) Resource(ctx context.Context, key reins.ResourceKey) (reins.Registration, error) {
	r, err := s.find(ctx, s.db, key)
	if err != nil {
		return r, s.failed(err)
	}
	return r, nil
}

// selectResources lacks its condition.
const selectResources = `SELECT r.project, r.id, r.spec, r.created, a.revision, a.authority, a.harness, a.native, t.at
	FROM resources r JOIN attachments a ON a.project = r.project AND a.resource = r.id
	LEFT JOIN retirements t ON t.project = r.project AND t.resource = r.id `

// selectUnpurged reads retired resources as if they were not.
const selectUnpurged = `SELECT r.project, r.id, r.spec, r.created, a.revision, a.authority, a.harness, a.native, NULL
	FROM resources r JOIN attachments a ON a.project = r.project AND a.resource = r.id
	JOIN retirements t ON t.project = r.project AND t.resource = r.id
	WHERE t.purged IS NULL ORDER BY r.project, r.id`

// asked is what reads: the database, or a transaction.
type asked interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func (s *Store) find(ctx context.Context, from asked, key reins.ResourceKey) (reins.Registration, error) {
	all, retired, err := read(ctx, from, selectResources+"WHERE r.project = ? AND r.id = ?", key.Project, key.ID)
	switch {
	case err != nil:
		return reins.Registration{}, err
	case retired > 0:
		return reins.Registration{}, reins.Errorf(reins.CodeRetired, "resource %s is retired; register another ID", key)
	case len(all) == 0:
		return reins.Registration{}, reins.Errorf(reins.CodeNotFound, "no resource %s is registered", key)
	}
	return all[0], nil
}

// Resources returns what is not retired of a project, or of all when it is empty,
// ordered by key: what a start registers (STO-2).
func (s *Store) Resources(ctx context.Context, project string) ([]reins.Registration, error) {
	all, _, err := read(ctx, s.db, selectResources+"WHERE t.at IS NULL AND (? = '' OR r.project = ?) ORDER BY r.project, r.id", project, project)
	if err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// read returns the registrations that are not retired, and counts those that are.
func read(ctx context.Context, from asked, query string, arguments ...any) (all []reins.Registration, retired int, err error) {
	rows, err := from.QueryContext(ctx, query, arguments...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var r reins.Registration
		var spec string
		var created, revision int64
		var harness, native sql.NullString
		var at sql.NullInt64
		if err := rows.Scan(&r.Key.Project, &r.Key.ID, &spec, &created, &revision, &r.Attachment.AuthorityID, &harness, &native, &at); err != nil {
			return nil, 0, err
		}
		if at.Valid {
			retired++
			continue
		}
		if err := json.Unmarshal([]byte(spec), &r.Spec); err != nil {
			return nil, 0, err
		}
		r.Created, r.Attachment.Revision = time.Unix(0, created).UTC(), uint64(revision)
		if harness.Valid {
			r.Attachment.Session = &reins.Session{Harness: harness.String, Native: native.String}
		}
		all = append(all, r)
	}
	return all, retired, rows.Err()
}
