package hostdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// losses are the ways in which ownership is lost while running.
var losses = map[string]func(path string) error{
	"directory moved":    func(p string) error { return os.Rename(p, p+".moved") },
	"directory replaced": func(p string) error { return errors.Join(os.Rename(p, p+".moved"), os.Mkdir(p, 0o700)) },
	"mutex moved":        func(p string) error { return os.Rename(filepath.Join(p, mutexName), p+".mutex") },
	"mutex replaced": func(p string) error {
		return errors.Join(os.Rename(filepath.Join(p, mutexName), p+".mutex"), os.Mkdir(filepath.Join(p, mutexName), 0o700))
	},
	"anchor removed": func(p string) error { return os.Remove(anchorPath(p)) },
	"anchor replaced": func(p string) error {
		a := anchorPath(p)
		return errors.Join(os.WriteFile(p+".new", nil, 0o600), os.Rename(p+".new", a))
	},
	"record removed": func(p string) error { return os.Remove(filepath.Join(p, lockName)) },
	"generation moved": func(p string) error {
		return os.Rename(generationPath(p), p+".gen")
	},
}

func waitLost(t *testing.T, d *Dir) {
	t.Helper()
	select {
	case <-d.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody noticed")
	}
}

// OWN-7: a loss is told by the kernel's notice, without waiting for the clock.
func TestLossIsNoticedAtOnce_OWN7(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			d, err := open(t.Context(), path, Options{CheckEvery: time.Hour}, realMachine())
			check(t, err)
			check(t, d.Check())
			if d.Err() != nil {
				t.Fatal(d.Err())
			}
			check(t, lose(path))
			waitLost(t, d)
			wantCode(t, d.Err(), reins.CodeFenced)
			wantCode(t, d.Check(), reins.CodeFenced)
			_, err = d.NewSlot()
			wantCode(t, err, reins.CodeFenced)
			_, err = d.Workspace(t.Context(), "p", "w")
			wantCode(t, err, reins.CodeFenced)
			gen := d.generation.Name()
			if err := d.Close(context.Background()); err != nil { // one more try to clean up
				t.Errorf("close after the loss: %v", err)
			}
			if exists(gen) || exists(filepath.Join(path+".moved", generationsName, filepath.Base(gen))) {
				t.Error("the generation is still there")
			}
		})
	}
}

// OWN-7: what the kernel tells nobody, a folder above that was moved and a
// record that was overwritten in place, the clock finds.
func TestLossIsNoticedByTheClock_OWN7(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"folder above moved": func(p string) error { return os.Rename(filepath.Dir(p), filepath.Dir(p)+".moved") },
		"record overwritten": func(p string) error {
			return rewrite(p, func(r *record) { r.Nonce = "aaaaaaaaaaaaaaaaaaaaaaaaaa"; r.PID = 1 })
		},
		"record garbled": func(p string) error { return os.Truncate(filepath.Join(p, lockName), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "above", "runtime")
			d, err := open(t.Context(), path, Options{CheckEvery: 10 * time.Millisecond}, realMachine())
			check(t, err)
			check(t, lose(path))
			waitLost(t, d)
			wantCode(t, d.Err(), reins.CodeFenced)
			err = d.Close(context.Background())
			switch name {
			case "record garbled": // nobody can tell whose it is: nothing is written, nothing released
				wantCode(t, err, reins.CodeFenced)
				check(t, d.release())
			default:
				check(t, err)
			}
			if name == "record overwritten" {
				f, err := os.Open(filepath.Join(path, lockName))
				check(t, err)
				defer f.Close()
				if r, err := readRecord(f); err != nil || r.State != stateActive || r.PID != 1 {
					t.Errorf("the other owner's record: %+v, %v", r, err)
				}
			}
		})
	}
}

// What happens beside what is ours is no loss.
func TestOtherChangesAreNoLoss_OWN7(t *testing.T) {
	path := newPath(t)
	d, err := open(t.Context(), path, Options{CheckEvery: time.Hour}, realMachine())
	check(t, err)
	for range 50 {
		check(t, os.WriteFile(d.StatePath()+"-journal", nil, 0o600), os.Remove(d.StatePath()+"-journal"),
			os.Chmod(path, 0o700), d.Check())
	}
	select {
	case <-d.Lost():
		t.Errorf("lost: %v", d.Err())
	default:
	}
	mustClose(t, d)
}

func BenchmarkCheck(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "runtime"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := d.Check(); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkOpenClose(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runtime")
	for b.Loop() {
		d, err := Open(b.Context(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
