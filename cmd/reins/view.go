package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// viewFlags are the command line of `reins view`.
type viewFlags struct {
	connection
	actor    string
	projects []string
	resource string
	life     time.Duration
	open     bool
	json     bool
	runAs    string
}

func newView(io stdio) *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Print a link that lets you watch and take over",
		Long: `Prints a link to the pages of a running server: ` + "`reins serve`" + `, or a ` + "`reins mcp`" + ` of
this user. It works once, for a short while; the browser that opens it stays signed in.

Without --server it is for all servers of this user on this machine, a line for each.`,
		Example: `  reins view
  reins view --open                            open it in a browser
  reins view --actor mira --project shop       for somebody else, and one project
  reins view --resource shop/till --life 10m   and one browser`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}
			form, err := f.form()
			if err != nil {
				return err
			}
			if err := becomeOrdinary(f.runAs); err != nil {
				return err
			}
			return f.run(cmd.Context(), io, form)
		},
	}
	f.connection.add(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.actor, "actor", "", "`name` under which the person acts (default: this user's)")
	flags.StringSliceVar(&f.projects, "project", nil, "only this `project` (repeatable; default: all)")
	flags.StringVar(&f.resource, "resource", "", "only this `PROJECT/RESOURCE`")
	flags.DurationVar(&f.life, "life", time.Minute, "how long the link works, 10s to 1h")
	flags.BoolVar(&f.open, "open", false, "open it with this machine's browser")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.StringVar(&f.runAs, "run-as", "", "`user` whose servers to look for when started as root (default: who called sudo, else reins)")
	return cmd
}

func (f *viewFlags) form() (api.JoinForm, error) {
	form := api.JoinForm{Actor: f.actor, Projects: f.projects, Life: api.Life(f.life)}
	if f.life < 10*time.Second || f.life > time.Hour {
		return form, reins.Errorf(reins.CodeInvalidInput, "--life is %s; use 10s to 1h", f.life)
	}
	if f.resource != "" {
		project, id, ok := strings.Cut(f.resource, "/")
		if err := (reins.ResourceKey{Project: project, ID: id}).Validate(); !ok || err != nil {
			return form, reins.Errorf(reins.CodeInvalidInput, "--resource %.100q is not PROJECT/RESOURCE, such as shop/till", f.resource)
		}
		if len(f.projects) > 0 {
			return form, reins.Errorf(reins.CodeInvalidInput, "--project and --resource exclude each other; give one")
		}
		form.Resource = &api.Place{Project: project, ID: id}
	} else if len(f.projects) == 0 {
		form.Projects = []string{"*"}
	}
	return form, nil
}

// run prints a link to each server that it is for.
func (f *viewFlags) run(ctx context.Context, io stdio, form api.JoinForm) error {
	if form.Actor == "" {
		form.Actor = "person"
		if u, err := user.Current(); err == nil && u.Username != "" {
			form.Actor = u.Username
		}
	}
	first, err := f.find(ctx)
	if err != nil {
		return err
	}
	all := []instance{first}
	if f.server == "" {
		if more, err := instances(ctx); err == nil && len(more) > 1 && f.keyFile == "" {
			all = more
		}
	}
	for _, at := range all {
		if err := f.link(ctx, io, at, form); err != nil {
			return err
		}
	}
	return nil
}

func (f *viewFlags) link(ctx context.Context, io stdio, at instance, form api.JoinForm) error {
	c, err := at.client()
	if err != nil {
		return err
	}
	defer c.Close()
	join, err := c.Join(ctx, form)
	if err != nil {
		return err
	}
	if f.json {
		err = printJSON(io.out, join)
	} else {
		_, err = fmt.Fprintln(io.out, join.URL)
	}
	if err != nil || !f.open {
		return err
	}
	return openLink(ctx, join.URL)
}

// openLink hands a link to the browser of this machine. The secret in it is on a
// command line for a moment, and spent by the page that it opens.
func openLink(ctx context.Context, link string) error {
	for _, opener := range []string{os.Getenv("BROWSER"), "xdg-open", "wslview", "gio open", "open"} {
		words := strings.Fields(opener)
		if len(words) == 0 {
			continue
		}
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := exec.CommandContext(ctx, words[0], append(words[1:], link)...).Run(); err != nil {
			return reins.Errorf(reins.CodeInternal, "%s could not open the link: %w", words[0], err)
		}
		return nil
	}
	return reins.Errorf(reins.CodeNotFound, "nothing on this machine opens links; open the one above yourself")
}
