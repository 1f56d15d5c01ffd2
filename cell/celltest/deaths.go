package celltest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

func testClose(t *testing.T, s suite) {
	spec := s.spec(t)
	for round, want := range []string{`""`, `"kept=1"`} {
		c := s.start(t, spec)
		serve(t, c.Doors().Egress)
		p := speak(t, c).open("http://site.test/")
		if got := p.eval(`document.cookie`); got != want {
			t.Errorf("round %d: the cookie is %s, want %s", round, got, want)
		}
		p.eval(`document.cookie = "kept=1; max-age=1000"`)
		list := ofProfile(t, spec.Profile)
		begin := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		ended(t, c)
		if err := c.Err(); err != nil {
			t.Errorf("after Close the cell says %v", err)
		}
		t.Logf("closed in %s, %d processes gone after another %s", took, len(list), waitGone(t, spec.Profile, list))
		if took >= spec.Limits.CloseGrace {
			t.Errorf("it took %s: the browser did not exit by itself", took)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
	}
}

// ended checks that Done is closed and the doors with it.
func ended(t *testing.T, c cell.Cell) {
	t.Helper()
	select {
	case <-c.Done():
	default:
		t.Fatal("Done is not closed")
	}
	d := c.Doors()
	if _, err := d.ToBrowser.Write([]byte{0}); err == nil {
		t.Error("the door to the browser is open")
	}
	if _, err := d.FromBrowser.Read(make([]byte, 1)); err == nil {
		t.Error("the door from the browser is open")
	}
	if _, err := d.Egress.Accept(); err == nil {
		t.Error("the egress door is open")
	}
}

func testKill(t *testing.T, s suite) {
	spec := s.spec(t)
	c := s.start(t, spec)
	list := running(t, spec.Profile)
	begin := time.Now()
	if err := c.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed in %s", time.Since(begin))
	ended(t, c)
	waitGone(t, spec.Profile, list)
	if err := c.Err(); err != nil {
		t.Errorf("after Kill the cell says %v", err)
	}
}

// running waits until the cell's Chromium has a renderer and returns all of it.
func running(t *testing.T, profile string) (list []process) {
	t.Helper()
	until(t, "a renderer", func() bool {
		list = ofProfile(t, profile)
		for _, p := range list {
			if strings.Contains(p.command, "--type=renderer") {
				return true
			}
		}
		return false
	})
	return list
}

// dies kills one process of a cell and checks that all end, and that the cell
// says so.
func dies(t *testing.T, s suite, victim func([]process) process) {
	spec := s.spec(t)
	c := s.start(t, spec)
	list := running(t, spec.Profile)
	if err := syscall.Kill(victim(list).pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d processes gone after %s", len(list), waitGone(t, spec.Profile, list))
	select {
	case <-c.Done():
	case <-time.After(time.Second):
		t.Fatal("Done is not closed a second later")
	}
	ended(t, c)
	if err := c.Err(); reins.CodeOf(err) != reins.CodeBrowserEnded {
		t.Errorf("the cell says %v", err)
	}
	if err := c.Verify(context.Background()); err == nil {
		t.Error("an ended cell was verified")
	}
}

func testBrowserDies(t *testing.T, s suite) {
	dies(t, s, func(list []process) process {
		for _, p := range list {
			if p.parent == list[0].pid && !strings.Contains(p.command, "--type=") && strings.Contains(p.command, "--remote-debugging-pipe") {
				return p
			}
		}
		t.Fatalf("no browser process among %+v", list)
		return process{}
	})
}

func testInitDies(t *testing.T, s suite) {
	dies(t, s, func(list []process) process { return list[0] })
}

// testZygoteDies proves that a browser that can start no page any more is ended
// and told of, and does not stay to crash each page (B069).
func testZygoteDies(t *testing.T, s suite) {
	for nth := range 2 {
		spec := s.spec(t)
		c := s.start(t, spec)
		serve(t, c.Doors().Egress)
		speak(t, c).open("http://site.test/")
		if err := c.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := ofProfile(t, spec.Profile)
		var zygotes []process
		for _, p := range list {
			if strings.Contains(p.command, "--type=zygote") {
				zygotes = append(zygotes, p)
			}
		}
		if len(zygotes) < 2 {
			t.Fatalf("%d zygotes among %d processes", len(zygotes), len(list))
		}
		if err := syscall.Kill(zygotes[nth].pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.Done():
		case <-time.After(patience):
			t.Fatalf("the cell lives on without %.80q", zygotes[nth].command)
		}
		waitGone(t, spec.Profile, list)
		if err := c.Err(); reins.CodeOf(err) != reins.CodeBrowserEnded || !strings.Contains(err.Error(), "starts pages from") {
			t.Errorf("the cell says %v", err)
		}
	}
}

func testParentDies(t *testing.T, s suite) {
	spec := s.spec(t)
	p, said := s.holder(t, spec)
	expect(t, p, said, "s")
	expect(t, p, said, "r")
	list := running(t, spec.Profile)
	p.Kill()
	t.Logf("%d processes gone after %s", len(list), waitGone(t, spec.Profile, list))
	<-p.Done()
}

// killRounds and their moments: any point of a start, and a while beyond.
const (
	killRounds  = 20 // on each engine
	killLatest  = 500 * time.Millisecond
	killAtOnce  = 2
	killVictims = 3 // parent, init, any
)

// testRandomKills kills the parent, the init or any process of a cell at a
// random moment of its start, and wants nothing left.
func testRandomKills(t *testing.T, s suite) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := make(chan [2]int, killRounds)
	for range killRounds {
		rounds <- [2]int{random.IntN(int(killLatest)), random.IntN(killVictims)}
	}
	close(rounds)
	var all sync.WaitGroup
	defer all.Wait()
	for range killAtOnce {
		all.Go(func() {
			for r := range rounds {
				if !t.Run("kill", func(t *testing.T) { randomKill(t, s, time.Duration(r[0]), r[1]) }) {
					return
				}
			}
		})
	}
}

func randomKill(t *testing.T, s suite, after time.Duration, victim int) {
	spec := s.spec(t)
	p, said := s.holder(t, spec)
	expect(t, p, said, "s")
	select {
	case <-time.After(after):
	case <-t.Context().Done():
	}
	list := ofProfile(t, spec.Profile)
	switch {
	case victim == 1 && len(list) > 0:
		_ = syscall.Kill(list[0].pid, syscall.SIGKILL)
	case victim == 2 && len(list) > 0:
		// A helper process may die without the cell's end; the parent follows.
		_ = syscall.Kill(list[int(after)%len(list)].pid, syscall.SIGKILL)
		p.Kill()
	default:
		p.Kill()
	}
	waitGone(t, spec.Profile, list)
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the holder does not see its cell's end")
	}
	waitGone(t, spec.Profile, nil)
}

// testFiles proves that a cell writes into its two directories and nowhere
// else on the host: not into the home directory, not into /tmp.
func testFiles(t *testing.T, s suite) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec(t)
	if err := os.WriteFile(filepath.Join(spec.Uploads, "given"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := outside(home)
	c := s.start(t, spec)
	serve(t, c.Doors().Egress)
	p := speak(t, c).open("http://site.test/")
	p.eval(`localStorage.setItem("a", "b")`)
	// Where Chromium says its lock's socket is, nothing is on the host.
	if socket, err := os.Readlink(filepath.Join(spec.Profile, "SingletonSocket")); err == nil {
		if _, err := os.Lstat(socket); !os.IsNotExist(err) {
			t.Errorf("the browser made %s", socket)
		}
	} else if s.engine == reins.EngineFull {
		t.Error(err)
	}
	// A crash writes a report, if anything does.
	p.call(p.session, "Inspector.enable", nil, nil)
	p.send(p.session, "Page.crash", nil) // is never answered
	p.event("Inspector.targetCrashed")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path := range outside(home) {
		if !before[path] {
			t.Errorf("the browser made %s", path)
		}
	}
	if len(tree(spec.Profile)) < 5 {
		t.Error("the profile was not used")
	}
	if got := tree(spec.Uploads); len(got) != 2 {
		t.Errorf("the uploads became %v", got)
	}
}

// outside lists what Chromium makes outside its profile when it can, and no
// other program that may be at work meanwhile does.
func outside(home string) map[string]bool {
	all := map[string]bool{}
	for _, pattern := range []string{
		home + "/.config/[Cc]hrom*", home + "/.config/dconf", home + "/.cache/*", home + "/.pki", home + "/.local/share/*", home + "/Downloads",
	} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			all[path] = true
		}
	}
	return all
}

func testStartRefused(t *testing.T, s suite) {
	for name, breakIt := range map[string]func(*cell.Spec){
		"no profile":        func(c *cell.Spec) { c.Profile = "" },
		"relative profile":  func(c *cell.Spec) { c.Profile = "profile" },
		"missing downloads": func(c *cell.Spec) { c.Downloads += "/missing" },
		"locale":            func(c *cell.Spec) { c.Locale = "en_US; rm" },
		"time zone":         func(c *cell.Spec) { c.TimeZone = "../../etc/passwd" },
		"engine":            func(c *cell.Spec) { c.Engine = "lynx" },
		"navigation":        func(c *cell.Spec) { c.Navigation.Allow = []string{"https://site.test/"} },
		"limits":            func(c *cell.Spec) { c.Limits.CellTasks = 1 },
	} {
		spec := s.spec(t)
		breakIt(&spec)
		c, err := s.New().Start(t.Context(), spec)
		if c != nil {
			t.Errorf("%s: started", name)
			_ = c.Kill(t.Context())
		}
		if reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testStartCancelled(t *testing.T, s suite) {
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 8 * time.Millisecond} {
		spec := s.spec(t)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		c, err := s.New().Start(ctx, spec)
		cancel()
		if err == nil {
			_ = c.Kill(t.Context())
		} else if code := reins.CodeOf(err); code != reins.CodeTimeout {
			t.Errorf("after %s: %v", after, err)
		}
		waitGone(t, spec.Profile, nil)
	}
}
