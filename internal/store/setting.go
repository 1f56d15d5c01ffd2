package store

import (
	"context"
	"database/sql"
	"errors"
)

// Setting returns the value kept under a name; the first time, what first makes is
// kept and returned.
func (s *Store) Setting(ctx context.Context, name string, first func() string) (value string, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = ?", name).Scan(&value)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		value = first()
		_, err = tx.ExecContext(ctx, "INSERT INTO settings (name, value) VALUES (?, ?)", name, value)
		return err
	})
	return value, err
}
