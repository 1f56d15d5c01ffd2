package reinstest

import (
	"context"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var viewTests = map[string]func(*testing.T, Factory){
	"FRM-1 one view of a lease":          viewsOnce,
	"FRM-2 FRM-5 pictures":               seesPictures,
	"FRM-10 state":                       tellsState,
	"FRM-8 refresh":                      refreshes,
	"VPT-1 VPT-2 the shared viewport":    sharesViewport,
	"LSE-6 the end of a view":            endsView,
	"LSE-5 a view ends with its browser": viewGoesOn,
}

// watching is a subscription that is read on in the background. Every picture is
// acknowledged, and that once more.
type watching struct {
	sub  reins.Subscription
	done chan struct{}

	news  chan struct{} // something came; one pending at most
	mine  chan struct{} // holds one thing while all is looked at
	all   []reins.Frame
	state *reins.ViewState
	again bool // an acknowledgement counted twice
	never bool // one did not count
	err   error
}

func (w *world) watch(l reins.Lease, o reins.SubscribeOptions) *watching {
	w.t.Helper()
	sub, err := l.Subscribe(w.ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.follow(sub)
}

func (w *world) follow(sub reins.Subscription) *watching {
	v := &watching{sub: sub, done: make(chan struct{}), news: make(chan struct{}, 1), mine: make(chan struct{}, 1)}
	w.t.Cleanup(func() { _ = sub.Close() })
	go func() {
		defer close(v.done)
		for v.next() {
		}
	}()
	return v
}

// next takes one update; false at the end.
func (v *watching) next() bool {
	u, err := v.sub.Next(context.Background())
	v.mine <- struct{}{}
	defer func() {
		<-v.mine
		select {
		case v.news <- struct{}{}:
		default:
		}
	}()
	if u.State != nil {
		v.state = u.State
	}
	if f := u.Frame; f != nil {
		v.all = append(v.all, *f)
		v.never = v.never || !v.sub.Ack(f.ID)
		v.again = v.again || v.sub.Ack(f.ID)
	}
	v.err = err
	return err == nil
}

// see waits until is holds of what the viewer was told.
func (w *world) see(v *watching, what string, is func() bool) {
	w.t.Helper()
	late := time.After(patience)
	for {
		v.mine <- struct{}{}
		holds := is()
		<-v.mine
		if holds {
			return
		}
		select {
		case <-v.news:
		case <-late:
			w.t.Fatalf("%s did not come", what)
		}
	}
}

// ends waits for the end of a view and returns why.
func (w *world) ends(v *watching, code reins.Code) *reins.Error {
	w.t.Helper()
	w.closed(v.done, "the end of the view")
	return w.want(v.err, code)
}

// opens begins a test of views: a resource with a browser, and who acts on it.
func opens(t *testing.T, f Factory) (w *world, r reins.Resource, a, ada, bob reins.Lease) {
	w = begin(t, f, reins.Limits{})
	r = w.register(reins.BrowserSpec{})
	a, ada, bob = w.lease(agent(1)), w.lease(person("ada")), w.lease(person("bob"))
	if _, err := a.Do(w.ctx, navigate("https://a.example/")); err != nil {
		t.Fatal(err)
	}
	return w, r, a, ada, bob
}

func viewsOnce(t *testing.T, f Factory) {
	w, _, a, ada, bob := opens(t, f)
	_, err := a.Subscribe(w.ctx, reins.SubscribeOptions{})
	w.want(err, reins.CodeDenied)
	_, err = ada.Subscribe(w.ctx, reins.SubscribeOptions{Window: 33})
	w.want(err, reins.CodeInvalidInput)
	first := w.watch(ada, reins.SubscribeOptions{Window: 32})
	_, err = ada.Subscribe(w.ctx, reins.SubscribeOptions{})
	w.want(err, reins.CodeBusy)
	second := w.watch(ada, reins.SubscribeOptions{Take: true})
	w.ends(first, reins.CodeBusy)
	other := w.watch(bob, reins.SubscribeOptions{})
	for _, v := range []*watching{second, other} {
		w.see(v, "a picture", func() bool { return len(v.all) > 0 })
	}
	if err := second.sub.Close(); err != nil {
		t.Error(err)
	}
	w.ends(second, reins.CodeCancelled)
	var third *watching
	w.until("another view after the one that was closed", func() bool { // from afar the other end has to hear of it
		sub, err := ada.Subscribe(w.ctx, reins.SubscribeOptions{})
		if err != nil {
			w.want(err, reins.CodeBusy)
			return false
		}
		third = w.follow(sub)
		return true
	})
	w.see(third, "a picture after another view", func() bool { return len(third.all) > 0 })
	select {
	case <-other.done:
		t.Errorf("another's view ended: %v", other.err)
	default:
	}
}

func seesPictures(t *testing.T, f Factory) {
	w, _, _, ada, bob := opens(t, f)
	v := w.watch(ada, reins.SubscribeOptions{})
	w.see(v, "a picture", func() bool { return len(v.all) > 0 })
	late := w.watch(bob, reins.SubscribeOptions{}) // FRM-12
	w.see(late, "a picture for who comes late", func() bool { return len(late.all) > 0 })
	if v.sub.Ack(reins.FrameID{Incarnation: 1, Stream: 1, Sequence: 1 << 40}) {
		t.Error("a picture that there never was can be acknowledged")
	}
	w.see(v, "a state", func() bool { return v.state != nil })
	v.mine <- struct{}{}
	defer func() { <-v.mine }()
	if v.again || v.never {
		t.Errorf("acknowledgements: one was late %v, one counted twice %v", v.never, v.again)
	}
	for i, p := range v.all {
		if p.ID.Incarnation != 1 || p.ID.Stream == 0 || p.ID.Sequence == 0 || p.Tab == "" || p.Width == 0 || p.Height == 0 || p.Captured.IsZero() || len(p.JPEG) == 0 {
			t.Errorf("picture %d: %+v of %d bytes", i, p.ID, len(p.JPEG))
		}
		if i > 0 && p.ID.Sequence <= v.all[i-1].ID.Sequence {
			t.Errorf("after %+v came %+v", v.all[i-1].ID, p.ID)
		}
	}
}

func tellsState(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	a, ada := w.lease(agent(1)), w.lease(person("ada"))
	v := w.watch(ada, reins.SubscribeOptions{})
	w.see(v, "the state without a browser", func() bool {
		return v.state != nil && v.state.Life == reins.StateStopped && v.state.Incarnation == 0 && len(v.state.Participants) == 2
	})
	if _, err := a.Do(w.ctx, navigate("https://a.example/")); err != nil {
		t.Fatal(err)
	}
	w.see(v, "what the agent did", func() bool {
		if v.state.Life != reins.StateRunning || v.state.Incarnation != 1 || v.state.Selected == "" {
			return false
		}
		for _, did := range v.state.Activities {
			if did.Actor == "agent é" && did.Verb == "navigate" && did.URL == "https://a.example/" && did.Outcome == reins.OutcomeCompleted {
				return true
			}
		}
		return false
	})
	if _, err := ada.Do(w.ctx, reins.Call{Action: reins.RequestControl{}}); err != nil {
		t.Fatal(err)
	}
	w.see(v, "her control", func() bool { return v.state.Control.State == reins.ControlHuman && v.state.Control.Mine })
	var mine, watched int
	for _, p := range v.state.Participants {
		if p.Mine {
			mine++
		}
		if p.Watching {
			watched++
		}
	}
	if mine != 1 || watched != 1 {
		t.Errorf("here are %+v", v.state.Participants)
	}
}

func refreshes(t *testing.T, f Factory) {
	w, _, a, ada, bob := opens(t, f)
	_, err := ada.Do(w.ctx, reins.Call{Action: reins.Refresh{}})
	w.want(err, reins.CodeBusy)
	_, err = a.Do(w.ctx, reins.Call{Action: reins.Refresh{}})
	w.want(err, reins.CodeDenied)
	mine, his := w.watch(ada, reins.SubscribeOptions{}), w.watch(bob, reins.SubscribeOptions{})
	for _, v := range []*watching{mine, his} {
		w.see(v, "a picture", func() bool { return len(v.all) > 0 })
	}
	before := his.all[0].ID.Stream
	if _, err := ada.Do(w.ctx, reins.Call{Action: reins.Refresh{}}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*watching{mine, his} {
		w.see(v, "a picture of the next stream", func() bool { return v.all[len(v.all)-1].ID.Stream > before })
	}
}

func sharesViewport(t *testing.T, f Factory) {
	w, _, a, ada, bob := opens(t, f)
	_, err := a.Do(w.ctx, reins.Call{Action: reins.SetViewport{Width: 800, Height: 600}})
	w.want(err, reins.CodeDenied)
	mine, his := w.watch(ada, reins.SubscribeOptions{}), w.watch(bob, reins.SubscribeOptions{})
	set := func(l reins.Lease, s reins.SetViewport) reins.Viewport {
		t.Helper()
		res, err := l.Do(w.ctx, reins.Call{Action: s})
		if err != nil || res.Viewport == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		return *res.Viewport
	}
	one := set(ada, reins.SetViewport{Width: 1000, Height: 500, Scale: 2})
	if one != (reins.Viewport{Revision: one.Revision, Width: 1000, Height: 500, Scale: 2}) || one.Revision == 0 {
		t.Errorf("of one viewer: %+v", one)
	}
	if same := set(ada, reins.SetViewport{Width: 1000, Height: 500, Scale: 2}); same != one {
		t.Errorf("the same again: %+v", same)
	}
	both := set(bob, reins.SetViewport{Width: 400, Height: 900})
	if both != (reins.Viewport{Revision: both.Revision, Width: 400, Height: 500, Scale: 1}) || both.Revision <= one.Revision {
		t.Errorf("of both: %+v", both)
	}
	w.see(mine, "the viewport of both", func() bool { return mine.state != nil && mine.state.Viewport == both })
	move := reins.Pointer{Tab: mine.state.Selected, Kind: "move", X: 5, Y: 5, Viewport: one.Revision}
	_, err = ada.Do(w.ctx, reins.Call{Action: move})
	w.want(err, reins.CodeInvalidState) // INP-1
	move.Viewport = both.Revision
	if _, err = ada.Do(w.ctx, reins.Call{Action: move}); err != nil {
		t.Error(err)
	}
	if err := bob.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.ends(his, reins.CodeLeaseEnded)
	w.see(mine, "her own viewport again", func() bool {
		p := mine.state.Viewport
		return p.Width == 1000 && p.Height == 500 && p.Scale == 2 && p.Revision > both.Revision
	})
}

func endsView(t *testing.T, f Factory) {
	for name, end := range map[string]func(*world, reins.Resource, reins.Lease) error{
		"release": func(w *world, _ reins.Resource, l reins.Lease) error { return l.Release(w.ctx) },
		"revoke": func(w *world, _ reins.Resource, l reins.Lease) error {
			return w.Revoke(w.ctx, l.Authority().CapabilityID)
		},
		"retire": func(w *world, r reins.Resource, _ reins.Lease) error { return r.Retire(w.ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			w, r, _, ada, _ := opens(t, f)
			v := w.watch(ada, reins.SubscribeOptions{})
			w.see(v, "a picture", func() bool { return len(v.all) > 0 })
			if err := end(w, r, ada); err != nil {
				t.Fatal(err)
			}
			w.closed(v.done, "the end of the view")
			over := func(err error) bool {
				return reins.CodeOf(err) == reins.CodeLeaseEnded || name == "retire" && reins.CodeOf(err) == reins.CodeRetired
			}
			n := len(v.all)
			if _, err := v.sub.Next(w.ctx); !over(v.err) || !over(err) || v.sub.Ack(v.all[n-1].ID) {
				t.Errorf("it ended with %v, and then %v", v.err, err)
			}
			if _, err := ada.Subscribe(w.ctx, reins.SubscribeOptions{}); !over(err) {
				t.Errorf("another view after the end: %v", err)
			}
		})
	}
}

func viewGoesOn(t *testing.T, f Factory) {
	w, r, a, ada, _ := opens(t, f)
	v := w.watch(ada, reins.SubscribeOptions{})
	w.see(v, "a picture", func() bool { return len(v.all) > 0 })
	if err := r.Terminate(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.ends(v, reins.CodeBrowserEnded)
	next := w.watch(ada, reins.SubscribeOptions{})
	w.see(next, "the state without a browser", func() bool { return next.state != nil && next.state.Life == reins.StateStopped })
	if _, err := a.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Fatal(err)
	}
	w.see(next, "a picture of the next browser", func() bool {
		return len(next.all) > 0 && next.all[len(next.all)-1].ID.Incarnation == 2
	})
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := next.sub.Next(ctx) // a caller that left ends nothing
	w.want(err, reins.CodeCancelled)
	select {
	case <-next.done:
		t.Errorf("the view ended: %v", next.err)
	default:
	}
}
