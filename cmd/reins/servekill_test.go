package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

var rounds = flag.Int("rounds", envInt("ROUNDS", 16), "how often `reins serve` is killed (STO-3); also as $ROUNDS")

func envInt(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// campaign is what clients of a server that is killed again and again were told.
type campaign struct {
	mu       sync.Mutex
	next     int
	revision map[string]uint64 // acknowledged, by resource
	asked    map[string]uint64 // the newest asked for
	retired  map[string]bool
	retiring map[string]bool // asked for
	keys     map[string]string
	revoked  map[string]string
	revoking map[string]bool
	held     []reins.Capability // of the life before
	pids     map[int]bool
}

// STO-3, OVW-1, LIFE-4: `reins serve` is killed at random points of its start, its work
// and its stop. Each time no process is left, and the next one starts, has all that was
// acknowledged, revives nothing that was retired or revoked, no lease and no generation.
func TestKilledServe(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(t.TempDir(), "state")
	c := &campaign{
		revision: map[string]uint64{}, asked: map[string]uint64{}, retired: map[string]bool{}, retiring: map[string]bool{},
		keys: map[string]string{}, revoked: map[string]string{}, revoking: map[string]bool{}, pids: map[int]bool{},
	}
	points := map[string]int{}
	for round := range *rounds {
		s := spawnServe(t, state)
		points[c.round(t, s, random, round)]++
		if t.Failed() {
			t.Fatalf("round %d\n%s", round, s.log)
		}
	}
	last := spawnServe(t, state).up()
	c.check(t, last)
	c.watch(last)
	if err := last.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, last.log)
	}
	var all []int
	for pid := range c.pids {
		all = append(all, pid)
	}
	gone(t, all, time.Now().Add(10*time.Second))
	nothingLeft(t, last.cmd)
	t.Logf("killed %v; %d resources, %d retired, %d keys, %d revoked; %d processes seen, all gone", points, len(c.revision), len(c.retired), len(c.keys), len(c.revoked), len(c.pids))
}

// round lets one server live and kills it; it returns when.
func (c *campaign) round(t *testing.T, s *serveProcess, random *rand.Rand, round int) string {
	pause := func(most time.Duration) { <-time.After(time.Duration(random.Int64N(int64(most)))) }
	kill := func() {
		c.watch(s)
		_ = s.end(syscall.SIGKILL)
		var all []int
		for pid := range c.pids {
			all = append(all, pid)
		}
		gone(t, all, time.Now().Add(10*time.Second))
	}
	if random.IntN(4) == 0 {
		pause(250 * time.Millisecond)
		kill()
		return "starting"
	}
	s.up()
	c.check(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for w := range 3 {
		seed := random.Uint64()
		work.Go(func() { c.work(ctx, s, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	if round%8 == 3 {
		work.Go(func() { c.browse(ctx, s) })
		pause(time.Second)
	}
	pause(150 * time.Millisecond)
	point := "working"
	if random.IntN(3) == 0 {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		pause(30 * time.Millisecond)
		point = "stopping"
	}
	kill()
	cancel()
	work.Wait()
	return point
}

// watch remembers the processes of a server.
func (c *campaign) watch(s *serveProcess) {
	for _, pid := range descendants(s.cmd.Process.Pid) {
		c.pids[pid] = true
	}
}

// work changes what lasts, and remembers what was asked for and what acknowledged.
func (c *campaign) work(ctx context.Context, s *serveProcess, random *rand.Rand) {
	client, err := s.client()
	if err != nil {
		return // it was killed early
	}
	defer client.Close()
	for ctx.Err() == nil {
		id := c.some(random)
		switch n := random.IntN(12); {
		case n < 4 || id == "":
			err = c.register(ctx, client)
		case n < 8:
			err = c.attach(ctx, client, id)
		case n < 9:
			err = c.retire(ctx, client, id)
		case n < 10:
			err = c.makeKey(ctx, client)
		case n < 11:
			err = c.revokeKey(ctx, client)
		default:
			err = c.hold(ctx, client, id)
		}
		switch reins.CodeOf(err) {
		case reins.CodeTransportFailure, reins.CodeCompletionUnknown, reins.CodeNotReady, reins.CodeRuntimeStopped:
			return // it is gone, or going
		}
	}
}

// some is a resource that nobody is about to retire, "" when there is none.
func (c *campaign) some(random *rand.Rand) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for id := range c.revision {
		if !c.retiring[id] {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[random.IntN(len(all))]
}

func (c *campaign) key(id string) reins.ResourceKey {
	return reins.ResourceKey{Project: "shop", ID: id}
}

func (c *campaign) register(ctx context.Context, client *api.Client) error {
	c.mu.Lock()
	c.next++
	id, lasting := fmt.Sprintf("r%d", c.next), c.next%3 == 0
	c.asked[id] = 1
	c.mu.Unlock()
	reg := registration(id, nil)
	if lasting {
		reg.Spec.Workspace = id
	}
	_, err := client.Register(ctx, reg)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revision[id] = max(c.revision[id], 1)
	}
	return err
}

func (c *campaign) attach(ctx context.Context, client *api.Client, id string) error {
	c.mu.Lock()
	c.asked[id]++
	n := c.asked[id]
	c.mu.Unlock()
	r, err := client.Open(ctx, c.key(id))
	if err == nil {
		err = r.Attach(ctx, reins.Attachment{AuthorityID: "host", Revision: n, Session: &reins.Session{Harness: "h", Native: strconv.FormatUint(n, 10)}})
	}
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revision[id] = max(c.revision[id], n)
	}
	return err
}

func (c *campaign) retire(ctx context.Context, client *api.Client, id string) error {
	c.mu.Lock()
	c.retiring[id] = true
	c.mu.Unlock()
	r, err := client.Open(ctx, c.key(id))
	if err == nil {
		err = r.Retire(ctx)
	}
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.retired[id] = true
	}
	return err
}

func (c *campaign) makeKey(ctx context.Context, client *api.Client) error {
	k, err := client.CreateKey(ctx, api.KeyForm{Project: "shop"})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys[k.ID] = k.Token
	}
	return err
}

func (c *campaign) revokeKey(ctx context.Context, client *api.Client) error {
	c.mu.Lock()
	var id string
	for k := range c.keys {
		if !c.revoking[k] {
			id = k
			break
		}
	}
	if id == "" {
		c.mu.Unlock()
		return nil
	}
	c.revoking[id] = true
	c.mu.Unlock()
	err := client.RevokeKey(ctx, id)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revoked[id] = c.keys[id]
	}
	return err
}

// hold acquires a lease, which must not live in the next process.
func (c *campaign) hold(ctx context.Context, client *api.Client, id string) error {
	b := reins.Binding{Project: "shop", Resource: id, Actor: "m", Role: reins.RoleHuman, Peer: "test", Source: reins.SourceAPI}
	made, err := client.Issue(ctx, b, 0)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.held = append(c.held, made)
	c.mu.Unlock()
	_, err = client.Acquire(ctx, made.Token, b)
	return err
}

// browse has a browser up, or on its way.
func (c *campaign) browse(ctx context.Context, s *serveProcess) {
	client, err := s.client()
	if err != nil {
		return
	}
	defer client.Close()
	reg := registration("browser", nil)
	if _, err := client.Register(ctx, reg); err != nil {
		return
	}
	if r, err := client.Open(ctx, reg.Key); err == nil {
		_ = r.Start(ctx) // it is killed meanwhile, or not
	}
}

// check holds a server that has started against what its predecessors said.
func (c *campaign) check(t *testing.T, s *serveProcess) {
	t.Helper()
	client := s.api()
	all, err := client.List(t.Context(), "shop")
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	seen := map[string]uint64{}
	for _, i := range all {
		id := i.Key.ID
		seen[id] = i.Attachment.Revision
		switch {
		case c.retired[id]:
			t.Errorf("%s was retired and is back", id)
		case id != "browser" && (i.Attachment.Revision < c.revision[id] || i.Attachment.Revision > c.asked[id]):
			t.Errorf("%s is at revision %d; %d was acknowledged, %d asked for", id, i.Attachment.Revision, c.revision[id], c.asked[id])
		case i.Incarnation != 0 || i.Participants != 0:
			t.Errorf("%s came with a browser or somebody: %+v", id, i)
		}
	}
	for id := range c.revision {
		if _, ok := seen[id]; !ok && !c.retiring[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for id := range seen { // what came in unacknowledged is there from now on
		c.revision[id] = max(c.revision[id], seen[id])
	}
	for id := range c.retiring {
		if _, ok := seen[id]; !ok {
			c.retired[id] = true
		} else {
			delete(c.retiring, id)
		}
	}
	c.checkKeys(t, s, client)
	for _, h := range c.held {
		if _, err := client.Acquire(t.Context(), h.Token, h.Binding); reins.CodeOf(err) != reins.CodeUnauthorized {
			t.Errorf("a lease of an earlier life: %v", err)
		}
	}
	c.held = nil
	generations, err := filepath.Glob(filepath.Join(s.dir(), "generations", "*"))
	if err != nil || len(generations) != 1 {
		t.Errorf("generations: %v %v", generations, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir(), "generations", "*", "profiles", "*")); err != nil || len(left) > 0 {
		t.Errorf("profiles: %v %v", left, err)
	}
}

func (c *campaign) checkKeys(t *testing.T, s *serveProcess, client *api.Client) {
	t.Helper()
	listed, err := client.Keys(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]bool{}
	for _, k := range listed {
		live[k.ID] = k.Revoked.IsZero()
	}
	for id := range c.keys {
		switch now, there := live[id]; {
		case !there:
			t.Errorf("key %s was acknowledged and is lost", id)
		case now && c.revoked[id] != "":
			t.Errorf("key %s was revoked and is good", id)
		case !now && !c.revoking[id]:
			t.Errorf("key %s is revoked and nobody asked", id)
		}
	}
	for _, token := range c.revoked { // any one, with its secret
		at := s.instance
		at.KeyFile = filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(at.KeyFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		other, err := at.client()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.List(t.Context(), "shop"); reins.CodeOf(err) != reins.CodeUnauthorized {
			t.Errorf("a revoked key: %v", err)
		}
		break
	}
}
