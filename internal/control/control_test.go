package control

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

var epoch = time.Unix(1_800_000_000, 0)

func is(t interface {
	Helper()
	Fatalf(string, ...any)
}, err error, want reins.Code) {
	t.Helper()
	if reins.CodeOf(err) != want {
		t.Fatalf("error %v, want %q", err, want)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// naive is the reference: what the rules say, in plain variables.
type naive struct {
	who     string // "" for nobody
	held    bool
	until   time.Time
	hold    time.Duration
	running int
	taken   uint64
	claims  map[*Claim]reins.Code // why each ended; "" is held, "pending" asked for
	now     *Claim
}

func (n *naive) over(why reins.Code) {
	n.claims[n.now] = why
	n.who, n.held, n.now = "", false, nil
}

func (n *naive) tick(now time.Time) {
	if n.who != "" && !now.Before(n.until) {
		n.over(reins.CodeTimeout)
	}
	if n.who != "" && !n.held && n.running == 0 {
		n.held, n.until = true, now.Add(n.hold)
		n.claims[n.now] = ""
		n.taken++
	}
}

// refusal is what CTL-2 and CTL-3 say about who may begin.
func (n *naive) refusal(w Who) reins.Code {
	switch {
	case n.who == "" || n.who == w.Lease || !w.Agent && !(n.held && w.Input):
		return ""
	case w.Agent && !n.held:
		return reins.CodeHumanControlConflict
	}
	return reins.CodeHumanControlled
}

// TestControlModel drives takeover beside the reference: CTL-1 to CTL-5. Time
// passes between steps in any amount, so ends come early, late and in the same
// instant as what they exclude.
func TestControlModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Control
		now, version := epoch, uint64(0)
		ref := &naive{claims: map[*Claim]reins.Code{}}
		people := rapid.SampledFrom([]string{"ada", "bob"})
		seconds := func(t *rapid.T, name string) time.Duration {
			return time.Duration(rapid.IntRange(1, 5).Draw(t, name)) * time.Second
		}
		gone := reins.Errorf(reins.CodeLeaseEnded, "gone")
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				r := Request{Lease: people.Draw(t, "who"), Wait: seconds(t, "wait"), Hold: seconds(t, "hold")}
				r.Actor = r.Lease
				ref.tick(now)
				claim, err := c.Request(r, now)
				if ref.who != "" {
					is(t, err, reins.CodeControlBusy) // CTL-1
					return
				}
				is(t, err, "")
				ref.who, ref.until, ref.hold, ref.now = r.Lease, now.Add(r.Wait), r.Hold, claim
				ref.claims[claim] = "pending"
				ref.tick(now)
			},
			"begin": func(t *rapid.T) {
				w := Who{Lease: "agent", Agent: true, Input: true}
				ref.tick(now)
				err := c.Refuse(w, now)
				if want := ref.refusal(w); want != "" {
					is(t, err, want)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				c.Began()
				ref.running++
			},
			"settle": func(t *rapid.T) {
				if ref.running == 0 {
					t.Skip()
				}
				c.Settled(now)
				ref.running--
				ref.tick(now)
			},
			"renew": func(t *rapid.T) {
				who, hold := people.Draw(t, "who"), seconds(t, "hold")
				ref.tick(now)
				until, err := c.Renew(who, hold, now)
				if ref.who != who || !ref.held {
					is(t, err, reins.CodeInvalidState)
					return
				}
				is(t, err, "")
				if ref.until = now.Add(hold); !until.Equal(ref.until) {
					t.Fatalf("renewed until %s, want %s", until, ref.until) // CTL-4
				}
			},
			"drop": func(t *rapid.T) {
				who := people.Draw(t, "who")
				ref.tick(now)
				c.Pass(now)
				if had := c.Drop(who, gone); had != (ref.who == who) {
					t.Fatalf("dropped %v", had)
				}
				if ref.who == who {
					ref.over(reins.CodeLeaseEnded)
				}
				if c.Drop(who, gone) {
					t.Fatal("the end is not idempotent") // CTL-4
				}
			},
			"browserEnds": func(*rapid.T) {
				ref.tick(now)
				c.Pass(now)
				c.End(reins.Errorf(reins.CodeBrowserEnded, "ended"))
				c.End(nil)
				if ref.who != "" {
					ref.over(reins.CodeBrowserEnded)
				}
			},
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
				if rapid.Bool().Draw(t, "timer") {
					c.Pass(now)
					ref.tick(now)
				}
			},
			"passExactly": func(*rapid.T) {
				if next := c.Next(); next.After(now) {
					now = next
				}
			},
			"": func(t *rapid.T) {
				ref.tick(now)
				c.Pass(now)
				checkControl(t, &c, ref, now)
				if c.Version() < version {
					t.Fatal("the version went back")
				}
				version = c.Version()
			},
		})
	})
}

func checkControl(t *rapid.T, c *Control, ref *naive, now time.Time) {
	state := reins.ControlAgent
	switch {
	case ref.held:
		state = reins.ControlHuman
	case ref.who != "":
		state = reins.ControlPending
	case ref.running > 0:
		state = reins.ControlAgentActive
	}
	for _, lease := range []string{"ada", "bob", "agent"} {
		s := c.Snapshot(lease)
		if s.State != state || s.Agents != ref.running || s.Actor != ref.who || s.Mine != (ref.who == lease) {
			t.Fatalf("for %s: %+v, want %s of %q with %d running", lease, s, state, ref.who, ref.running) // CTL-6
		}
		if ref.who != "" && !s.Expires.Equal(ref.until) || ref.who == "" && !c.Next().IsZero() {
			t.Fatalf("expires %s, want %s", s.Expires, ref.until)
		}
		if c.Holds(lease) != (ref.held && ref.who == lease) {
			t.Fatalf("%s holds: %v", lease, c.Holds(lease))
		}
		for _, w := range []Who{{lease, lease == "agent", true}, {lease, lease == "agent", false}} {
			is(t, asError(c.Refuse(w, now)), ref.refusal(w))
		}
	}
	if ref.held && ref.running > 0 {
		t.Fatal("a person has control while an agent's operation runs") // CTL-2
	}
	if c.Taken() != ref.taken {
		t.Fatalf("taken %d times, want %d", c.Taken(), ref.taken)
	}
	for claim, want := range ref.claims {
		if closed(claim.Ready()) == (want == "pending") || closed(claim.Over()) == (claim == ref.now) {
			t.Fatalf("a claim that is %q: ready %v, over %v", want, closed(claim.Ready()), closed(claim.Over())) // CTL-5
		}
		if want != "pending" {
			is(t, asError(claim.Err()), want)
		}
	}
}

// TestRefusalsNameThePerson is CTL-1 and CTL-3: who it is and until when, and
// neither a token nor a lease.
func TestRefusalsNameThePerson(t *testing.T) {
	var c Control
	c.Began()
	if _, err := c.Request(Request{Lease: "lease_1", Actor: "Ada", Wait: time.Second, Hold: time.Minute}, epoch); err != nil {
		t.Fatal(err)
	}
	_, busy := c.Request(Request{Lease: "lease_2", Actor: "Bob", Wait: time.Second, Hold: time.Minute}, epoch)
	is(t, busy, reins.CodeControlBusy)
	pending := c.Refuse(Who{Lease: "a", Agent: true}, epoch)
	c.Settled(epoch)
	held := c.Refuse(Who{Lease: "a", Agent: true}, epoch)
	watcher := c.Refuse(Who{Lease: "lease_2", Input: true}, epoch)
	for what, err := range map[string]error{"busy": busy, "pending": pending, "held": held, "watcher": watcher} {
		e := reins.AsError(err)
		if e.Details["actor"] != "Ada" || e.Details["expires"] == nil || e.Details["since"] != epoch {
			t.Errorf("%s: details %v", what, e.Details)
		}
		for _, v := range append([]any{e.Message}, e.Details["lease"], e.Details["token"]) {
			if s, _ := v.(string); slices.Contains([]string{"lease_1", "lease_2"}, s) {
				t.Errorf("%s names a lease: %v", what, e)
			}
		}
	}
	_, mine := c.Request(Request{Lease: "lease_1", Actor: "Ada", Wait: time.Second, Hold: time.Minute}, epoch)
	is(t, mine, reins.CodeControlBusy)
}

// TestHandoffs is CTL-8: one request for each lease, answered once, oldest first.
func TestHandoffs(t *testing.T) {
	var h Handoffs
	one, err := h.Ask("a", reins.HumanRequest{ID: "op_1"})
	is(t, err, "")
	_, err = h.Ask("a", reins.HumanRequest{ID: "op_2"})
	is(t, err, reins.CodeBusy)
	two, err := h.Ask("b", reins.HumanRequest{ID: "op_3"})
	is(t, err, "")
	if s := h.Shown(); len(s) != 2 || s[0].ID != "op_1" || s[1].ID != "op_3" || h.Version() != 2 {
		t.Errorf("shown %v at version %d", s, h.Version())
	}
	is(t, h.Answer("op_1", reins.HumanAnswer{Outcome: reins.HumanDone, Note: "hi"}), "")
	<-one.Done()
	if a := one.Answer(); a.Outcome != reins.HumanDone || a.Note != "hi" {
		t.Errorf("answer %+v", a)
	}
	is(t, h.Answer("op_1", reins.HumanAnswer{}), reins.CodeNotFound)
	h.Drop(two)
	h.Drop(two)
	is(t, h.Answer("op_3", reins.HumanAnswer{}), reins.CodeNotFound)
	if len(h.Shown()) != 0 || h.Version() != 4 {
		t.Errorf("left: %v at version %d", h.Shown(), h.Version())
	}
	_, err = h.Ask("a", reins.HumanRequest{ID: "op_4"})
	is(t, err, "")
}

// asError keeps a nil one nil.
func asError(e *reins.Error) error {
	if e == nil {
		return nil
	}
	return e
}
