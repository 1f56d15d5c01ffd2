package frames

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var zero = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

func stream() *Stream {
	s := New(Options{Life: 10 * time.Second, Bytes: 1000})
	s.Begin(1)
	return s
}

// pic is picture n of a screencast; pictures of the same text are the same.
func pic(n int, text string) Picture {
	return Picture{Cast: 1, Number: uint64(n), Tab: "t1", Width: 1280, Height: 800, JPEG: []byte(text)}
}

// take gives what a viewer gets at a time, as text; it is acknowledged at once.
func take(v *Viewer, ms int) string {
	f, _ := v.Take(at(ms))
	if f == nil {
		return ""
	}
	v.Ack(f.ID, at(ms))
	return fmt.Sprintf("%s %d.%d.%d", f.JPEG, f.ID.Incarnation, f.ID.Stream, f.ID.Sequence)
}

// TestSlowViewersSkip is FRM-3, FRM-11 and FRM-12: a viewer that takes nothing gets
// the newest picture when it comes back; one that does not acknowledge gets fewer;
// another one gets all.
func TestSlowViewersSkip(t *testing.T) {
	s := stream()
	fast, slow, away := s.Join(4), s.Join(2), s.Join(4)
	var all, some int
	for i := range 300 { // three seconds
		ms := 10 * i
		s.Admit(pic(i+1, fmt.Sprint("p", i)), at(ms))
		if f, _ := fast.Take(at(ms)); f != nil {
			if !fast.Ack(f.ID, at(ms+5)) {
				t.Fatal("an acknowledgement in time is late")
			}
			all++
		}
		if f, _ := slow.Take(at(ms)); f != nil {
			some++
		}
	}
	if all != 300 || some < 3 || some > 10 {
		t.Errorf("the fast viewer got %d of 300, the one that never acknowledges %d", all, some)
	}
	if len(slow.window) != 2 {
		t.Errorf("a window of 2 holds %d", len(slow.window))
	}
	if got := take(away, 3000); got != "p299 1.1.300" {
		t.Errorf("who was away gets %q", got)
	}
	if got := take(s.Join(1), 3000); got != "p299 1.1.300" {
		t.Errorf("who joins gets %q", got)
	}
}

// TestWindowEvicts is FRM-3 and FRM-5: the oldest entry goes when the window is full
// or its time is over; an acknowledgement of it is false and harms nothing.
func TestWindowEvicts(t *testing.T) {
	s := stream()
	v := s.Join(2)
	var ids []reins.FrameID
	for i := range 4 {
		s.Admit(pic(i+1, fmt.Sprint(i)), at(i*5000))
		f, _ := v.Take(at(i * 5000))
		if f == nil {
			t.Fatalf("picture %d is held back", i)
		}
		ids = append(ids, f.ID)
	}
	if v.Ack(ids[0], at(15_100)) || v.Ack(ids[1], at(15_100)) || !v.Ack(ids[3], at(15_100)) || v.Ack(ids[3], at(15_100)) {
		t.Error("acknowledgements of the evicted, the newest, and the newest again")
	}
	if v.Ack(ids[2], at(20_000)) { // given at 10 s
		t.Error("an entry lives for ever")
	}
	if v.Ack(reins.FrameID{Incarnation: 1, Stream: 1, Sequence: 99}, at(20_000)) {
		t.Error("a picture that there never was counts as acknowledged")
	}
	s.Admit(pic(9, "x"), at(21_000))
	f, _ := v.Take(at(21_000))
	s.Begin(1) // FRM-8
	if v.Ack(f.ID, at(21_001)) {
		t.Error("an acknowledgement of the generation before counts")
	}
}

// TestPaceFits is FRM-11: on a narrow way one picture is on its way at a time, on a
// long one as many as the window takes.
func TestPaceFits(t *testing.T) {
	// way makes acknowledgements come after a delay, one after the other when the
	// way is narrow, and says how many came and how old pictures were in the end.
	way := func(delay time.Duration, narrow bool) (got int, oldest time.Duration) {
		s := stream()
		v := s.Join(4)
		type sent struct {
			id    reins.FrameID
			comes time.Time
		}
		var under []sent
		var free time.Time
		for now := at(0); now.Before(at(20_000)); now = now.Add(5 * time.Millisecond) {
			for len(under) > 0 && !now.Before(under[0].comes) {
				v.Ack(under[0].id, now)
				under = under[1:]
				got++
			}
			if now.Sub(zero)%(15*time.Millisecond) == 0 {
				s.Admit(pic(int(now.Sub(zero)/time.Millisecond)+1, now.String()), now)
			}
			if f, _ := v.Take(now); f != nil {
				start := now
				if narrow && free.After(now) {
					start = free
				}
				free = start.Add(delay)
				under = append(under, sent{f.ID, free})
				if now.After(at(15_000)) {
					oldest = max(oldest, free.Sub(now))
				}
			}
		}
		return got, oldest
	}
	got, oldest := way(200*time.Millisecond, true)
	if got < 90 || oldest > 450*time.Millisecond {
		t.Errorf("over a narrow way %d of 100 came, up to %s late", got, oldest)
	}
	got, oldest = way(200*time.Millisecond, false)
	if got < 300 || oldest > 250*time.Millisecond {
		t.Errorf("over a long way %d of 400 came, up to %s late", got, oldest)
	}
}

// TestTooLarge is FRM-6: told once, acknowledged, the sequence moves past it.
func TestTooLarge(t *testing.T) {
	s := stream()
	v := s.Join(4)
	s.Admit(pic(1, strings.Repeat("x", 1001)), at(0))
	s.Admit(Picture{Cast: 1, Number: 2, Tab: "t1", TooLarge: 5000}, at(0))
	for range 2 {
		if err := v.Err(); err == nil || err.Code != reins.CodeFrameTooLarge || err.Details["tab"] != "t1" {
			t.Errorf("told %v", err)
		}
	}
	if err := v.Err(); err != nil {
		t.Errorf("told again: %v", err)
	}
	s.Admit(pic(3, "small"), at(0))
	if got := take(v, 0); got != "small 1.1.3" {
		t.Errorf("then came %q", got)
	}
	for i := range 3 {
		a, ok, _ := s.Owed(at(1000))
		if !ok || a.Number != uint64(i+1) {
			t.Errorf("owed %v %v", a, ok)
		}
		s.Settled(a)
	}
}

// TestProducer is FRM-4 and FRM-5: each picture is acknowledged once whoever looks;
// the producer's pace is that of the fastest viewer; what is late or too much breaks
// it.
func TestProducer(t *testing.T) {
	s := stream()
	s.Join(4)
	s.Join(4)
	s.Admit(pic(1, "a"), at(0))
	a, ok, _ := s.Owed(at(0))
	if _, again, _ := s.Owed(at(0)); !ok || again || a != (Ack{1, 1}) {
		t.Fatalf("owed %v, %v, and again %v", a, ok, again)
	}
	s.Settled(Ack{1, 7}) // of nothing
	if s.Quiet() {
		t.Fatal("something else settled it")
	}
	s.Settled(a)
	s.Settled(a)
	if !s.Quiet() {
		t.Fatal("owed after it was settled")
	}
	if p := (Picture{Tab: "t1", JPEG: []byte("made by hand")}); s.Admit(p, at(10)) && !s.Quiet() {
		t.Error("a picture that was asked for is acknowledged") // FRM-11
	}
	s.Admit(pic(2, "b"), at(10_000))
	if err, when := s.Broken(at(19_999)); err != nil || !when.Equal(at(20_000)) {
		t.Errorf("too early: %v, again at %s", err, when)
	}
	if err, _ := s.Broken(at(20_000)); err == nil || err.Code != reins.CodeFrameStreamFailed {
		t.Errorf("late: %v", err)
	}
	s.Begin(1)
	for i := range maxOwed + 1 {
		s.Admit(pic(10+i, fmt.Sprint(i)), at(20_000))
	}
	if err, _ := s.Broken(at(20_000)); err == nil {
		t.Error("a flood is taken for nothing")
	}
}

// TestProducerWaitsForTheFastest: nobody takes anything, so the browser paints a
// few pictures a second and no more; one viewer that does makes it paint on.
func TestProducerWaitsForTheFastest(t *testing.T) {
	for _, fast := range []bool{false, true} {
		s := stream()
		s.Join(4)
		var quick *Viewer
		if fast {
			quick = s.Join(4)
		}
		for v := range s.viewers {
			if v != quick {
				v.depth = 0 // as if all that it may get was on its way
			}
		}
		painted, under := 0, 0
		for ms := 0; ms < 4000; ms += 5 {
			if under < 2 {
				painted, under = painted+1, under+1
				s.Admit(pic(painted, fmt.Sprint(painted)), at(ms))
			}
			if quick != nil {
				if f, _ := quick.Take(at(ms)); f != nil {
					quick.Ack(f.ID, at(ms+2))
				}
			}
			if a, ok, _ := s.Owed(at(ms)); ok {
				s.Settled(a)
				under--
			}
		}
		if fast && painted < 100 || !fast && painted > 30 {
			t.Errorf("with a fast viewer %v: %d pictures in 4 s", fast, painted)
		}
	}
}

// TestStillPage is FRM-11: one sharp picture when nothing has changed for a while,
// none for what is known, and nothing after it.
func TestStillPage(t *testing.T) {
	s := stream()
	v := s.Join(4)
	now := 0
	show := func(text string) (of uint64, ask, fresh bool) {
		s.Admit(pic(now+1, text), at(now))
		if got := take(v, now); !strings.HasPrefix(got, text+" ") {
			t.Fatalf("of %q the viewer got %q", text, got)
		}
		_, ask, fresh, when := s.Sharpen(at(now + 100))
		if ask || fresh || !when.Equal(at(now+150)) {
			t.Fatalf("sharp before the page is still: %v %v %s", ask, fresh, when)
		}
		now += 200
		of, ask, fresh, _ = s.Sharpen(at(now))
		return of, ask, fresh
	}
	of, ask, _ := show("caret on")
	if !ask || !s.Sharp(of, Picture{JPEG: []byte("SHARP ON")}) || take(v, now) != "SHARP ON 1.1.2" {
		t.Fatal("no sharp picture")
	}
	if s.Admit(pic(900, "caret on"), at(now)); take(v, now) != "" {
		t.Error("the same picture was sent again")
	}
	if _, ask, fresh, when := s.Sharpen(at(now + 1000)); ask || fresh || !when.IsZero() {
		t.Error("a still page is looked at again")
	}
	of, ask, _ = show("caret off")
	if !ask || !s.Sharp(of, Picture{JPEG: []byte("SHARP OFF")}) || take(v, now) == "" {
		t.Fatal("no sharp picture of the other")
	}
	for range 5 {
		for _, text := range []string{"on", "off"} {
			if _, ask, fresh := show("caret " + text); ask || !fresh || !strings.HasPrefix(take(v, now), "SHARP "+strings.ToUpper(text)) {
				t.Fatal("a blinking cursor is not remembered")
			}
		}
	}
	of, _, _ = show("page one")
	s.Admit(pic(5000, "page two"), at(now))
	if s.Sharp(of, Picture{JPEG: []byte("SHARP ONE")}) {
		t.Error("a sharp picture of what is gone")
	}
	s.Leave(v)
	if _, ask, _, _ := s.Sharpen(at(now + 1000)); ask {
		t.Error("sharp for nobody")
	}
}

// TestFresh is FRM-12: a page that paints nothing is captured, unless a picture came
// meanwhile.
func TestFresh(t *testing.T) {
	s := stream()
	v := s.Join(4)
	if got := take(v, 0); got != "" {
		t.Fatalf("a picture out of nothing: %q", got)
	}
	if !s.Fresh(Picture{JPEG: []byte("made")}) || take(v, 0) != "made 1.1.1" {
		t.Error("the picture that was made is not shown")
	}
	if s.Fresh(Picture{JPEG: []byte("late")}) {
		t.Error("one that came too late is")
	}
	s.Clear()
	if s.Last() != nil || take(s.Join(4), 1) != "" {
		t.Error("what is not shown any more is given to who joins")
	}
}

// TestErrorsAreBounded: a viewer that reads nothing keeps the newest.
func TestErrorsAreBounded(t *testing.T) {
	s := stream()
	v := s.Join(4)
	for range 1000 {
		s.Admit(Picture{Cast: 1, Tab: "t1", TooLarge: 5000}, at(0))
	}
	n := 0
	for err := v.Err(); err != nil; err = v.Err() {
		n++
	}
	if n != maxErrors {
		t.Errorf("%d errors were kept", n)
	}
}

// TestViewports is VPT-1 to VPT-3.
func TestViewports(t *testing.T) {
	var v Viewports
	check := func(what string, w, h int, scale float64) {
		t.Helper()
		if got := v.Effective(); got != (reins.Viewport{Width: w, Height: h, Scale: scale}) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	check("nobody", 1280, 800, 1)
	v.Wish("ada", reins.SetViewport{Width: 1440, Height: 700, Scale: 2})
	check("she does not look", 1280, 800, 1)
	v.Active("ada", true)
	check("she looks", 1440, 700, 2)
	v.Wish("bob", reins.SetViewport{Width: 390, Height: 844})
	v.Active("bob", true)
	v.Active("eve", true) // who stated nothing
	check("he too", 390, 700, 1)
	v.Wish("bob", reins.SetViewport{Width: 500, Height: 600})
	check("he turns his phone", 500, 600, 1)
	v.Active("bob", false)
	check("he looks away", 1440, 700, 2)
	v.Active("bob", true)
	v.Wish("ada", reins.SetViewport{})
	check("she takes it back", 500, 600, 1)
	v.Drop("bob")
	v.Drop("bob")
	check("nobody again", 1280, 800, 1)
	v.Wish("wall", reins.SetViewport{Width: 3840, Height: 2160, Scale: 2})
	v.Active("wall", true)
	check("a wall", 3840, 2160, 1) // FRM-7's product
}
