// Command bench measures every verb of Reins, through MCP, against the floor:
// the least raw DevTools calls for the same effect in the same Chromium build.
// Both run interleaved in one run on one machine, and what it prints are
// medians and their ratios; absolute times say little about another machine.
//
// The floor drives a Chromium started with the same flags but without a cell,
// proxy or driver, over its DevTools pipe. Reins is the real binary, spoken to
// by a real MCP client over stdio.
//
//	make bench
//	make bench ARGS="--rounds 50 --engine shell"
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

type options struct {
	reins    string
	chromium string
	engine   string
	rounds   int
	starts   int
}

func main() {
	self, _ := os.Executable()
	var o options
	flag.StringVar(&o.reins, "reins", filepath.Join(filepath.Dir(self), "reins"), "the binary to measure")
	flag.StringVar(&o.engine, "engine", "full", "full or shell")
	flag.StringVar(&o.chromium, "chromium", "", "the browser for the floor; default Debian's of the engine")
	flag.IntVar(&o.rounds, "rounds", 30, "rounds of each verb")
	flag.IntVar(&o.starts, "starts", 10, "rounds of the start")
	flag.Parse()
	if o.chromium == "" {
		o.chromium = "/usr/lib/chromium/chromium"
		if o.engine == "shell" {
			o.chromium = "/usr/lib/chromium/chromium-headless-shell"
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if os.Geteuid() == 0 {
		return fmt.Errorf("browsers never run as root; use make bench, which becomes an ordinary user")
	}
	site, err := serve()
	if err != nil {
		return err
	}
	defer site.Close()
	fmt.Printf("engine %s, %d rounds, medians in ms; %s/%s, %d cores, %s\n\n",
		o.engine, o.rounds, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	var table table
	if err := starts(ctx, o, site, &table); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	raw, err := startFloor(ctx, o)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	defer raw.Close()
	agent, err := startReins(ctx, o, site)
	if err != nil {
		return fmt.Errorf("reins: %w", err)
	}
	defer agent.Close()
	if err := agent.navigate(ctx, site.url("35")); err != nil {
		return err
	}
	if err := agent.snapshot(ctx); err != nil {
		return err
	}
	small, err := agent.memory()
	if err != nil {
		return err
	}
	for _, m := range measures {
		if err := m.run(ctx, o.rounds, raw, agent, site, &table); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	table.print(os.Stdout)
	large, err := agent.memory()
	if err != nil {
		return err
	}
	fmt.Printf("\nmemory, PSS: with the small page %s; after the run %s\n", small, large)
	return nil
}
