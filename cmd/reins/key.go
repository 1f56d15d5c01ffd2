package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

func newKey(io stdio) *cobra.Command {
	r := &remote{io: io}
	return r.family(&cobra.Command{
		Use:   "key",
		Short: "API keys of a running server: make, list, revoke",
		Long: `API keys are for programs that are trusted with a whole server, with one project, or
with being one agent over MCP. They last until they are revoked. Making, listing and
revoking them needs an administrator's key, which a fresh server writes into its
directory.`,
		Example: `  reins key create project shop
  reins key list
  reins key revoke key_…`,
	}, r.createKey(), r.listKeys(), r.revokeKey())
}

func (r *remote) createKey() *cobra.Command {
	var f bindingFlags
	cmd := r.asks(&cobra.Command{
		Use:   "create admin | project PROJECT | agent [PROJECT/]RESOURCE",
		Short: "Make an API key, and show its token once",
		Long: `Makes an API key: an administrator's; one project's; or an agent's, which opens the MCP
door to one browser, as the session that is attached to it now. Its token is shown once.`,
		Example: `  reins key create project shop
  reins key create agent shop/till --actor planner
  claude mcp add --transport http reins http://127.0.0.1:7777/mcp --header "Authorization: Bearer TOKEN"`,
	}, 1, 2, func(ctx context.Context, c *api.Client, arguments []string) error {
		form, whose, err := r.keyForm(ctx, c, arguments, f)
		if err != nil {
			return err
		}
		made, err := c.CreateKey(ctx, form)
		if err != nil {
			return err
		}
		return r.say(made, "Key %s, %s. Its token, shown once:\n%s", made.ID, whose, made.Token)
	})
	f.add(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(arguments) == 0:
			return []string{"admin\tof the whole server", "project\tof one project", "agent\tof one agent over MCP"}, cobra.ShellCompDirectiveNoFileComp
		case len(arguments) == 1 && arguments[0] == "agent":
			return r.offered(cmd, func(ctx context.Context, c *api.Client) ([]string, error) { return r.resources(ctx, c, nil, begun) })
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// keyForm is what the arguments ask for, and in words whose key that is.
func (r *remote) keyForm(ctx context.Context, c *api.Client, arguments []string, f bindingFlags) (api.KeyForm, string, error) {
	kind := arguments[0]
	if (kind == "admin") != (len(arguments) == 1) {
		return api.KeyForm{}, "", reins.Errorf(reins.CodeInvalidInput, "give \"admin\", \"project PROJECT\" or \"agent RESOURCE\"; see `reins key create --help`")
	}
	if kind != "agent" && f != (bindingFlags{}) {
		return api.KeyForm{}, "", reins.Errorf(reins.CodeInvalidInput, "--actor, --scope and --run are of an agent's key")
	}
	switch kind {
	case "admin":
		return api.KeyForm{}, "of an administrator", nil
	case "project":
		return api.KeyForm{Project: arguments[1]}, "of project " + word(arguments[1]), nil
	case "agent":
		key, err := r.key(arguments[1])
		if err != nil {
			return api.KeyForm{}, "", err
		}
		f.peer, f.source = "key", string(reins.SourceMCP) // the server sets both
		b, err := f.binding(ctx, c, key, reins.RoleAgent)
		return api.KeyForm{Binding: &b}, fmt.Sprintf("of agent %s on %s", word(b.Actor), key), err
	}
	return api.KeyForm{}, "", reins.Errorf(reins.CodeInvalidInput, "there is no key of the kind %.40q; use admin, project or agent", kind)
}

func (r *remote) listKeys() *cobra.Command {
	return r.asks(&cobra.Command{
		Use:     "list [PROJECT]",
		Aliases: []string{"ls"},
		Short:   "List API keys, without their tokens",
		Long:    "Lists API keys in the order in which they were made, revoked ones too; of one project when it is\nnamed.",
		Example: "  reins key list\n  reins key list shop --json",
	}, 0, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		all, err := c.Keys(ctx, append(arguments, "")[0])
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(r.io.out, api.KeyList{Keys: append([]api.Key{}, all...)})
		}
		rows := [][]string{{"KEY", "OF", "MADE", "REVOKED"}}
		for _, k := range all {
			rows = append(rows, []string{k.ID, owner(k), clock(k.Created), clock(k.Revoked)})
		}
		return table(r.io.out, rows)
	})
}

func owner(k api.Key) string {
	switch {
	case k.Binding != nil:
		return "agent " + word(k.Binding.Actor) + " on " + k.Binding.Key().String()
	case k.Project != "":
		return "project " + word(k.Project)
	}
	return "administrator"
}

func (r *remote) revokeKey() *cobra.Command {
	cmd := r.asks(&cobra.Command{
		Use:     "revoke KEY",
		Short:   "End an API key for good",
		Long:    "Ends an API key by its ID, for good, with the leases and streams that were made under it.",
		Example: "  reins key revoke key_…",
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		if err := c.RevokeKey(ctx, arguments[0]); err != nil {
			return err
		}
		return r.say(map[string]any{"key": arguments[0]}, "Key %s is revoked.", arguments[0])
	})
	r.completes(cmd, 0, func(ctx context.Context, c *api.Client, _ []string, _ string) ([]string, error) {
		all, err := c.Keys(ctx, "")
		var out []string
		for _, k := range all {
			if k.Revoked.IsZero() {
				out = append(out, k.ID+"\t"+owner(k))
			}
		}
		return out, err
	})
	return cmd
}
