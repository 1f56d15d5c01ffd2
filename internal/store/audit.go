package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/reins-browser/reins"
)

// Entry is one row of the audit trail. IDs rise and are never used again.
type Entry struct {
	ID     int64        `json:"id"`
	Record reins.Record `json:"record"`
}

// Query names a part of the audit trail.
type Query struct {
	Project  string // empty: all
	Resource string // of the project; empty: all
	After    int64  // only entries with a greater ID
	Limit    int    // 1,000 [1..10,000]
}

// Append keeps records as they come from a runtime's audit hook, in one
// transaction, and lets the oldest rows go beyond the bound. Changes made through
// this package record themselves.
func (s *Store) Append(ctx context.Context, records ...reins.Record) error {
	if len(records) == 0 {
		return nil
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		for _, r := range records {
			if err := s.write(ctx, tx, r); err != nil {
				return err
			}
		}
		return s.trim(ctx, tx)
	})
}

// note records a change of this package in its own transaction.
func (s *Store) note(ctx context.Context, tx *sql.Tx, r reins.Record) error {
	r.Time, r.Outcome = time.Now().UTC(), reins.OutcomeCompleted
	if err := s.write(ctx, tx, r); err != nil {
		return err
	}
	return s.trim(ctx, tx)
}

func (s *Store) write(ctx context.Context, tx *sql.Tx, r reins.Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO audit (project, resource, record) VALUES (?, ?, ?)", r.Project, r.Resource, string(text))
	return err
}

// trim lets go what is beyond the bound. IDs have no gaps but at the old end, so
// that the newest one tells where that is.
func (s *Store) trim(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", s.auditRows)
	return err
}

// Audit returns entries in order, the oldest that match first.
func (s *Store) Audit(ctx context.Context, q Query) ([]Entry, error) {
	if q.Limit == 0 {
		q.Limit = 1000
	}
	if q.Limit < 1 || q.Limit > 10_000 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "limit %d is not within 1 to 10000", q.Limit)
	}
	if q.Resource != "" && q.Project == "" {
		return nil, reins.Errorf(reins.CodeInvalidInput, "resource %.128q needs its project", q.Resource)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, record FROM audit WHERE id > ? AND (? = '' OR project = ?) AND (? = '' OR resource = ?) ORDER BY id LIMIT ?`,
		q.After, q.Project, q.Project, q.Resource, q.Resource, q.Limit)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	var all []Entry
	for rows.Next() {
		var e Entry
		var text string
		if err := rows.Scan(&e.ID, &text); err != nil {
			return nil, s.failed(err)
		}
		if err := json.Unmarshal([]byte(text), &e.Record); err != nil {
			return nil, s.failed(err)
		}
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}
