package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/reins-browser/reins"
)

// Options set up a store. The zero value is the default.
type Options struct {
	// AuditRows is how many rows the audit trail keeps; 1,000,000
	// [1..100,000,000].
	AuditRows int64
}

// Store is the truth in one file. Close it.
type Store struct {
	db        *sql.DB
	path      string
	auditRows int64
}

// applicationID marks the file as this program's: "Rein".
const applicationID = 0x5265696e

//go:embed schema/*.sql
var schemas embed.FS

// steps are the migrations in order; the version of a file is how many it has had.
func steps() ([]string, error) {
	entries, err := schemas.ReadDir("schema")
	if err != nil {
		return nil, err
	}
	var all []string
	for n := range entries {
		b, err := schemas.ReadFile(fmt.Sprintf("schema/%d.sql", n+1))
		if err != nil {
			return nil, err
		}
		all = append(all, string(b))
	}
	return all, nil
}

// Open opens the file at path, an absolute path in a directory that only this
// user can change, and makes it when it is missing. A file that is not this
// user's, 0600 and without other names, that another or a newer program made, is
// fenced; a damaged one is corrupt. Neither is changed.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.AuditRows == 0 {
		o.AuditRows = 1_000_000
	}
	if o.AuditRows < 1 || o.AuditRows > 100_000_000 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "AuditRows is %d; use 1 to 100000000", o.AuditRows)
	}
	if !filepath.IsAbs(path) {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the store's path %q is not absolute", path)
	}
	if err := claim(path); err != nil {
		return nil, err
	}
	s := &Store{path: path, auditRows: o.AuditRows}
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "foreign_keys(1)", "synchronous(FULL)", "trusted_schema(0)",
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, s.failed(err)
	}
	// One connection: SQLite has one writer, and a reader sees what was written.
	db.SetMaxOpenConns(1)
	s.db = db
	if err := s.prepare(ctx); err != nil {
		_ = db.Close() // the reason is err
		return nil, err
	}
	return s, nil
}

// claim makes the file private, or checks that it is (DIR-3).
func claim(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return reins.Errorf(reins.CodeFenced, "the store %s cannot be opened; it has to be a file of this user in a directory of its own: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return reins.Errorf(reins.CodeFenced, "the store %s cannot be examined: %w", path, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		return reins.Errorf(reins.CodeFenced, "the store %s is not a file of mode 0600 with one name that belongs to this user; see who changed it, then put that right", path)
	}
	return nil
}

// prepare checks whose file it is, that it is whole, and brings it up to date.
func (s *Store) prepare(ctx context.Context) error {
	all, err := steps()
	if err != nil {
		return s.failed(err)
	}
	var application, version, tables int
	for query, to := range map[string]*int{
		"PRAGMA application_id": &application, "PRAGMA user_version": &version,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		if err := s.db.QueryRowContext(ctx, query).Scan(to); err != nil {
			return s.failed(err)
		}
	}
	empty := application == 0 && version == 0 && tables == 0
	switch {
	case !empty && application != applicationID:
		return reins.Errorf(reins.CodeFenced, "the store %s is another program's; name another directory", s.path)
	case version > len(all):
		return reins.Errorf(reins.CodeFenced, "the store %s has schema %d of a newer Reins, and this one knows %d; use the newer one, or a copy from before", s.path, version, len(all))
	}
	var verdict string
	if err := s.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return s.failed(err)
	}
	if verdict != "ok" {
		return s.damaged(errors.New(verdict))
	}
	var mode string
	if err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode(WAL)").Scan(&mode); err != nil {
		return s.failed(err)
	}
	if mode != "wal" {
		return reins.Errorf(reins.CodeFenced, "the store %s cannot have a write-ahead log on this file system; use a local one", s.path)
	}
	return s.migrate(ctx, all, version)
}

// migrate runs the steps that the file has not had, each whole or not at all.
func (s *Store) migrate(ctx context.Context, all []string, version int) error {
	for n := version; n < len(all); n++ {
		err := s.change(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, all[n]); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, n+1))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the use of the file; what was acknowledged is in it.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return s.failed(err)
	}
	return nil
}

// change runs one transaction. It has taken effect, durably, exactly when change
// returns nil; where the commit itself failed or ctx ended during it, that is not
// known, and the error is completion_unknown.
func (s *Store) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // the reason is err
		return s.failed(err)
	}
	err = tx.Commit()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return s.failed(errors.Join(ctx.Err(), err)) // rolled back with its context
	}
	return reins.Errorf(reins.CodeCompletionUnknown, "the store %s did not confirm a change; read it again before repeating it: %w", s.path, err)
}

func (s *Store) damaged(cause error) *reins.Error {
	return reins.Errorf(reins.CodeCorrupt, "the store %s is damaged; stop, keep a copy of it with its -wal file, and put back the last good one", s.path).Because(cause)
}

// failed gives what SQLite says one of the codes.
func (s *Store) failed(err error) error {
	var ours *reins.Error
	if errors.As(err, &ours) {
		return ours
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return reins.AsError(err)
	}
	if errors.Is(err, sql.ErrTxDone) { // the context of a transaction ends it
		return reins.Errorf(reins.CodeCancelled, "the call was cancelled by its caller").Because(err)
	}
	var theirs *sqlite.Error
	if !errors.As(err, &theirs) {
		return reins.Errorf(reins.CodeInternal, "the store %s failed: %w", s.path, err)
	}
	switch theirs.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return s.damaged(err)
	case sqlite3.SQLITE_FULL:
		return reins.Errorf(reins.CodeQuotaExceeded, "the disk of the store %s is full; make room: %w", s.path, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return reins.Errorf(reins.CodeBusy, "another program uses the store %s; end it: %w", s.path, err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return reins.Errorf(reins.CodeFenced, "the store %s cannot be written; see to its owner and file system: %w", s.path, err)
	case sqlite3.SQLITE_INTERRUPT:
		return reins.Errorf(reins.CodeCancelled, "the call was cancelled by its caller").Because(err)
	}
	return reins.Errorf(reins.CodeInternal, "the store %s failed: %w", s.path, err)
}
