package artifact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/reins-browser/reins"
)

func benchStore(b *testing.B) *Store {
	path := filepath.Join(b.TempDir(), "artifacts")
	if err := os.Mkdir(path, 0o700); err != nil {
		b.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(s.Close(context.Background()), dir.Close()) })
	return s
}

// A screenshot of ordinary size, durable, and its removal.
func BenchmarkPutDelete(b *testing.B) {
	s, body := benchStore(b), noise(1, 200<<10)
	for b.Loop() {
		a, err := s.Put(b.Context(), shot(key), bytes.NewReader(body), int64(len(body)))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Delete(b.Context(), Access{Key: key}, a.ID); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s, body := benchStore(b), noise(1, 16<<20)
	a, err := s.Put(b.Context(), shot(reins.ResourceKey{Project: "p", ID: "r"}), bytes.NewReader(body), 0)
	if err != nil {
		b.Fatal(err)
	}
	acc := Access{Key: reins.ResourceKey{Project: "p", ID: "r"}}
	b.Run("open and stream 16 MiB", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			_, r, err := s.Open(b.Context(), acc, a.ID)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				b.Fatal(err)
			}
			_ = r.Close()
		}
	})
	b.Run("chunk of 1 MiB", func(b *testing.B) {
		b.SetBytes(MaxChunk)
		for b.Loop() {
			if _, _, err := s.ReadChunk(b.Context(), acc, a.ID, 5<<20, MaxChunk); err != nil {
				b.Fatal(err)
			}
		}
	})
}
