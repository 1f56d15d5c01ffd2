package hostdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// rewrite changes the record of a directory that nobody owns.
func rewrite(path string, change func(*record)) error {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := readRecord(f)
	if err != nil {
		return err
	}
	change(&r)
	return r.write(f, realMachine())
}

func overwrite(name, text string) func(string) error {
	return func(p string) error { return os.WriteFile(filepath.Join(p, name), []byte(text), 0o600) }
}

func replaceWith(name string, make func(path string) error) func(string) error {
	return func(p string) error {
		full := filepath.Join(p, name)
		return errors.Join(os.Rename(full, p+".aside"), make(full))
	}
}

func chmod(name string, mode os.FileMode) func(string) error {
	return func(p string) error { return os.Chmod(filepath.Join(p, name), mode) }
}

func anchorPath(p string) string {
	list, _ := filepath.Glob(filepath.Join(p, mutexName, "anchor-*"))
	return list[0]
}

func generationPath(p string) string {
	list, _ := filepath.Glob(filepath.Join(p, generationsName, "gen_*"))
	return list[0]
}

// oddities are what must fence a start, each named by what is odd and with the
// name of the file that the sentence has to tell.
var oddities = map[string]struct {
	spoil func(path string) error
	names string
}{
	"record readable by others": {chmod(lockName, 0o640), lockName},
	"record executable":         {chmod(lockName, 0o700), lockName},
	"record linked elsewhere": {func(p string) error {
		return os.Link(filepath.Join(p, lockName), p+".link")
	}, lockName},
	"record a link":   {replaceWith(lockName, func(p string) error { return os.Symlink(filepath.Dir(p)+".aside", p) }), lockName},
	"record a folder": {replaceWith(lockName, func(p string) error { return os.Mkdir(p, 0o700) }), lockName},
	"record a pipe":   {replaceWith(lockName, func(p string) error { return unix.Mkfifo(p, 0o600) }), lockName},
	"record garbage":  {overwrite(lockName, "garbage\x00\xff"), lockName},
	"record a number": {overwrite(lockName, "4242\n"), lockName},
	"record null":     {overwrite(lockName, "null"), lockName},
	"record too long": {overwrite(lockName, strings.Repeat(" ", recordSize+1)), lockName},
	"record cut":      {func(p string) error { return os.Truncate(filepath.Join(p, lockName), 100) }, lockName},
	"record with more": {func(p string) error {
		b, err := os.ReadFile(filepath.Join(p, lockName))
		copy(b[len(b)-10:], "{}")
		return errors.Join(err, os.WriteFile(filepath.Join(p, lockName), b, 0o600))
	}, lockName},
	"record with another field": {func(p string) error {
		b, err := os.ReadFile(filepath.Join(p, lockName))
		b = bytes.Replace(b, []byte("{"), []byte(`{"extra":1,`), 1)
		return errors.Join(err, os.WriteFile(filepath.Join(p, lockName), b[:recordSize], 0o600))
	}, lockName},
	"another schema":       {func(p string) error { return rewrite(p, func(r *record) { r.Schema = 2 }) }, lockName},
	"another state":        {func(p string) error { return rewrite(p, func(r *record) { r.State = "gone" }) }, lockName},
	"another device":       {func(p string) error { return rewrite(p, func(r *record) { r.Device++ }) }, lockName},
	"another inode":        {func(p string) error { return rewrite(p, func(r *record) { r.Inode++ }) }, lockName},
	"another user":         {func(p string) error { return rewrite(p, func(r *record) { r.UID++ }) }, lockName},
	"another anchor":       {func(p string) error { return rewrite(p, func(r *record) { r.Anchor++ }) }, lockName},
	"another path":         {func(p string) error { return rewrite(p, func(r *record) { r.Path = strings.Repeat("0", 64) }) }, lockName},
	"no boot":              {func(p string) error { return rewrite(p, func(r *record) { r.BootID = "" }) }, lockName},
	"no nonce":             {func(p string) error { return rewrite(p, func(r *record) { r.Nonce = "" }) }, lockName},
	"no process":           {func(p string) error { return rewrite(p, func(r *record) { r.PID = 0 }) }, lockName},
	"generation a path":    {func(p string) error { return rewrite(p, func(r *record) { r.Generation = "../../../x" }) }, lockName},
	"generation elsewhere": {func(p string) error { return rewrite(p, func(r *record) { r.Generation = newGeneration() }) }, generationsName},

	"mutex open to others": {chmod(mutexName, 0o755), mutexName},
	"mutex gone":           {func(p string) error { return os.RemoveAll(filepath.Join(p, mutexName)) }, mutexName},
	"mutex a link":         {replaceWith(mutexName, func(p string) error { return os.Symlink(filepath.Dir(p)+".aside", p) }), mutexName},
	"mutex a file":         {replaceWith(mutexName, func(p string) error { return os.WriteFile(p, nil, 0o600) }), mutexName},
	"second anchor":        {overwrite(mutexName+"/anchor-1-2-3-4", ""), mutexName},
	"anchor gone":          {func(p string) error { return os.Remove(anchorPath(p)) }, mutexName},
	"anchor renamed": {func(p string) error {
		return os.Rename(anchorPath(p), filepath.Join(p, mutexName, "anchor"))
	}, mutexName},
	"anchor replaced": {func(p string) error {
		a := anchorPath(p)
		return errors.Join(os.Rename(a, p+".aside"), os.WriteFile(a, nil, 0o600))
	}, lockName},
	"anchor open to others":   {func(p string) error { return os.Chmod(anchorPath(p), 0o644) }, mutexName},
	"anchor linked elsewhere": {func(p string) error { return os.Link(anchorPath(p), p+".link") }, mutexName},
	"anchor with content":     {func(p string) error { return os.WriteFile(anchorPath(p), []byte("x"), 0o600) }, mutexName},
	"anchor a pipe": {func(p string) error {
		a := anchorPath(p)
		return errors.Join(os.Remove(a), unix.Mkfifo(a, 0o600))
	}, mutexName},

	"generations open to others": {chmod(generationsName, 0o711), generationsName},
	"generations a link": {replaceWith(generationsName, func(p string) error {
		return os.Symlink(filepath.Dir(p)+".aside", p)
	}), generationsName},
	"generations a file": {replaceWith(generationsName, func(p string) error { return os.WriteFile(p, nil, 0o600) }), generationsName},
	"unknown generation": {func(p string) error {
		return os.Mkdir(filepath.Join(p, generationsName, newGeneration()), 0o700)
	}, generationsName},
	"something among generations": {overwrite(generationsName+"/.hidden", ""), generationsName},
	"generation open to others":   {func(p string) error { return os.Chmod(generationPath(p), 0o755) }, generationsName},
	"generation a link": {func(p string) error {
		g := generationPath(p)
		return errors.Join(os.Rename(g, p+".aside"), os.Symlink(p+".aside", g))
	}, generationsName},
	"profiles of an older program beside a record": {func(p string) error {
		return os.Mkdir(filepath.Join(p, profilesName), 0o700)
	}, profilesName},
}

// DIR-3, OWN-3: anything odd fences the start, which names the file and a way
// out and changes nothing, not even a time.
func TestAnythingOddFencesAndChangesNothing_DIR3_OWN3(t *testing.T) {
	for name, o := range oddities {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			abandoned(t, path)
			check(t, o.spoil(path))
			before := picture(t, filepath.Dir(path))
			_, err := Open(t.Context(), path, Options{})
			wantCode(t, err, reins.CodeFenced)
			e := reins.AsError(err)
			if !strings.Contains(e.Message, filepath.Join(path, o.names)) || e.Recovery != reins.RecoverFixHost {
				t.Errorf("the sentence does not name %s: %s", o.names, e.Message)
			}
			samePicture(t, before, picture(t, filepath.Dir(path)))
		})
	}
}

// OWN-1: a directory that was moved or copied is not taken for the one it was.
func TestAMovedOrCopiedDirectoryIsFenced_OWN1(t *testing.T) {
	path := newPath(t)
	abandoned(t, path)
	check(t, os.CopyFS(path+"2", os.DirFS(path)))
	for _, f := range append(entries(t, path+"2/"+mutexName), "") {
		check(t, os.Chmod(filepath.Join(path+"2", mutexName, f), map[bool]os.FileMode{true: 0o700, false: 0o600}[f == ""]))
	}
	check(t, os.Chmod(path+"2", 0o700), os.Rename(path, path+"3"))
	for _, p := range []string{path + "2", path + "3"} {
		_, err := Open(t.Context(), p, Options{})
		wantCode(t, err, reins.CodeFenced)
		if !strings.Contains(err.Error(), "moved or copied") {
			t.Error(err)
		}
	}
	check(t, os.Rename(path+"3", path))
	mustOpen(t, path, realMachine()) // back in its place it is itself again
}

// B078: a record that names some other live program means nothing; the kernel
// lock decides.
func TestANumberInTheRecordIsNotBelieved_B078(t *testing.T) {
	path := newPath(t)
	old := abandoned(t, path)
	check(t, rewrite(path, func(r *record) { r.PID = os.Getppid() }))
	d := mustOpen(t, path, realMachine())
	if exists(filepath.Join(path, generationsName, old.Generation)) {
		t.Error("the old generation is still there")
	}
	if len(d.Notes()) != 1 || !strings.Contains(d.Notes()[0], old.Generation) {
		t.Errorf("notes: %v", d.Notes())
	}
}

func FuzzParseRecord(f *testing.F) {
	good := record{Schema: 1, Device: 1 << 63, Inode: 2, Path: strings.Repeat("a", 64), BootID: "b", PID: 1, Ticks: 3,
		Generation: newGeneration(), Nonce: strings.Repeat("n", 26), State: stateActive}
	b, err := good.encode()
	if err != nil || len(b) != recordSize {
		f.Fatal(len(b), err)
	}
	f.Add(b)
	for _, s := range []string{"", "{}", "null", "[]", "{", `{"schema":1e400}`, `{"schema":1,"schema":2}`, strings.Repeat("[", 2000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, what := parseRecord(b)
		if what != "" {
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatalf("accepted what cannot be written: %v", err)
		}
		if back, what := parseRecord(again); what != "" || back != r {
			t.Fatalf("%+v comes back as %+v: %s", r, back, what)
		}
		if strings.ContainsAny(r.Generation, "/.\x00") || !json.Valid(again) {
			t.Fatalf("accepted %+v", r)
		}
	})
}
