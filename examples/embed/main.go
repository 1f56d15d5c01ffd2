// Command embed is a whole host program: it owns policy, and Reins owns the
// browser. It serves a small page of its own, lets an agent work on it, has a
// person take over and hand back, gives the browser to another agent, and takes
// everything away again. Each step prints what came of it.
//
//	go build -o bin/embed ./examples/embed && bin/embed
//
// Run it as an ordinary user: browsers never run as root.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/host"
)

func main() {
	host.Main() // cells and drivers are this program again: before anything else
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	shop, err := serveShop()
	if err != nil {
		return err
	}
	defer shop.Close()
	dir, err := os.MkdirTemp("", "reins-embed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	h, err := host.New(host.Options{
		Dir:      filepath.Join(dir, "runtime"),
		Backends: []cell.Backend{process.New(process.Options{Directory: dir})},
		Hooks:    policy(),
	})
	if err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	// The browser is gone when Stop returns, whatever happened before.
	defer func() { err = errors.Join(err, h.Stop(context.WithoutCancel(ctx))) }()

	w := &walk{host: h, key: reins.ResourceKey{Project: "shop", ID: "cart"}, url: "http://" + shop.Addr().String()}
	for _, step := range []func(context.Context) error{w.register, w.agent, w.gate, w.takeover, w.replace, w.retire} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// policy is what the program decides: who gets a browser, what may be done with
// one, and where the record of it goes.
func policy() reins.Hooks {
	staff := map[string]reins.Role{"planner": reins.RoleAgent, "buyer": reins.RoleAgent, "ada@example.com": reins.RoleHuman}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	forbidden := regexp.MustCompile(`/admin\b`)
	return reins.Hooks{
		Authorize: func(_ context.Context, b reins.Binding) error {
			if staff[b.Actor] != b.Role {
				return fmt.Errorf("%s is not on the list", b.Actor)
			}
			return nil
		},
		// After the queue and before any effect: the place for a durable record
		// of the attempt, and for a no.
		BeforeOperation: func(_ context.Context, op reins.Operation) error {
			if op.Authority.Binding.Role != reins.RoleAgent || !forbidden.MatchString(address(op.Action)) {
				return nil
			}
			return reins.Errorf(reins.CodeDenied, "agents keep out of /admin").Recover(reins.RecoverAskPerson)
		},
		Audit: func(r reins.Record) {
			who := cmp.Or(r.Actor, "the runtime") // whose own doings have records too: "start"
			log.Info("audit", "actor", who, "action", r.Action, "outcome", r.Outcome, "code", r.Code)
		},
	}
}

// address is where an action says that it leads. A click may lead anywhere: what
// nobody may see, the site itself has to refuse, or the network door (EgressPolicy).
func address(a reins.Action) string {
	switch a := a.(type) {
	case reins.Navigate:
		return a.URL
	case reins.OpenTab:
		return a.URL
	}
	return ""
}

// walk is the story, a step a method.
type walk struct {
	host     *host.Host
	key      reins.ResourceKey
	url      string
	resource reins.Resource
	planner  reins.Lease
}

func (w *walk) register(ctx context.Context) (err error) {
	// A browser reaches the public web and nothing private but what is named.
	_, err = w.host.Register(ctx, reins.Registration{
		Key:        w.key,
		Attachment: attachment(1, "planner-7"),
		Spec:       reins.BrowserSpec{Egress: reins.EgressPolicy{AllowPrivate: []string{w.url[len("http://"):]}}},
	})
	if err != nil {
		return err
	}
	w.resource, err = w.host.Open(ctx, w.key)
	return err
}

// attachment says which session drives the browser; a higher revision replaces
// a lower one.
func attachment(revision uint64, session string) reins.Attachment {
	return reins.Attachment{AuthorityID: "shop", Revision: revision, Session: &reins.Session{Harness: "embed", Native: session}}
}

// lease issues a capability and turns it into a lease. In a product the token
// goes to whoever acts, and they acquire.
func (w *walk) lease(ctx context.Context, b reins.Binding) (reins.Lease, error) {
	b.Project, b.Resource, b.Peer, b.Source = w.key.Project, w.key.ID, "local", reins.SourceLibrary
	c, err := w.host.Issue(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	return w.host.Acquire(ctx, c.Token, b)
}

func (w *walk) agent(ctx context.Context) (err error) {
	at := attachment(1, "planner-7")
	w.planner, err = w.lease(ctx, reins.Binding{Actor: "planner", Role: reins.RoleAgent, AuthorityID: at.AuthorityID, Revision: at.Revision, Session: at.Session})
	if err != nil {
		return err
	}
	if _, err := w.planner.Do(ctx, reins.Call{Action: reins.Navigate{URL: w.url}}); err != nil {
		return err
	}
	seen, err := w.planner.Do(ctx, reins.Call{Action: reins.Snapshot{}})
	if err != nil {
		return err
	}
	ref, err := refOf(seen.Snapshot.Text, `button "Add"`)
	if err != nil {
		return err
	}
	// One call: click, wait for what it sets off, and read what has changed.
	done, err := w.planner.Do(ctx, reins.Call{Action: reins.Click{Ref: ref, Waits: reins.Waits{Snapshot: true}}})
	if err != nil {
		return err
	}
	fmt.Printf("the agent added one; what has changed:\n%s", done.Snapshot.Text)
	return nil
}

func (w *walk) gate(ctx context.Context) error {
	_, err := w.planner.Do(ctx, reins.Call{Action: reins.Navigate{URL: w.url + "/admin"}})
	return expect("the gate", err, reins.CodeDenied)
}

func (w *walk) takeover(ctx context.Context) error {
	person, err := w.lease(ctx, reins.Binding{Actor: "ada@example.com", Role: reins.RoleHuman})
	if err != nil {
		return err
	}
	if _, err := person.Do(ctx, reins.Call{Action: reins.RequestControl{}}); err != nil {
		return err
	}
	_, err = w.planner.Do(ctx, reins.Call{Action: reins.Snapshot{}})
	if err := expect("the agent, while a person has control", err, reins.CodeHumanControlled); err != nil {
		return err
	}
	if _, err := person.Do(ctx, reins.Call{Action: reins.ReleaseControl{}}); err != nil {
		return err
	}
	if _, err := w.planner.Do(ctx, reins.Call{Action: reins.Snapshot{}}); err != nil {
		return err
	}
	fmt.Println("the agent, after the hand-back: goes on by itself")
	return person.Release(ctx)
}

func (w *walk) replace(ctx context.Context) error {
	// When Attach returns, nothing of the planner acts or will act any more;
	// the browser, its tabs and its cookies stay.
	at := attachment(2, "buyer-1")
	if err := w.resource.Attach(ctx, at); err != nil {
		return err
	}
	_, err := w.planner.Do(ctx, reins.Call{Action: reins.Snapshot{}})
	if err := expect("the planner, after another session was attached", err, reins.CodeLeaseEnded); err != nil {
		return err
	}
	buyer, err := w.lease(ctx, reins.Binding{Actor: "buyer", Role: reins.RoleAgent, AuthorityID: at.AuthorityID, Revision: at.Revision, Session: at.Session})
	if err != nil {
		return err
	}
	seen, err := buyer.Do(ctx, reins.Call{Action: reins.Snapshot{}})
	if err != nil {
		return err
	}
	fmt.Printf("the buyer sees the same page:\n%s", seen.Snapshot.Text)
	return nil
}

func (w *walk) retire(ctx context.Context) error {
	if err := w.resource.Retire(ctx); err != nil {
		return err
	}
	_, err := w.host.Open(ctx, w.key)
	return expect("a retired browser", err, reins.CodeRetired)
}

// expect is for refusals that are meant to come: every error has a code of a
// closed set, a sentence, and what to do next.
func expect(what string, err error, code reins.Code) error {
	if reins.CodeOf(err) != code {
		return fmt.Errorf("%s: got %v, want %s", what, err, code)
	}
	e := reins.AsError(err)
	fmt.Printf("%s: %s: %s\n", what, e.Code, e.Message)
	return nil
}

// refOf finds the ref of the first line of a snapshot that holds what.
func refOf(snapshot, what string) (reins.Ref, error) {
	m := regexp.MustCompile(regexp.QuoteMeta(what) + `.*\[ref=([^\]]+)\]`).FindStringSubmatch(snapshot)
	if m == nil {
		return "", fmt.Errorf("no %s in the snapshot:\n%s", what, snapshot)
	}
	return reins.Ref(m[1]), nil
}

// serveShop serves one page on loopback until it is closed.
func serveShop() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck // ends with the listener
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1><p role="status">0 in the cart</p>
<button onclick="document.querySelector('p').textContent=++n+' in the cart'">Add</button><script>let n=0</script>`)
	}))
	return l, nil
}
