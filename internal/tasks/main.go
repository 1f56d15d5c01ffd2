package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/reins-browser/reins/internal/tasks/agents"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := measure(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "reins-tasks:", err)
	}
	os.Exit(code)
}

// options are what the command line says.
type options struct {
	program
	seeds   uint64
	only    string
	json    bool
	trace   bool
	miniwob string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	reins := os.Getenv("REINS_BIN")
	if reins == "" {
		reins = filepath.Join("bin", "reins")
	}
	flags := flag.NewFlagSet("reins-tasks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Reins, "reins", reins, "the `binary` to measure")
	flags.StringVar(&o.Engine, "engine", "shell", "full or shell")
	flags.StringVar(&o.Chromium, "chromium", "", "`path` of the browser")
	flags.StringVar(&o.RunAs, "run-as", "", "`user` to run as, when started as root")
	flags.StringVar(&o.only, "only", "", "only the tasks of these `names`, separated by commas; a name may end with *")
	flags.Uint64Var(&o.seeds, "seeds", 1, "how many seeds for each task")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.miniwob, "miniwob", os.Getenv("MINIWOB"), "`directory` of a checkout of MiniWoB++: work on its pages instead")
	flags.BoolVar(&o.trace, "trace", false, "show every call and answer, and what the server says, on standard error")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not an option", flags.Arg(0))
	}
	if o.seeds == 0 {
		return o, errors.New("--seeds must be at least 1")
	}
	return o, nil
}

// choose takes the tasks of the names, all when there are none.
func choose(all []agents.Task, names string) ([]agents.Task, error) {
	if names == "" {
		return all, nil
	}
	var out []agents.Task
	for name := range strings.SplitSeq(names, ",") {
		before := len(out)
		prefix, open := strings.CutSuffix(name, "*")
		for _, t := range all {
			if t.Name == name || open && strings.HasPrefix(t.Name, prefix) {
				out = append(out, t)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("no task is called %q", name)
		}
	}
	return out, nil
}

// measure does everything and returns the exit code.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	} else if err != nil {
		return 2, err
	}
	tasks := agents.All()
	if o.miniwob != "" {
		tasks = agents.MiniWoB()
	}
	chosen, err := choose(tasks, o.only)
	if err != nil {
		return 2, err
	}
	if o.trace {
		o.Stderr, o.Trace = stderr, stderr
	}
	all, err := runAll(ctx, o, chosen)
	if err != nil {
		return 2, err
	}
	print := printTable
	if o.json {
		print = printJSON
	}
	if err := print(stdout, all); err != nil {
		return 2, err
	}
	if t := sum(all); t.Done < t.Tried {
		return 1, nil
	}
	return 0, nil
}

// runAll runs every task with every seed over one server, in order.
func runAll(ctx context.Context, o options, chosen []agents.Task) ([]result, error) {
	f, err := serve(o.miniwob)
	if err != nil {
		return nil, err
	}
	defer f.close()
	o.Allow = f.allow()
	s, err := connect(ctx, o.program)
	if err != nil {
		return nil, err
	}
	s.trace = o.Trace
	var all []result
	for seed := uint64(1); seed <= o.seeds; seed++ {
		for _, t := range chosen {
			all = append(all, run(ctx, s, f, t, seed))
		}
	}
	return all, errors.Join(context.Cause(ctx), s.Close())
}
