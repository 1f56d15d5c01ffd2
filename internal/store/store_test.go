package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/store"
)

// TestMain is also the writer that TestKilledWriter kills.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[0] == "store-writer" {
		if err := write(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, path string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(id string) reins.ResourceKey { return reins.ResourceKey{Project: "p", ID: id} }

func attached(revision uint64) reins.Attachment {
	if revision == 0 {
		return reins.Attachment{}
	}
	return reins.Attachment{AuthorityID: "a", Revision: revision, Session: &reins.Session{Harness: "h", Native: "n"}}
}

func code(t testing.TB, err error, want reins.Code) {
	t.Helper()
	if got := reins.CodeOf(err); got != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// write registers, attaches and retires, and says so as each was acknowledged.
func write(path, round string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	for n := 0; ; n++ {
		k := key(fmt.Sprintf("r%s-%d", round, n))
		if _, err := s.Register(ctx, "writer", reins.Registration{Key: k, Attachment: attached(1)}); err != nil {
			return err
		}
		fmt.Println("registered", k.ID)
		if err := s.Attach(ctx, "writer", k, attached(2)); err != nil {
			return err
		}
		fmt.Println("attached", k.ID)
		if n%2 == 0 {
			if err := s.Retire(ctx, "writer", k); err != nil {
				return err
			}
			fmt.Println("retired", k.ID)
		}
	}
}

// STO-3: a writer that is killed at any instant, again and again, has lost nothing
// that it acknowledged, left nothing half, and revives nothing that is retired.
func TestKilledWriter(t *testing.T) {
	const rounds = 120
	path := filepath.Join(t.TempDir(), "state.db")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]string{} // ID: the last word about it
	for round := range rounds {
		cmd := exec.Command(program)
		cmd.Args = []string{"store-writer", path, fmt.Sprint(round)}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		left := rand.IntN(12) // 0: before or while it opens the file, after which it may say more
		for ; left > 0 && lines.Scan(); left-- {
			take(acknowledged, lines.Text())
		}
		if left > 0 {
			t.Fatalf("round %d: the writer ended by itself", round)
		}
		_ = cmd.Process.Kill()
		for lines.Scan() { // what it still said before it died
			take(acknowledged, lines.Text())
		}
		_ = cmd.Wait()
		check(t, path, round, acknowledged)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d resources", rounds, len(acknowledged))
}

// take notes what a whole line acknowledges.
func take(acknowledged map[string]string, line string) {
	if word, id, ok := strings.Cut(line, " "); ok {
		acknowledged[id] = word
	}
}

// steps counts what was done to a resource, by the last word about it.
var wordSteps = map[string]int{"registered": 1, "attached": 2, "retired": 3}

func check(t *testing.T, path string, round int, acknowledged map[string]string) {
	t.Helper()
	s := open(t, path, store.Options{})
	defer s.Close()
	audited := map[string]int{}
	after := int64(0)
	for {
		entries, err := s.Audit(t.Context(), store.Query{After: after, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			if e.ID != after+1 {
				t.Fatalf("round %d: the audit trail goes from %d to %d", round, after, e.ID)
			}
			after = e.ID
			audited[e.Record.Resource]++
		}
	}
	unsaid := 0
	for id, done := range audited {
		got := 1
		switch r, err := s.Resource(t.Context(), key(id)); {
		case reins.CodeOf(err) == reins.CodeRetired:
			got = 3
		case err != nil:
			t.Fatalf("round %d: %s: %v", round, id, err)
		case r.Attachment.Revision == 2:
			got = 2
		}
		said := wordSteps[acknowledged[id]]
		if got != done || got < said {
			t.Errorf("round %d: %s is at step %d, audited %d, acknowledged %d", round, id, got, done, said)
		}
		if got > said {
			unsaid++
			acknowledged[id] = map[int]string{1: "registered", 2: "attached", 3: "retired"}[got] // it is there now
		}
	}
	if unsaid > 1 {
		t.Errorf("round %d: %d changes were not acknowledged, one writer makes one at a time", round, unsaid)
	}
	for id := range acknowledged {
		if audited[id] == 0 {
			t.Errorf("round %d: %s was acknowledged and is not there", round, id)
		}
	}
}

// STO-1: write-ahead log, written through, keys between tables checked.
func TestDurability(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, store.Options{})
	defer s.Close()
	got := s.Pragmas(t)
	if want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "user_version": "2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if _, err := s.Register(t.Context(), "x", reins.Registration{Key: key("a")}); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", suffix, info, err)
		}
	}
}

// STO-1: a file that is damaged, a stranger's or a newer program's is refused with
// the way out, and not changed.
func TestRefusedFiles(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	s := open(t, good, store.Options{})
	for n := range 50 {
		if _, err := s.Register(t.Context(), "x", reins.Registration{Key: key(fmt.Sprint(n))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	command := func(query string) func(string) error {
		return func(path string) error {
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				return err
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			_, err = db.Exec(query)
			return errors.Join(err, db.Close())
		}
	}
	spoiled := func(spoil func([]byte) []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, spoil([]byte(string(whole))), 0o600) }
	}
	for name, c := range map[string]struct {
		make func(string) error
		want reins.Code
	}{
		"no database":        {spoiled(func([]byte) []byte { return []byte(strings.Repeat("not a database ", 100)) }), reins.CodeCorrupt},
		"cut short":          {spoiled(func(b []byte) []byte { return b[:len(b)/2] }), reins.CodeCorrupt},
		"overwritten inside": {spoiled(func(b []byte) []byte { copy(b[4096:], strings.Repeat("\xff", len(b)-4096)); return b }), reins.CodeCorrupt},
		"a newer schema":     {command("PRAGMA user_version = 99"), reins.CodeFenced},
		"another program's":  {command("PRAGMA application_id = 7"), reins.CodeFenced},
		"readable by others": {func(p string) error { return errors.Join(os.WriteFile(p, whole, 0o600), os.Chmod(p, 0o644)) }, reins.CodeFenced},
		"a link":             {func(p string) error { return os.Symlink(good, p) }, reins.CodeFenced},
		"a second name":      {func(p string) error { return os.Link(good, p) }, reins.CodeFenced},
		"a directory":        {func(p string) error { return os.Mkdir(p, 0o700) }, reins.CodeFenced},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path) // none of a directory
			s, err := store.Open(t.Context(), path, store.Options{})
			if err == nil {
				_ = s.Close()
			}
			code(t, err, c.want)
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("it was changed")
			}
			if name == "a second name" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if s, err := store.Open(t.Context(), good, store.Options{}); err != nil {
		t.Error(err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, err = store.Open(t.Context(), "state.db", store.Options{})
	code(t, err, reins.CodeInvalidInput)
	_, err = store.Open(t.Context(), good, store.Options{AuditRows: -1})
	code(t, err, reins.CodeInvalidInput)
}

// A step that fails leaves the file as it was; the steps before it stay.
func TestMigrationIsWholeOrNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, store.Options{})
	defer s.Close()
	err := s.Migrate(t.Context(), []string{"", "", "CREATE TABLE second (x)", "CREATE TABLE third (x); CREATE TABLE second (x)"}, 2)
	if err == nil {
		t.Fatal("a step that fails succeeded")
	}
	if got := s.Pragmas(t)["user_version"]; got != "3" {
		t.Errorf("version %s", got)
	}
	if tables := s.Tables(t); !strings.Contains(tables, "second") || strings.Contains(tables, "third") {
		t.Errorf("tables %s", tables)
	}
}

// A change whose caller left before it is not there, and the next one is.
func TestCancelledChange(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"), store.Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Register(ctx, "x", reins.Registration{Key: key("a")})
	code(t, err, reins.CodeCancelled)
	_, err = s.Resource(t.Context(), key("a"))
	code(t, err, reins.CodeNotFound)
	if _, err := s.Register(t.Context(), "x", reins.Registration{Key: key("a")}); err != nil {
		t.Error(err)
	}
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if all, err := s.Resources(late, "p"); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

// The trail keeps its newest rows, in order, whoever writes them.
func TestAuditIsBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"), store.Options{AuditRows: 10})
	defer s.Close()
	for n := range 7 {
		if err := s.Append(t.Context(), reins.Record{Project: "p", Resource: "r", Action: fmt.Sprint(n)}, reins.Record{Project: "q", Action: "other"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Register(t.Context(), "ann", reins.Registration{Key: key("r")}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Audit(t.Context(), store.Query{})
	if err != nil || len(all) != 10 || all[0].ID != 6 || all[9].ID != 15 || all[9].Record.Actor != "ann" {
		t.Errorf("%d entries %v", len(all), err)
	}
	part, err := s.Audit(t.Context(), store.Query{Project: "p", Resource: "r", After: 10, Limit: 2})
	if err != nil || len(part) != 2 || part[0].Record.Action != "5" || part[1].Record.Action != "6" {
		t.Errorf("%+v %v", part, err)
	}
	for _, q := range []store.Query{{Limit: -1}, {Limit: 10_001}, {Resource: "r"}} {
		_, err := s.Audit(t.Context(), q)
		code(t, err, reins.CodeInvalidInput)
	}
}
