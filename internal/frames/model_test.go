package frames

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

// held is what a viewer holds by the rules, found out without the package.
type held struct {
	id    reins.FrameID
	given time.Time
}

// shadow is a viewer with what it must be like.
type shadow struct {
	v      *Viewer
	size   int
	window []held
	newest reins.FrameID // that it was given
	left   bool
}

type model struct {
	s, calm *Stream // calm has the honest viewer only
	now     time.Time
	honest  [2]*Viewer
	got     [2][]uint64
	all     []*shadow
	painted int
	owed    map[Ack]bool // true: was given out
}

func after(a, b reins.FrameID) bool { return a.Sequence > b.Sequence && a.Stream >= b.Stream }

// TestModel is FRM-2 to FRM-5 with viewers that stall, lie, flood and vanish: windows
// are exact, sequences grow, each picture is acknowledged to the producer once, and
// an honest viewer gets, bit by bit, what it would get alone, but for the producer's
// pace, which is the same here.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const life = 3 * time.Second
		m := &model{now: zero, owed: map[Ack]bool{}}
		m.s, m.calm = New(Options{Life: life, Bytes: 100}), New(Options{Life: life, Bytes: 100})
		m.s.Begin(1)
		m.calm.Begin(1)
		m.honest = [2]*Viewer{m.s.Join(4), m.calm.Join(4)}
		any := func(t *rapid.T) *shadow {
			if len(m.all) == 0 {
				t.Skip()
			}
			return m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "viewer")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"paint": func(t *rapid.T) {
				m.painted++
				size := rapid.IntRange(1, 110).Draw(t, "size")
				p := pic(m.painted, string(make([]byte, size))+fmt.Sprint(m.painted))
				for _, s := range []*Stream{m.s, m.calm} {
					s.Admit(p, m.now)
				}
				m.owed[Ack{1, uint64(m.painted)}] = false
			},
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
			},
			"join": func(t *rapid.T) {
				size := rapid.IntRange(1, 32).Draw(t, "window")
				m.all = append(m.all, &shadow{v: m.s.Join(size), size: size})
			},
			"vanish": func(t *rapid.T) {
				w := any(t)
				m.s.Leave(w.v)
				w.left, w.window = true, nil
			},
			"take":  func(t *rapid.T) { m.take(t, any(t), life) },
			"flood": func(t *rapid.T) { m.flood(any(t), t) },
			"acknowledge": func(t *rapid.T) {
				w := any(t)
				if len(w.window) > 0 {
					m.ack(t, w, w.window[rapid.IntRange(0, len(w.window)-1).Draw(t, "which")].id, life)
				}
			},
			"lie": func(t *rapid.T) {
				m.ack(t, any(t), reins.FrameID{
					Incarnation: uint64(rapid.IntRange(0, 2).Draw(t, "incarnation")),
					Stream:      uint64(rapid.IntRange(0, 3).Draw(t, "stream")), Sequence: uint64(rapid.IntRange(0, m.painted+1).Draw(t, "sequence")),
				}, life)
			},
			"refresh": func(t *rapid.T) {
				for _, s := range []*Stream{m.s, m.calm} {
					s.Begin(1)
				}
				clear(m.owed)
				for _, w := range m.all {
					w.window = nil
				}
			},
			"producer": func(t *rapid.T) { m.producer(t) },
			"honest":   func(t *rapid.T) { m.see(t) },
			"":         func(t *rapid.T) { m.check(t) },
		})
	})
}

func (w *shadow) expire(now time.Time, life time.Duration) {
	w.window = slices.DeleteFunc(w.window, func(h held) bool { return now.Sub(h.given) >= life })
}

func (m *model) take(t *rapid.T, w *shadow, life time.Duration) {
	f, when := w.v.Take(m.now)
	switch {
	case f == nil:
		if !when.IsZero() && (!when.After(m.now) || when.Sub(m.now) > 4*patience) {
			t.Fatalf("ask again in %s", when.Sub(m.now))
		}
		return
	case w.left:
		t.Fatal("who left is given a picture")
	case !after(f.ID, w.newest):
		t.Fatalf("after %v came %v", w.newest, f.ID)
	case f.ID != m.s.Last().ID:
		t.Fatalf("given %v, the newest is %v", f.ID, m.s.ID())
	}
	w.expire(m.now, life)
	if len(w.window) == w.size {
		w.window = w.window[1:]
	}
	w.window, w.newest = append(w.window, held{f.ID, m.now}), f.ID
}

func (m *model) ack(t *rapid.T, w *shadow, id reins.FrameID, life time.Duration) {
	w.expire(m.now, life)
	i := slices.IndexFunc(w.window, func(h held) bool { return h.id == id })
	if got := w.v.Ack(id, m.now); got != (i >= 0) {
		t.Fatalf("acknowledging %v gave %v with %v held", id, got, w.window)
	}
	if i >= 0 {
		w.window = slices.Delete(w.window, i, i+1)
	}
}

// flood acknowledges whatever there may be, again and again.
func (m *model) flood(w *shadow, t *rapid.T) {
	for range 50 {
		for seq := range uint64(min(m.painted, 40)) {
			w.v.Ack(reins.FrameID{Incarnation: 9, Stream: 1, Sequence: seq}, m.now)
		}
	}
}

func (m *model) producer(t *rapid.T) {
	for {
		a, ok, when := m.s.Owed(m.now)
		if !ok {
			if !when.IsZero() && !when.After(m.now) {
				t.Fatal("ask again in the past")
			}
			break
		}
		if out, is := m.owed[a]; !is || out {
			t.Fatalf("%v is acknowledged twice, or was never painted", a)
		}
		m.owed[a] = true
		m.s.Settled(a)
		delete(m.owed, a)
	}
	for a, ok, _ := m.calm.Owed(m.now); ok; a, ok, _ = m.calm.Owed(m.now) {
		m.calm.Settled(a)
	}
	if m.s.Quiet() != (len(m.owed) == 0) {
		t.Fatalf("quiet %v with %d owed", m.s.Quiet(), len(m.owed))
	}
}

// see is the honest viewer, which acknowledges what it gets, in both streams.
func (m *model) see(t *rapid.T) {
	for i, v := range m.honest {
		f, _ := v.Take(m.now)
		if f == nil {
			continue
		}
		m.got[i] = append(m.got[i], f.ID.Sequence)
		if !v.Ack(f.ID, m.now) {
			t.Fatal("an honest acknowledgement is late")
		}
	}
}

func (m *model) check(t *rapid.T) {
	if !slices.Equal(m.got[0], m.got[1]) {
		t.Fatalf("beside others it got %v, alone %v", m.got[0], m.got[1])
	}
	for _, w := range m.all {
		if len(w.v.window) > w.size || len(w.v.errs) > maxErrors {
			t.Fatalf("a window of %d holds %d, and %d errors wait", w.size, len(w.v.window), len(w.v.errs))
		}
		if w.left && (len(w.v.window) > 0 || w.v.waiting != nil) {
			t.Fatal("something is kept for who left")
		}
		if w.v.waiting != nil && w.v.waiting != m.s.last {
			t.Fatal("an older picture than the newest is kept") // memory is flat
		}
	}
}
