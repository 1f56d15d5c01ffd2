package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/tooltable"
)

// shellAuthority and shellSession are whose a resource is that is made at a shell,
// unless something else is said: so that `reins act` can work on it.
const (
	shellAuthority = "shell"
	shellSession   = "shell/1"
)

func newResource(io stdio) *cobra.Command {
	r := &remote{io: io}
	return r.family(&cobra.Command{
		Use:   "resource",
		Short: "Browsers of a running server: make, list, start, end",
		Long: `A resource is one browser identity of a running server: its name, who may drive it,
and what browser it gets. It lasts until it is retired; its browser comes and goes.

Resources are named PROJECT/RESOURCE, or RESOURCE alone for one of the project that
--project names ($REINS_PROJECT, else "default").`,
		Example: `  reins resource create till --allow 127.0.0.1:3000
  reins resource start till
  reins resource list`,
	}, r.create(), r.list(), r.show(), r.start(), r.terminate(), r.retire(), r.attach())
}

// specFlags are a browser's specification.
type specFlags struct {
	file, session string
	detached      bool
	tools         []string
	spec          reins.BrowserSpec
}

func (r *remote) create() *cobra.Command {
	var f specFlags
	cmd := r.asks(&cobra.Command{
		Use:   "create [[PROJECT/]RESOURCE]",
		Short: "Register a browser; it starts when it is first needed",
		Long: `Registers a resource. Without a name it gets a random one. Registering the same thing
again changes nothing; anything different at the same name is refused, and so is the
name of a resource that was retired.

It is attached to the session "` + shellSession + `", whose agent ` + "`reins act`" + ` is, unless --session names
another or --detached none. --spec reads the browser's specification as JSON, in the form
that ` + "`reins resource show --json`" + ` prints; flags add to it.`,
		Example: `  reins resource create till
  reins resource create shop/till --allow 127.0.0.1:3000 --tools full
  reins resource create shop/till --session opencode/456 --workspace mira
  reins resource create shop/second --spec spec.json`,
	}, 0, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		reg, err := f.registration(r, arguments)
		if err != nil {
			return err
		}
		if reg, err = c.Register(ctx, reg); err != nil {
			return specError(err)
		}
		return r.say(reg, "%s is registered, %s.", reg.Key, attached(reg.Attachment.Session))
	})
	f.add(cmd)
	return cmd
}

func (f *specFlags) add(cmd *cobra.Command) {
	flags, s := cmd.Flags(), &f.spec
	flags.StringVar(&f.file, "spec", "", "`file` with the specification as JSON; - is standard input")
	flags.StringVar(&f.session, "session", shellSession, "`HARNESS/NATIVE` that may drive it")
	flags.BoolVar(&f.detached, "detached", false, "no session may drive it yet")
	flags.StringSliceVar(&f.tools, "tools", nil, "toolsets ("+strings.Join(tooltable.Toolsets(), ", ")+") or single tools whose verbs agents may use (default: default)")
	flags.StringVar((*string)(&s.Backend), "backend", "", "\"process\" or \"docker\" (default: process)")
	flags.StringVar((*string)(&s.Engine), "engine", "", "\"full\" Chromium, or \"shell\", the smaller headless one (default: full)")
	flags.BoolVar(&s.Desktop, "desktop", false, "on a desktop of its own")
	flags.StringVar(&s.Workspace, "workspace", "", "`name` of a profile that lasts (default: one that is gone with the browser)")
	flags.StringVar((*string)(&s.Scheduling), "scheduling", "", "\"serial\", or \"per-tab\" (default: serial)")
	flags.BoolVar(&s.WebGL, "webgl", false, "with WebGL, in software")
	flags.StringVar(&s.Locale, "locale", "", "language `tag` (default: en-US)")
	flags.StringVar(&s.TimeZone, "time-zone", "", "IANA `name` (default: UTC)")
	flags.StringArrayVar(&s.Egress.AllowPrivate, "allow", nil, "private `target` that it may reach: HOST:PORT or a prefix (repeatable)")
	flags.StringArrayVar(&s.Egress.AllowHosts, "allow-host", nil, "public `host` that it may reach; when given, only these (repeatable)")
	flags.StringArrayVar(&s.Egress.DenyHosts, "deny-host", nil, "public `host` that it may not reach (repeatable)")
	flags.StringArrayVar(&s.Navigation.Allow, "navigate", nil, "`host` that pages may be of; when given, only these (repeatable)")
	flags.StringArrayVar(&s.Navigation.Deny, "no-navigate", nil, "`host` that no page may be of (repeatable)")
	chosen(cmd, "backend", string(reins.BackendProcess), string(reins.BackendDocker))
	chosen(cmd, "engine", string(reins.EngineFull), string(reins.EngineShell))
	chosen(cmd, "scheduling", string(reins.Serial), string(reins.PerTab))
	chosen(cmd, "tools", tooltable.Toolsets()...)
}

// registration is what the flags come to.
func (f *specFlags) registration(r *remote, arguments []string) (reins.Registration, error) {
	reg := reins.Registration{Key: reins.ResourceKey{Project: r.project}}
	var err error
	if len(arguments) > 0 {
		if reg.Key, err = r.key(arguments[0]); err != nil {
			return reg, err
		}
	}
	if !f.detached {
		reg.Attachment = reins.Attachment{AuthorityID: shellAuthority, Revision: 1}
		if reg.Attachment.Session, err = parseSession(f.session); err != nil {
			return reg, err
		}
	}
	if reg.Spec, err = f.merged(r.io.in); err != nil {
		return reg, err
	}
	if len(f.tools) > 0 {
		if reg.Spec.Verbs, err = tooltable.Verbs(f.tools); err != nil {
			return reg, reins.Errorf(reins.CodeInvalidInput, "--tools: %s", reins.AsError(err).Message)
		}
	}
	if _, err := reg.Spec.WithDefaults(); err != nil {
		return reg, specError(err)
	}
	return reg, nil
}

// specMax bounds a specification that is read.
const specMax = 1 << 20

// merged is the specification of the file with that of the flags over it.
func (f *specFlags) merged(in io.Reader) (reins.BrowserSpec, error) {
	var s reins.BrowserSpec
	if f.file != "" {
		body, err := readInput(f.file, in, specMax)
		if err != nil {
			return s, reins.Errorf(reins.CodeInvalidInput, "--spec: %w", err)
		}
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return s, reins.Errorf(reins.CodeInvalidInput, "--spec %s is no specification: %w", f.file, err)
		}
	}
	over, err := json.Marshal(f.spec)
	if err == nil { // what is not given is left out of it
		err = json.Unmarshal(over, &s)
	}
	if err != nil {
		return s, reins.AsError(err)
	}
	return s, nil
}

// readInput reads a file, or in for "-", up to most bytes.
func readInput(name string, in io.Reader, most int64) ([]byte, error) {
	from := in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	body, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return body, err
}

// specError names flags where the rules of a specification name its fields.
func specError(err error) error {
	return asFlags(err, map[string]string{
		"egress allow_private entry": "--allow", "egress allow_hosts entry": "--allow-host", "egress deny_hosts entry": "--deny-host",
		"navigation allow entry": "--navigate", "navigation deny entry": "--no-navigate",
		"backend": "--backend", "engine": "--engine", "scheduling": "--scheduling", "workspace": "--workspace",
		"locale": "--locale", "time zone": "--time-zone",
	})
}

func (r *remote) list() *cobra.Command {
	cmd := r.asks(&cobra.Command{
		Use:     "list [PROJECT]",
		Aliases: []string{"ls"},
		Short:   "List the browsers of a project",
		Example: "  reins resource list\n  reins resource list shop --json",
	}, 0, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		project := r.project
		if len(arguments) > 0 {
			project = arguments[0]
		}
		all, err := c.List(ctx, project)
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(r.io.out, api.ResourceList{Resources: all})
		}
		if len(all) == 0 {
			return r.say(nil, "Project %s has no resources; `reins resource create` makes one.", project)
		}
		rows := [][]string{{"RESOURCE", "STATE", "READY", "SESSION", "HERE", "CONTROL"}}
		for _, i := range all {
			rows = append(rows, []string{
				i.Key.String(), string(i.State), dash(i.Readiness.Overall), sessionText(i.Attachment.Session),
				strconv.Itoa(i.Participants), control(i.Control),
			})
		}
		return table(r.io.out, rows)
	})
	return cmd
}

// control says who has a browser to themselves.
func control(c reins.Control) string {
	if c.Actor == "" {
		return "-"
	}
	return string(c.State) + " " + word(c.Actor)
}

func (r *remote) show() *cobra.Command {
	cmd := r.asks(&cobra.Command{
		Use:     "show [PROJECT/]RESOURCE",
		Short:   "Show a browser: how it is registered, and what it is doing",
		Example: "  reins resource show till\n  reins resource show shop/till --json",
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		i, err := info(ctx, c, key)
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(r.io.out, i)
		}
		return table(r.io.out, describe(i))
	})
	r.completes(cmd, 0, r.resources)
	return cmd
}

func describe(i reins.ResourceInfo) [][]string {
	a := i.Attachment
	rows := [][]string{
		{"resource", i.Key.String()},
		{"state", string(i.State)},
		{"started", clock(i.StartedAt)},
		{"incarnation", strconv.FormatUint(i.Incarnation, 10)},
		{"session", sessionText(a.Session)},
		{"attached by", fmt.Sprintf("%s, revision %d", dash(a.AuthorityID), a.Revision)},
		{"participants", strconv.Itoa(i.Participants)},
		{"control", control(i.Control)},
		{"browser", fmt.Sprintf("%s, %s, %s, %s", i.Spec.Engine, i.Spec.Backend, i.Spec.Locale, i.Spec.TimeZone)},
		{"workspace", dash(i.Spec.Workspace)},
		{"may reach", dash(strings.Join(append(slices.Clone(i.Spec.Egress.AllowHosts), i.Spec.Egress.AllowPrivate...), ", "))},
		{"verbs", verbsText(i.Spec.Verbs)},
		{"registered", clock(i.Created)},
		{"ready", dash(i.Readiness.Overall)},
	}
	for _, name := range []string{reins.CapableRuntime, reins.CapableBrowser, reins.CapableAutomation, reins.CapableDesktop} {
		c, ok := i.Readiness.Capabilities[name]
		if !ok {
			continue
		}
		text := c.State
		if c.Cause != "" {
			text += ": " + word(c.Cause)
		}
		if c.Remedy != "" {
			text += " (" + word(c.Remedy) + ")"
		}
		rows = append(rows, []string{"  " + name, text})
	}
	return rows
}

func verbsText(verbs []reins.Verb) string {
	var out []string
	for _, v := range verbs {
		out = append(out, string(v))
	}
	return dash(strings.Join(out, ", "))
}
