package store

import (
	"context"
	"testing"
)

// Pragmas reads how the connection works.
func (s *Store) Pragmas(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"journal_mode", "synchronous", "foreign_keys", "user_version"} {
		var value string
		if err := s.db.QueryRow("PRAGMA " + name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		all[name] = value
	}
	return all
}

// Tables names the tables.
func (s *Store) Tables(t testing.TB) string {
	t.Helper()
	var names string
	if err := s.db.QueryRow("SELECT group_concat(name) FROM sqlite_schema").Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// Migrate runs steps of a test's own.
func (s *Store) Migrate(ctx context.Context, all []string, version int) error {
	return s.migrate(ctx, all, version)
}
