package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// lives makes a command that does one thing to one resource, which may take long.
func (r *remote) lives(cmd *cobra.Command, doing string, do func(context.Context, reins.Resource) error, say func(reins.ResourceKey, time.Duration) string) *cobra.Command {
	r.asks(cmd, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		resource, err := c.Open(ctx, key)
		if err != nil {
			return err
		}
		w := r.io.working(doing + " " + key.String())
		err = do(ctx, resource)
		took := w.end()
		if err != nil {
			return err
		}
		return r.say(map[string]any{"project": key.Project, "resource": key.ID, "took_ms": took.Milliseconds()}, "%s", say(key, took))
	})
	r.completes(cmd, 0, r.resources)
	return cmd
}

func (r *remote) start() *cobra.Command {
	var wait []string
	cmd := r.lives(&cobra.Command{
		Use:     "start [PROJECT/]RESOURCE",
		Short:   "Start a browser, and wait until it is up",
		Long:    "Starts a browser and waits until it is up; one that is up already is a success. --ready waits\nuntil it can do what is named besides.",
		Example: "  reins resource start till\n  reins resource start till --ready automation",
	}, "Starting", func(ctx context.Context, resource reins.Resource) error {
		if len(wait) == 0 {
			return resource.Start(ctx)
		}
		_, err := resource.WaitFor(ctx, wait...)
		return err
	}, func(key reins.ResourceKey, took time.Duration) string {
		return fmt.Sprintf("%s is up after %d ms.", key, took.Milliseconds())
	})
	cmd.Flags().StringSliceVar(&wait, "ready", nil, "`capability` to wait for: runtime, browser, automation, desktop (repeatable)")
	chosen(cmd, "ready", reins.CapableRuntime, reins.CapableBrowser, reins.CapableAutomation, reins.CapableDesktop)
	return cmd
}

func (r *remote) terminate() *cobra.Command {
	return r.lives(&cobra.Command{
		Use:     "terminate [PROJECT/]RESOURCE",
		Short:   "End a browser now; the next action starts a new one",
		Long:    "Ends the browser that runs: leases under it end, its pages and sign-ins are gone but for\nwhat a workspace keeps. The resource stays, and the next action starts a new browser.",
		Example: "  reins resource terminate till",
	}, "Ending", func(ctx context.Context, resource reins.Resource) error { return resource.Terminate(ctx) },
		func(key reins.ResourceKey, took time.Duration) string {
			return fmt.Sprintf("%s has ended after %d ms.", key, took.Milliseconds())
		})
}

func (r *remote) retire() *cobra.Command {
	return r.lives(&cobra.Command{
		Use:     "retire [PROJECT/]RESOURCE",
		Short:   "End a resource for good",
		Long:    "Ends a resource for good: its browser, leases, artifacts and workspace are gone, and its name\ncannot be used again. There is no way back.",
		Example: "  reins resource retire till",
	}, "Retiring", func(ctx context.Context, resource reins.Resource) error { return resource.Retire(ctx) },
		func(key reins.ResourceKey, took time.Duration) string {
			return fmt.Sprintf("%s is retired after %d ms.", key, took.Milliseconds())
		})
}

func (r *remote) attach() *cobra.Command {
	var session, authority string
	var revision uint64
	var detach bool
	cmd := r.asks(&cobra.Command{
		Use:   "attach [PROJECT/]RESOURCE",
		Short: "Say which session may drive a browser",
		Long: `Says which session may drive a browser from now on. When it returns, nothing of the
session before acts or will act any more; the browser, its tabs and its cookies stay.

Each change has a higher revision; without --revision it is the next one.`,
		Example: `  reins resource attach till --session opencode/456
  reins resource attach till --detach`,
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		if (session == "") != detach {
			return reins.Errorf(reins.CodeInvalidInput, "give either --session or --detach")
		}
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		now, err := info(ctx, c, key)
		if err != nil {
			return err
		}
		at := reins.Attachment{AuthorityID: now.Attachment.AuthorityID, Revision: now.Attachment.Revision + 1}
		if at.AuthorityID == "" {
			at.AuthorityID = shellAuthority
		}
		if authority != "" {
			at.AuthorityID = authority
		}
		if revision != 0 {
			at.Revision = revision
		}
		if !detach {
			if at.Session, err = parseSession(session); err != nil {
				return err
			}
		}
		resource, err := c.Open(ctx, key)
		if err != nil {
			return err
		}
		if err := resource.Attach(ctx, at); err != nil {
			return err
		}
		return r.say(at, "%s is %s, revision %d.", key, attached(at.Session), at.Revision)
	})
	flags := cmd.Flags()
	flags.StringVar(&session, "session", "", "`HARNESS/NATIVE` that may drive it")
	flags.BoolVar(&detach, "detach", false, "no session may drive it")
	flags.StringVar(&authority, "authority", "", "`name` of who says so (default: as before)")
	flags.Uint64Var(&revision, "revision", 0, "`number` of the change (default: the next one)")
	r.completes(cmd, 0, r.resources)
	return cmd
}
