package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

func newCapability(io stdio) *cobra.Command {
	r := &remote{io: io}
	return r.family(&cobra.Command{
		Use:   "capability",
		Short: "Rights to act on one browser: issue, revoke",
		Long: `A capability is the right of one participant to act on one browser, from one place. Its
token is shown once; whoever has it and names the same binding acts under it, with no
key. It ends with its life, unless it is renewed; when it is revoked; and when another
session is attached.`,
		Example: `  reins capability issue till --actor planner --out planner.json
  reins act --capability planner.json snapshot
  reins capability revoke cap_…`,
	}, r.issue(), r.revoke())
}

// bindingFlags say who a binding is for.
type bindingFlags struct{ actor, role, source, peer, scope, run string }

func (f *bindingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.actor, "actor", "", "`name` under which the participant acts (default: this user's)")
	flags.StringVar(&f.scope, "scope", "", "`scope` that gates and audit are told")
	flags.StringVar(&f.run, "run", "", "`ID` of the run that gates and audit are told")
}

// binding is of a participant of that role on a resource as it is attached now.
func (f *bindingFlags) binding(ctx context.Context, c *api.Client, key reins.ResourceKey, role reins.Role) (reins.Binding, error) {
	b := reins.Binding{
		Project: key.Project, Resource: key.ID, Actor: f.actor, Role: role, Peer: f.peer, Source: reins.Source(f.source), Scope: f.scope, Run: f.run,
	}
	if b.Actor == "" {
		b.Actor = userName()
	}
	if role == reins.RoleHuman {
		return b, b.Validate()
	}
	i, err := info(ctx, c, key)
	if err != nil {
		return b, err
	}
	a := i.Attachment
	if a.Session == nil {
		return b, reins.Errorf(reins.CodeInvalidInput, "%s is attached to no session, so no agent may act on it; see `reins resource attach --help`", key)
	}
	b.AuthorityID, b.Revision, b.Session = a.AuthorityID, a.Revision, a.Session
	return b, b.Validate()
}

func (r *remote) issue() *cobra.Command {
	f := bindingFlags{}
	var life time.Duration
	var out string
	cmd := r.asks(&cobra.Command{
		Use:   "issue [PROJECT/]RESOURCE",
		Short: "Make a capability, and show its token once",
		Long: `Makes a capability for one participant on one browser. An agent's is bound to the
session that is attached now.

What the server observes of who uses it has to match --source and --peer: over the HTTP
API the source is "api" and the peer the address that the participant comes from.
` + "`reins act --capability`" + `, and every program that reads a capability as JSON, take what
--json prints or --out writes.`,
		Example: `  reins capability issue till --actor planner --out planner.json
  reins capability issue till --actor planner --run run-7 --life 1h --json
  reins capability issue till --actor ada@example.com --role human`,
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		b, err := f.binding(ctx, c, key, reins.Role(f.role))
		if err != nil {
			return err
		}
		made, err := c.Issue(ctx, b, life)
		if err != nil {
			return err
		}
		if out != "" {
			if err := writeSecret(out, made); err != nil {
				return err
			}
			return r.say(map[string]any{"capability": made.ID, "expires": made.Expires, "file": out}, "Capability %s of %s for %s, until %s, is in %s.", made.ID, key, word(b.Actor), clock(made.Expires), out)
		}
		return r.say(made, "Capability %s of %s for %s, until %s. Its token, shown once:\n%s", made.ID, key, word(b.Actor), clock(made.Expires), string(made.Token))
	})
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.role, "role", string(reins.RoleAgent), "\"agent\" or \"human\"")
	flags.StringVar(&f.source, "source", string(reins.SourceAPI), "door through which the participant comes: api, mcp, pipe, viewer, library")
	flags.StringVar(&f.peer, "peer", "127.0.0.1", "what that door observes of it: an `address`")
	flags.DurationVar(&life, "life", 0, "how long it is good for unless renewed (default: the server's)")
	flags.StringVarP(&out, "out", "o", "", "`file` that the capability is written to as JSON, for this user only")
	chosen(cmd, "role", string(reins.RoleAgent), string(reins.RoleHuman))
	chosen(cmd, "source", string(reins.SourceAPI), string(reins.SourceMCP), string(reins.SourcePipe), string(reins.SourceViewer), string(reins.SourceLibrary))
	r.completes(cmd, 0, r.resources)
	return cmd
}

// writeSecret makes a file for this user alone; one that is there is not replaced.
func writeSecret(path string, v any) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return reins.Errorf(reins.CodeInvalidInput, "--out: %w", err)
	}
	if err := printJSON(f, v); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return reins.Errorf(reins.CodeInternal, "%s could not be written: %w", path, err)
	}
	return nil
}

// readCapability reads what writeSecret wrote, or --json printed.
func readCapability(path string, in *os.File) (reins.Capability, error) {
	var c reins.Capability
	body, err := readInput(path, in, specMax)
	if err != nil {
		return c, reins.Errorf(reins.CodeInvalidInput, "--capability: %w", err)
	}
	if json.Unmarshal(body, &c) != nil || c.Token == "" || c.Binding.Validate() != nil { // the reason may quote the token
		return c, reins.Errorf(reins.CodeInvalidInput, "--capability %s does not hold a capability as `reins capability issue --json` prints it", path)
	}
	return c, nil
}

func (r *remote) revoke() *cobra.Command {
	return r.asks(&cobra.Command{
		Use:     "revoke CAPABILITY",
		Short:   "End a capability, with the lease under it",
		Long:    "Ends a capability by its ID, and the lease that was acquired with it. When it returns, nothing\nof that participant acts any more.",
		Example: "  reins capability revoke cap_…",
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		if err := c.Revoke(ctx, arguments[0]); err != nil {
			return err
		}
		return r.say(map[string]any{"capability": arguments[0]}, "Capability %s is revoked.", arguments[0])
	})
}
