package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/demo"
)

func newDemo(io stdio) *cobra.Command {
	var f mcpFlags
	var once bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Walk through a small shop, by a real MCP client",
		Long: `Serves a small shop on this machine, starts ` + "`reins mcp`" + ` as a client would, and
walks through the shop with its six tools: a sign-in that refuses at first, a
table that loads by script, a form with a control of every kind, a frame of
another site, a dialog, a download. Prints each call, how long it took, and what came of it.

It begins with a link to the browser's live picture, goes slowly enough to be watched,
and asks for a person at the sign-in; when nobody comes it signs in by itself. Then the
shop stays open for your own client, until Ctrl-C. With --once it does all of it alone,
as fast as it can, and ends.`,
		Example: "  reins demo\n  reins demo --once --engine shell",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.logLevel = "error"
			if _, _, err := f.check(io); err != nil {
				return err
			}
			if err := becomeOrdinary(f.runAs); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runDemo(ctx, io, f, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "walk alone and without pauses, and end")
	f.addBrowser(cmd)
	return cmd
}

func runDemo(ctx context.Context, io stdio, f mcpFlags, once bool) (err error) {
	site, err := demo.Serve()
	if err != nil {
		return err
	}
	defer site.Close()
	program, err := os.Executable()
	if err != nil {
		return reins.Errorf(reins.CodeInternal, "this program cannot find itself: %w", err)
	}
	// By descriptor and not by path: the path may lead through a directory that
	// the ordinary user cannot enter.
	server := exec.Command("/proc/self/exe", f.mcpArguments(site, once)...)
	server.Args[0] = "reins"
	server.Stderr = io.err
	colour := isTerminal(os.Stdout)
	p := palette(colour)
	fmt.Fprintf(io.out, "A shop on %s, and an agent with six tools: %s\n", site.URL(), p.dim("reins mcp, over stdio"))
	began := time.Now()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "reins demo", Version: version}, nil).
		Connect(ctx, &sdk.CommandTransport{Command: server, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		return reins.Errorf(reins.CodeStartupFailed, "`reins mcp` did not answer: %w", err)
	}
	defer client.Close()
	list, err := listSize(ctx, client, once)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "%s\n", p.dim(fmt.Sprintf("The handshake took %d ms; Chromium starts meanwhile.", time.Since(began).Milliseconds())))
	tour := &demo.Tour{Site: site, Client: client, Out: io.out, Colour: colour}
	if !once {
		link, err := demoLink(ctx, server.Process.Pid)
		if err != nil {
			return err
		}
		fmt.Fprintf(io.out, "\n%s  %s\n%s\n", p.paint("1", "Watch it:"), p.paint("36", link),
			p.dim(fmt.Sprintf("At the sign-in the agent asks for you, for %s; then it goes on by itself.", demoPerson)))
		tour.Pace, tour.Person = demoPace, demoPerson
	}
	if err := tour.Walk(ctx); err != nil {
		return err
	}
	own, browser := memoryHeld(server.Process.Pid)
	tour.Summary(list, own, browser)
	if err := client.Close(); err != nil {
		return reins.Errorf(reins.CodeInternal, "`reins mcp` did not end well: %w", err)
	}
	whatNext(io.out, site, program, once, p)
	if once {
		return nil
	}
	<-ctx.Done()
	return nil
}

// How the demo is for people who watch.
const (
	demoPace   = 700 * time.Millisecond
	demoPerson = time.Minute
	demoLinked = 10 * time.Minute // life of the link
)

// demoLink is a link to the picture of the browser of a `reins mcp`, which says where
// that is once its runtime is up.
func demoLink(ctx context.Context, pid int) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPerson,
		reins.Errorf(reins.CodeStartupFailed, "`reins mcp` does not say where its page is"))
	defer cancel()
	for {
		all, err := instances(ctx)
		if err != nil {
			return "", err
		}
		for _, i := range all {
			if i.PID != pid {
				continue
			}
			c, err := i.client()
			if err != nil {
				return "", err
			}
			defer c.Close()
			link, err := c.Join(ctx, api.JoinForm{Actor: "you", Projects: []string{"*"}, Life: api.Life(demoLinked)})
			return link.URL, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return "", reins.ContextError(ctx)
		}
	}
}

// mcpArguments start the server as the person would for a site of their own.
func (f mcpFlags) mcpArguments(site *demo.Site, once bool) []string {
	arguments := []string{"mcp", "--engine", f.engine, "--log-level", f.logLevel}
	if !once {
		arguments = append(arguments, "--tools", "default,browser_request_human")
	}
	if f.chromium != "" {
		arguments = append(arguments, "--chromium", f.chromium)
	}
	for _, target := range site.Targets() {
		arguments = append(arguments, "--allow", target)
	}
	return arguments
}

// listSize is how many bytes the list of tools costs a client.
func listSize(ctx context.Context, client *sdk.ClientSession, once bool) (int, error) {
	tools, err := client.ListTools(ctx, nil)
	if err != nil {
		return 0, reins.Errorf(reins.CodeStartupFailed, "`reins mcp` did not list its tools: %w", err)
	}
	want := 6
	if !once {
		want++ // browser_request_human
	}
	if len(tools.Tools) != want {
		return 0, reins.Errorf(reins.CodeInternal, "`reins mcp` lists %d tools, not %d", len(tools.Tools), want)
	}
	body, err := json.Marshal(tools)
	return len(body), err
}

func whatNext(out io.Writer, site *demo.Site, program string, once bool, p palette) {
	fmt.Fprintf(out, "\n%s\n", p.paint("1", "What next"))
	rows := [][2]string{
		{"Claude Code", "claude mcp add reins -- " + program + " mcp"},
		{"Codex", "codex mcp add reins -- " + program + " mcp"},
		{"others", `{"mcpServers": {"reins": {"command": "` + program + `", "args": ["mcp"]}}}`},
		{"this machine", program + " doctor"},
	}
	if !once {
		var allow string
		for _, target := range site.Targets() {
			allow += " --allow " + target
		}
		rows = append(rows, [2]string{"this shop", program + " mcp" + allow})
		rows = append(rows, [2]string{"", "sign in as " + demo.Email + " with " + demo.Password})
	}
	for _, row := range rows {
		fmt.Fprintf(out, "  %-13s %s\n", row[0], p.paint("36", row[1]))
	}
	if !once {
		fmt.Fprintf(out, "\nThe shop stays open on %s until Ctrl-C.\n", site.URL())
	}
}
