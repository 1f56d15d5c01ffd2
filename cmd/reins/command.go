package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
)

// stdio is where a command reads and writes.
type stdio struct {
	in       *os.File
	out, err io.Writer
}

// run executes a command line and returns the exit code.
func run(arguments []string, io stdio) int {
	root := newRoot(io)
	root.SetArgs(arguments)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	e := reins.AsError(err)
	if f := cmd.Flags().Lookup("json"); f != nil && f.Value.String() == "true" {
		if printJSON(io.err, map[string]*reins.Error{"error": e}) == nil {
			return exitCode(e.Code)
		}
	}
	fmt.Fprintf(io.err, "reins: %s\n", printable(e.Message))
	if hint := hints[e.Recovery]; hint != "" {
		fmt.Fprintf(io.err, "       %s\n", hint)
	}
	return exitCode(e.Code)
}

var hints = map[reins.Recovery]string{
	reins.RecoverFixHost:  "`reins doctor` checks everything and names the remedies.",
	reins.RecoverSnapshot: "`reins act snapshot` shows what is there now.",
	reins.RecoverListTabs: "`reins act list-tabs` shows which are open.",
}

func newRoot(io stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "reins",
		Short: "Sealed Chromium browsers for AI agents",
		Long: `Reins gives AI agents real Chromium browsers, sealed from this machine and from
the network behind it, and keeps hold of them.`,
		Example: `  reins demo --once                  see it work
  reins doctor                       what this machine lacks
  claude mcp add reins -- reins mcp  give Claude Code a browser`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	root.Version = readAbout().line() // --version
	root.SetVersionTemplate("{{.Version}}\n")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Give browsers to agents and people:", []*cobra.Command{newMCP(io), newServe(io), newView(io)}},
		{"Work with a running server:", []*cobra.Command{newResource(io), newAct(io), newArtifact(io), newAudit(io), newCapability(io), newKey(io)}},
		{"See and check:", []*cobra.Command{newDemo(io), newDoctor(io), newVersion(io)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(exitCodes())
	root.SetHelpCommand(nil)
	return root
}

// usage is a mistake in the command line.
func usage(cmd *cobra.Command, err error) error {
	return reins.Errorf(reins.CodeInvalidInput, "%w; see `%s --help`", err, cmd.CommandPath())
}

func noArguments(cmd *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	if cmd.HasParent() {
		return usage(cmd, fmt.Errorf("%s takes no argument, not %q", cmd.CommandPath(), arguments[0]))
	}
	return usage(cmd, fmt.Errorf("there is no command %q", arguments[0]))
}

// exits are the exit codes by kind of error, in the order in which help shows
// them; what is not here is 1.
var exits = []struct {
	code  int
	what  string
	codes []reins.Code
}{
	{2, "a mistake in the command line or its values", []reins.Code{reins.CodeInvalidInput}},
	{3, "this machine cannot hold a browser safely", []reins.Code{reins.CodeUnsafeHost, reins.CodeFenced}},
	{4, "something is taken or full; try again later", []reins.Code{reins.CodeLocked, reins.CodeBusy, reins.CodeQuotaExceeded, reins.CodeHumanControlled, reins.CodeHumanControlConflict, reins.CodeControlBusy}},
	{5, "not allowed", []reins.Code{reins.CodeUnauthorized, reins.CodeDenied, reins.CodeLeaseEnded, reins.CodeNavigationBlocked, reins.CodeEgressDenied}},
	{6, "no such thing, or not in this form", []reins.Code{reins.CodeNotFound, reins.CodeRetired, reins.CodeConflict, reins.CodeStaleRevision}},
	{7, "the browser did not come up, or was lost", []reins.Code{
		reins.CodeStartupFailed, reins.CodeReadinessTimeout, reins.CodeNotReady, reins.CodeBrowserEnded, reins.CodeConnectionTimeout,
		reins.CodeConnectionClosed, reins.CodeTransportFailure, reins.CodePageCrashed, reins.CodeRuntimeStopped,
	}},
	{8, "it took too long", []reins.Code{reins.CodeTimeout}},
	{9, "the page did not take it, or is another by now; look at it again", []reins.Code{
		reins.CodeStaleRef, reins.CodeNotActionable, reins.CodeDialogOpen, reins.CodeObserveAgain, reins.CodeInvalidState,
		reins.CodeToolFailed, reins.CodeNavigationFailed, reins.CodeCompletionUnknown,
	}},
	{130, "interrupted", []reins.Code{reins.CodeCancelled}},
}

func exitCode(code reins.Code) int {
	for _, e := range exits {
		for _, c := range e.codes {
			if c == code {
				return e.code
			}
		}
	}
	return 1
}

func exitCodes() *cobra.Command {
	text := "Exit codes by kind of error:\n\n    0  success\n    1  any other failure\n"
	for _, e := range exits {
		text += fmt.Sprintf("  %3d  %s\n", e.code, e.what)
	}
	return &cobra.Command{Use: "exit-codes", Short: "Exit codes by kind of error", Long: text}
}

// printJSON writes v as one indented document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return reins.Errorf(reins.CodeInternal, "the output could not be written: %w", err)
	}
	return nil
}
