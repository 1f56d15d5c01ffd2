package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins/internal/tasks/agents"
	"github.com/reins-browser/reins/internal/tasks/site"
)

func TestEveryPageHasAnAgentAndEveryAgentAPage(t *testing.T) {
	used := map[string]bool{}
	for _, task := range agents.All() {
		if !site.Has(task.Name) {
			t.Errorf("task %s has no page", task.Name)
		}
		short, _, _ := strings.Cut(task.Name, "-")
		used[task.Name], used[short] = true, true
	}
	for _, page := range site.Pages() {
		if !used[page] {
			t.Errorf("page %s has no task", page)
		}
	}
}

func TestChoose(t *testing.T) {
	for names, want := range map[string]int{"": len(agents.All()), "login": 1, "login*": 2, "mail-*,cart": 5, "none": 0, "login,none*": 0} {
		got, err := choose(agents.All(), names)
		if len(got) != want || (err != nil) != (want == 0) {
			t.Errorf("%q chooses %d tasks (%v), want %d", names, len(got), err, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"--help", 0}, {"--seeds 0", 2}, {"--only nothing", 2}, {"more", 2}, {"--nonsense", 2}, {"--reins /does/not/exist --only login", 2},
	} {
		var out, errs bytes.Buffer
		if code, err := measure(t.Context(), strings.Fields(c.args), &out, &errs); code != c.code || (err == nil) != (code == 0) {
			t.Errorf("%s: code %d, want %d; error %v", c.args, code, c.code, err)
		}
	}
	p := program{Reins: "reins", Engine: "shell", Allow: []string{"a:1", "b:2"}}
	if got, want := strings.Join(p.command().Args, " "), "reins mcp --tools tabs,browser_drag --engine shell --allow a:1 --allow b:2"; got != want {
		t.Errorf("the command is %q, want %q", got, want)
	}
}

func TestReports(t *testing.T) {
	all := []result{
		{Task: "a", Seed: 1, Done: true, Wall: time.Second, tally: tally{Calls: 2, Bytes: 100, Time: 10 * time.Millisecond}},
		{Task: "b", Seed: 1, Detail: "why", Wall: time.Second, tally: tally{Calls: 1, Bytes: 50, Time: 20 * time.Millisecond}},
	}
	sums := sum(all)
	want := totals{Tried: 2, Done: 1, Calls: 3, Bytes: 150, Wall: 2 * time.Second, CallMedian: 20 * time.Millisecond, BytesMed: 100}
	if sums != want {
		t.Errorf("totals are %+v, want %+v", sums, want)
	}
	var table, machine bytes.Buffer
	if err := printTable(&table, all); err != nil || !strings.Contains(table.String(), "1 of 2 done") || !strings.Contains(table.String(), "why") {
		t.Errorf("table (%v):\n%s", err, table.String())
	}
	var back struct {
		Totals  totals
		Results []map[string]any
	}
	if err := printJSON(&machine, all); err != nil || json.Unmarshal(machine.Bytes(), &back) != nil || back.Totals != want || len(back.Results) != 2 {
		t.Errorf("JSON (%v): %s", err, machine.String())
	}
}

// binary is the program to measure: REINS_BIN, or one built for the test.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("REINS_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "reins")
	cmd := exec.Command("go", "build", "-o", path, "github.com/reins-browser/reins/cmd/reins")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building reins: %v\n%s", err, out)
	}
	return path
}

// TestTasksOverTheRealServer is the benchmark itself: every task that today's
// verbs can do is done by an agent that has only tools and what they say.
func TestTasksOverTheRealServer(t *testing.T) {
	all, err := runAll(t.Context(), options{program: program{Reins: binary(t), Engine: "shell", Stderr: t.Output()}, seeds: 1}, agents.All())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if !r.Done {
			t.Errorf("%s (seed %d): %s", r.Task, r.Seed, r.Detail)
		}
	}
	var table bytes.Buffer
	if err := printTable(&table, all); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// TestWrongActsAreFoundWrong makes sure that pages judge: an agent that acts,
// but not as asked, has not done its task.
func TestWrongActsAreFoundWrong(t *testing.T) {
	f, err := serve("")
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	s, err := connect(t.Context(), program{Reins: binary(t), Engine: "shell", Allow: f.allow(), Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("ending the server: %v", err)
		}
	}()
	for _, c := range []struct {
		task string
		run  func(*agents.Agent)
	}{
		{"login", func(a *agents.Agent) { a.Push("Sign in") }},
		{"combobox", func(a *agents.Agent) { a.Push("Go") }},
		{"range", func(a *agents.Agent) { a.Put("Volume", "0"); a.Push("Save") }},
		{"dialogs-refuse", func(a *agents.Agent) { a.Push("Delete " + a.Q(0)); a.Look(); a.Push("OK") }},
	} {
		if r := run(t.Context(), s, f, agents.Task{Name: c.task, Run: c.run}, 1); r.Done || !strings.HasPrefix(r.Detail, "the page says") {
			t.Errorf("%s done wrongly is found done=%v: %s", c.task, r.Done, r.Detail)
		}
	}
	if r := run(t.Context(), s, f, agents.Task{Name: "login", Run: func(*agents.Agent) {}}, 1); r.Done || !strings.Contains(r.Detail, "no verdict") {
		t.Errorf("a task that nobody touched is found done=%v: %s", r.Done, r.Detail)
	}
}
