package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reins-browser/reins"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const guideHead = `# The command line

| command | what it is for |
|---|---|
| ` + "`reins mcp`" + ` | a browser for one MCP client; nothing has to run ([mcp.md](mcp.md)) |
| ` + "`reins serve`" + ` | a server for agents, programs and people |
| ` + "`reins view`" + ` | a link that lets a person in |
| ` + "`reins demo`, `reins doctor`" + ` | see it work; check this machine |
| ` + "`reins version`, `reins --version`" + ` | which version this is |
| ` + "`reins resource`, `act`, `artifact`, `audit`, `capability`, `key`" + ` | work with a running server: below |

` + "`reins COMMAND --help`" + ` is the whole of each. Those that work with a server find it by
themselves where this user started it on this machine, with its administrator's key;
` + "`--server`" + ` names another, and ` + "`--key-file` or `REINS_KEY`" + ` the key for it. Every flag can be
given by the environment too: ` + "`REINS_PROJECT` is `--project`" + `.

What a command prints for people may change from release to release; programs use
` + "`--json`" + ` and the exit code. With ` + "`--json`" + `, errors are JSON on standard error. What takes long
tells so on standard error, by a line that is rewritten on a terminal and by plain lines
elsewhere.

Completion for a shell, with the names of resources, keys and files of the server:

` + "```sh" + `
source <(reins completion bash)        # or zsh, fish, powershell
` + "```" + `
`

// families are the commands that work with a running server.
var families = map[string]bool{"resource": true, "act": true, "artifact": true, "audit": true, "capability": true, "key": true}

// The guide says what these commands say.
func TestGuide(t *testing.T) {
	var b strings.Builder
	b.WriteString(guideHead)
	b.WriteString("\n## Exit codes\n\n| code | kind of error | codes |\n|--:|---|---|\n| 0 | success | |\n| 1 | any other failure | |\n")
	for _, e := range exits {
		var codes []string
		for _, c := range e.codes {
			codes = append(codes, "`"+string(c)+"`")
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.code, e.what, strings.Join(codes, ", "))
	}
	b.WriteString("\n<!-- From here on as the commands' own help says it: go test -run TestGuide ./cmd/reins -update -->\n")
	for _, c := range newRoot(stdio{}).Commands() {
		if families[c.Name()] {
			walk(c, func(c *cobra.Command) { section(&b, c) })
		}
	}
	path := filepath.Join("..", "..", "docs", "cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(b.String())) {
		t.Error("docs/cli.md is not what the commands say; write it anew with -update")
	}
}

// walk visits the commands that do something, in the order of help.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	if c.HasParent() && c.Runnable() && c.Name() != "completion" && c.Name() != "help" {
		visit(c)
	}
	for _, sub := range c.Commands() {
		if sub.Name() != "completion" && sub.Name() != "help" {
			walk(sub, visit)
		}
	}
}

func section(b *strings.Builder, c *cobra.Command) {
	depth := strings.Repeat("#", strings.Count(c.CommandPath(), " ")+1)
	fmt.Fprintf(b, "\n%s %s\n\n", depth, c.CommandPath())
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "```text\n%s\n```\n\n```sh\n%s\n```\n", about, strings.TrimSuffix(c.UseLine(), " [flags]"))
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", c.Example)
	}
	flags := c.LocalFlags()
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("\n| flag | what it does |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, about := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if strings.Contains(about, "(default") || f.DefValue == "" || f.DefValue == "[]" || f.DefValue == "false" || f.DefValue == "0" {
			fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(about, "|", `\|`))
			return
		}
		fmt.Fprintf(b, "| `%s` | %s (default %s) |\n", name, strings.ReplaceAll(about, "|", `\|`), f.DefValue)
	})
}

// CLI-1: every command has a line, examples that name it, and, where it prints, --json.
func TestCommandsHelp(t *testing.T) {
	silent := map[string]bool{"reins serve": true, "reins mcp": true, "reins demo": true}
	walk(newRoot(stdio{}), func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q", path, c.Short)
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "reins ") && !strings.Contains(line, path) && !c.HasSubCommands() && c.HasParent() && strings.HasPrefix(path, "reins act") {
				t.Errorf("%s has an example of something else: %s", path, line)
			}
		}
		if c.Example == "" {
			t.Errorf("%s has no example", path)
		}
		if c.Flag("json") == nil && !silent[path] {
			t.Errorf("%s has no --json", path)
		}
	})
}

// CLI-1: each code of the closed set has an exit code in one row at most, and only
// faults that nobody can do anything about are 1.
func TestExitCodesCoverErrors(t *testing.T) {
	seen := map[reins.Code]int{}
	for _, e := range exits {
		for _, c := range e.codes {
			seen[c]++
		}
	}
	other := map[reins.Code]bool{
		reins.CodeInternal: true, reins.CodeCorrupt: true, reins.CodeDestroyed: true,
		reins.CodeFrameTooLarge: true, reins.CodeFrameStreamFailed: true,
	}
	for _, row := range reins.Codes() {
		if n := seen[row.Code]; n > 1 || (n == 0) != other[row.Code] {
			t.Errorf("%s is in %d rows", row.Code, n)
		}
	}
}
