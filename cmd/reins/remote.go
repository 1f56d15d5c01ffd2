package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// remote is what all commands share that ask a running server.
type remote struct {
	connection
	io      stdio
	project string
	json    bool
}

// family makes the command above commands that ask a server, with what they share.
func (r *remote) family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	r.add(cmd.PersistentFlags())
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(members...)
	return cmd
}

func (r *remote) add(flags *pflag.FlagSet) {
	r.connection.add(flags)
	flags.StringVar(&r.project, "project", "default", "`project` of resources that are named without one")
	flags.BoolVar(&r.json, "json", false, "print JSON, errors too")
}

// asks makes cmd a command that asks a server, which takes from least to most
// arguments; most -1 is any number.
func (r *remote) asks(cmd *cobra.Command, least, most int, do func(ctx context.Context, c *api.Client, arguments []string) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, arguments []string) error {
		if n := len(arguments); n < least || most >= 0 && n > most {
			return usage(cmd, fmt.Errorf("%s takes %s, not %d", cmd.CommandPath(), counted(least, most), n))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		c, err := r.client(ctx, cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		return do(ctx, c, arguments)
	}
	return cmd
}

func counted(least, most int) string {
	switch {
	case most == 0:
		return "no argument"
	case most < 0:
		return fmt.Sprintf("%d or more arguments", least)
	case least == most && least == 1:
		return "one argument"
	case least == most:
		return fmt.Sprintf("%d arguments", least)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

// client is of the server that the flags name, or of the one that runs here: that of
// an ordinary user, whom root becomes to look.
func (r *remote) client(ctx context.Context, cmd *cobra.Command) (*api.Client, error) {
	if err := applySettings(cmd); err != nil {
		return nil, err
	}
	if r.server == "" && os.Geteuid() == 0 {
		if err := becomeOrdinary(""); err != nil {
			return nil, err
		}
	}
	return r.open(ctx, cmd)
}

// key reads [PROJECT/]RESOURCE.
func (r *remote) key(name string) (reins.ResourceKey, error) {
	key := reins.ResourceKey{Project: r.project, ID: name}
	if project, id, ok := strings.Cut(name, "/"); ok {
		key = reins.ResourceKey{Project: project, ID: id}
	}
	return key, key.Validate()
}

// info is a resource with what its browser is doing.
func info(ctx context.Context, c *api.Client, key reins.ResourceKey) (reins.ResourceInfo, error) {
	all, err := c.List(ctx, key.Project)
	if err != nil {
		return reins.ResourceInfo{}, err
	}
	for _, i := range all {
		if i.Key == key {
			return i, nil
		}
	}
	if _, err := c.Open(ctx, key); err != nil { // it knows whether there was one
		return reins.ResourceInfo{}, err
	}
	return reins.ResourceInfo{}, reins.Errorf(reins.CodeNotFound, "there is no resource %s; `reins resource list` shows what there is", key)
}

// say prints a line for people, or v where JSON is wanted.
func (r *remote) say(v any, format string, arguments ...any) error {
	if r.json {
		return printJSON(r.io.out, v)
	}
	_, err := fmt.Fprintf(r.io.out, format+"\n", arguments...)
	return err
}

// table prints rows in columns for people, the first row being their names.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return t.Flush()
}

// printable is text of somebody else as a terminal may show it: no escape sequences,
// nothing that reorders a line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// word is printable text within a line.
func word(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return word(s)
}

// sessionText is "harness/native".
func sessionText(s *reins.Session) string {
	if s == nil {
		return "-"
	}
	return s.Harness + "/" + s.Native
}

// asFlags names flags where the message of a mistake begins with what a rule calls
// the value, or holds a name that is no word of a sentence.
func asFlags(err error, flags map[string]string) error {
	e := reins.AsError(err)
	if e.Code != reins.CodeInvalidInput {
		return err
	}
	message := e.Message
	for rule, flag := range flags {
		if rest, ok := strings.CutPrefix(message, rule+" "); ok {
			message = flag + " " + rest
			break
		}
	}
	for rule, flag := range flags {
		if strings.Contains(rule, "_") { // no word of a sentence
			message = strings.ReplaceAll(message, " "+rule, " "+flag)
		}
	}
	out := *e
	out.Message = message
	return &out
}

// attached says in words whose a resource is.
func attached(s *reins.Session) string {
	if s == nil {
		return "attached to no session"
	}
	return "attached to " + sessionText(s)
}

// parseSession reads HARNESS/NATIVE.
func parseSession(s string) (*reins.Session, error) {
	harness, native, ok := strings.Cut(s, "/")
	a := reins.Attachment{AuthorityID: "any", Revision: 1, Session: &reins.Session{Harness: harness, Native: native}}
	if err := a.Validate(); !ok || err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "--session %.100q is not HARNESS/NATIVE, such as opencode/456", s)
	}
	return a.Session, nil
}

// completionTime bounds what a shell waits for.
const completionTime = 2 * time.Second

// completes offers what offer finds on the server, for the argument at place; -1 is
// every argument.
func (r *remote) completes(cmd *cobra.Command, place int, offer func(ctx context.Context, c *api.Client, arguments []string, begun string) ([]string, error)) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		if place >= 0 && len(arguments) != place {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.offered(cmd, func(ctx context.Context, c *api.Client) ([]string, error) { return offer(ctx, c, arguments, begun) })
	}
}

func (r *remote) offered(cmd *cobra.Command, offer func(context.Context, *api.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	c, err := r.client(ctx, cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	all, err := offer(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// resources offers the names of resources: of the project that was begun, else of the
// one that --project names.
func (r *remote) resources(ctx context.Context, c *api.Client, _ []string, begun string) ([]string, error) {
	project, _, whole := strings.Cut(begun, "/")
	if !whole {
		project = r.project
	}
	all, err := c.List(ctx, project)
	var out []string
	for _, i := range all {
		name := i.Key.ID
		if whole {
			name = i.Key.String()
		}
		out = append(out, name+"\t"+string(i.State))
	}
	return out, err
}

// chosen lets a shell complete a flag's values.
func chosen(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}
