package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/hold"
	"github.com/reins-browser/reins/internal/tooltable"
)

// act is `reins act`: the tools that models are given, from a shell.
type act struct {
	remote
	binding    bindingFlags
	on         string
	capability string
	out        string
	tools      tooltable.List
}

// actLife is how long a capability lives that is made for one call; it is renewed
// while the call goes on.
const actLife = time.Minute

func newAct(io stdio) *cobra.Command {
	a := &act{remote: remote{io: io}}
	tools, err := tooltable.Choose(tooltable.Choice{Names: []string{tooltable.ToolsetFull}, Secrets: true, People: true})
	a.tools = tools
	cmd := &cobra.Command{
		Use:   "act VERB",
		Short: "Act on a browser of a running server, as an agent would",
		Long: `Does one thing with a browser of a running server, under the rules that hold for agents:
it waits its turn, gates are asked, it is audited. Verbs, arguments and answers are those
of the tools that models are given. Refs from a snapshot hold until the page is
replaced, also from one call to the next; what an agent has seen already does not, so
each call shows the page whole.

--on names the browser ($REINS_ON); where a project has one only, it is that. With a key
the call acts as the session that is attached to the browser; with --capability as
whoever the capability was issued to, which needs no key.`,
		Example: `  reins act navigate shop.test --on till
  reins act fill f1e3 ada@example.com
  reins act click f1e5 --snapshot
  reins act screenshot --full-page --out page.png
  reins act --capability planner.json snapshot --json`,
	}
	var verbs []*cobra.Command
	if err == nil { // the full toolset is there
		for _, t := range tools.Tools {
			verbs = append(verbs, a.verb(t))
		}
	}
	a.family(cmd, verbs...)
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.on, "on", "", "`[PROJECT/]RESOURCE` to act on (default: the only one of the project)")
	flags.StringVar(&a.capability, "capability", "", "`file` with a capability to act under; - is standard input")
	flags.StringVar(&a.binding.actor, "actor", "", "`name` under which to act (default: this user's)")
	flags.StringVar(&a.binding.scope, "scope", "", "`scope` that gates and audit are told")
	flags.StringVar(&a.binding.run, "run", "", "`ID` of the run that gates and audit are told")
	_ = cmd.RegisterFlagCompletionFunc("on", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) { // the flag is there
		return a.offered(cmd, func(ctx context.Context, c *api.Client) ([]string, error) { return a.resources(ctx, c, nil, begun) })
	})
	return cmd
}

// verb makes the command of a tool.
func (a *act) verb(t *tooltable.Tool) *cobra.Command {
	given := newActArguments(t, a.tools.Offer)
	cmd := &cobra.Command{
		Use:     given.use(),
		Aliases: given.aliases(),
		Short:   t.Title(),
		Long:    given.long(),
		Example: actExamples[t.Name()],
		Args:    given.count,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}
			body, err := given.object(cmd, arguments)
			if err != nil {
				return err
			}
			call, err := a.tools.Decode(t, body)
			if err != nil {
				return given.named(err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return given.named(a.do(ctx, cmd, call))
		},
	}
	given.add(cmd)
	if t.Verb() == reins.VerbScreenshot || t.Verb() == reins.VerbPDF {
		cmd.Flags().StringVarP(&a.out, "out", "o", "", "`file` that it is written to as well, replacing what is there")
	}
	return cmd
}

// do makes a call under a lease of its own.
func (a *act) do(ctx context.Context, cmd *cobra.Command, call tooltable.Call) error {
	var get func(context.Context) (reins.Lease, error)
	var c *api.Client
	var err error
	if a.capability != "" {
		c, get, err = a.participant()
	} else {
		c, get, err = a.trusted(ctx, cmd)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	held := hold.New(ctx, hold.Options{Get: get})
	lease, err := held.Current(ctx)
	if err == nil {
		err = a.answer(ctx, lease, call)
	}
	if a.capability != "" {
		return err // its lease stays: a capability is used up when one is released
	}
	cancel()
	held.Close()
	_ = c.Close() // nothing is left to release
	return err
}

// participant acts under a capability alone.
func (a *act) participant() (*api.Client, func(context.Context) (reins.Lease, error), error) {
	if a.on != "" || a.binding != (bindingFlags{}) {
		return nil, nil, reins.Errorf(reins.CodeInvalidInput, "--capability says who acts on what; leave out --on, --actor, --scope and --run")
	}
	made, err := readCapability(a.capability, a.io.in)
	if err != nil {
		return nil, nil, err
	}
	if a.server == "" && os.Geteuid() == 0 {
		if err := becomeOrdinary(""); err != nil {
			return nil, nil, err
		}
	}
	at, err := a.find(context.Background())
	if err != nil {
		return nil, nil, err
	}
	t, err := transportFor(at.Certificate)
	if err != nil {
		return nil, nil, err
	}
	c, err := api.NewClient(api.ClientOptions{URL: at.URL, Transport: t})
	return c, func(ctx context.Context) (reins.Lease, error) { return c.Acquire(ctx, made.Token, made.Binding) }, err
}

// trusted acts as the session that is attached, under a capability made for the call.
func (a *act) trusted(ctx context.Context, cmd *cobra.Command) (*api.Client, func(context.Context) (reins.Lease, error), error) {
	c, err := a.client(ctx, cmd)
	if err != nil {
		return nil, nil, err
	}
	key, err := a.target(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	f := a.binding
	f.peer, f.source = "reins act", string(reins.SourceAPI)
	b, err := f.binding(ctx, c, key, reins.RoleAgent)
	if err != nil {
		return nil, nil, err
	}
	return c, func(ctx context.Context) (reins.Lease, error) {
		made, err := c.Issue(ctx, b, actLife)
		if err != nil {
			return nil, err
		}
		return c.Acquire(ctx, made.Token, b)
	}, nil
}

// target is the resource to act on.
func (a *act) target(ctx context.Context, c *api.Client) (reins.ResourceKey, error) {
	if a.on != "" {
		return a.key(a.on)
	}
	all, err := c.List(ctx, a.project)
	if err != nil {
		return reins.ResourceKey{}, err
	}
	switch len(all) {
	case 0:
		return reins.ResourceKey{}, reins.Errorf(reins.CodeNotFound, "project %s has no browser to act on; make one with `reins resource create`, or name one with --on", a.project)
	case 1:
		return all[0].Key, nil
	}
	return reins.ResourceKey{}, reins.Errorf(reins.CodeInvalidInput, "project %s has %d browsers; say which with --on", a.project, len(all))
}

// shellAnswer is an answer as JSON, with the file that was made.
type shellAnswer struct {
	*tooltable.Answer
	Artifact *reins.Artifact `json:"artifact,omitempty"`
}

// answer makes the call and prints what came of it.
func (a *act) answer(ctx context.Context, lease reins.Lease, call tooltable.Call) error {
	w := a.io.working("")
	answer, err := call.Do(ctx, lease, func(p reins.Progress) { w.tell(waitsFor(p)) })
	w.end()
	if err != nil {
		return err
	}
	if a.out != "" && answer.Stored() != nil {
		if err := a.write(ctx, lease, *answer.Stored()); err != nil {
			return err
		}
	}
	if a.json {
		return printJSON(a.io.out, shellAnswer{answer, answer.Stored()})
	}
	_, err = fmt.Fprintln(a.io.out, printable(answer.Text()))
	return err
}

// waitsFor says what a call waits for; what takes no time is not said.
func waitsFor(p reins.Progress) string {
	switch p.Stage {
	case "queue":
		return fmt.Sprintf("Waiting for %d ahead.", p.Position)
	case "browser":
		return "The browser is starting."
	case "agents":
		return "Waiting for agents to stop."
	case "person":
		return "Waiting for a person."
	}
	return ""
}

// write makes a file of an artifact, read under the lease.
func (a *act) write(ctx context.Context, lease reins.Lease, from reins.Artifact) error {
	return writeWhole(a.out, &leaseReader{ctx: ctx, lease: lease, artifact: from})
}

// leaseReader reads an artifact as a participant does: in chunks, each under a check of
// authority (LSE-8).
type leaseReader struct {
	ctx      context.Context // of the one command that it is for
	lease    reins.Lease
	artifact reins.Artifact
	at       int64
	chunk    bytes.Reader
}

const leaseChunk = 1 << 20

// Read implements io.Reader.
func (r *leaseReader) Read(p []byte) (int, error) {
	if r.chunk.Len() == 0 {
		if r.at == r.artifact.Size {
			return 0, io.EOF
		}
		got, err := r.lease.Do(r.ctx, reins.Call{Action: reins.ReadArtifact{
			Artifact: r.artifact.ID, Offset: r.at, Length: min(leaseChunk, r.artifact.Size-r.at),
		}})
		if err != nil {
			return 0, err
		}
		if len(got.Data) == 0 {
			return 0, reins.Errorf(reins.CodeCorrupt, "artifact %s ends after %d of %d bytes", r.artifact.ID, r.at, r.artifact.Size)
		}
		r.at += int64(len(got.Data))
		r.chunk.Reset(slices.Clone(got.Data))
	}
	return r.chunk.Read(p)
}

// dashed is a name as flags and commands are spelled.
func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }
