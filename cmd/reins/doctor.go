package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// diagnosis is what `reins doctor` finds.
type diagnosis struct {
	OK       bool           `json:"ok"` // nothing keeps browsers from starting
	User     string         `json:"user"`
	Findings []cell.Finding `json:"findings"`
}

func newDoctor(io stdio) *cobra.Command {
	var f mcpFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a browser needs on this machine",
		Long: `Checks everything that a browser needs (user, namespaces, sandbox, Chromium,
fonts, directory, lock, memory control, time) and prints each with its remedy.
Ends with 3 when something keeps browsers from starting.`,
		Example: "  reins doctor\n  reins doctor --json\n  sudo reins doctor --run-as agent",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.logLevel = "error"
			o, _, err := f.check(io)
			if err != nil {
				return err
			}
			// A root that cannot become anybody is a finding, not the end.
			if err := becomeOrdinary(f.runAs); err != nil && reins.CodeOf(err) != reins.CodeUnsafeHost {
				return err
			}
			return report(io.out, diagnose(cmd.Context(), o), asJSON, isTerminal(os.Stdout))
		},
	}
	f.addBrowser(cmd)
	cmd.Flags().StringVar(&f.dir, "dir", "", "runtime `directory` to check (default: where reins mcp makes its own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func diagnose(ctx context.Context, o localOptions) diagnosis {
	d := diagnosis{OK: true, User: userName()}
	dir, finding := checkDirectory(o.dir)
	d.Findings = append(o.backend(dir, "").Check(ctx), finding)
	if finding.OK {
		d.Findings = append(d.Findings, checkLock(dir))
	}
	for i, f := range d.Findings {
		if f.Name == "chromium" || f.Name == "chromium-headless-shell" {
			// The engine that was not asked for may be missing.
			d.Findings[i].Optional = (f.Name == "chromium") != (o.engine == reins.EngineFull)
		}
		d.OK = d.OK && (f.OK || d.Findings[i].Optional)
	}
	return d
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

// checkDirectory tests that a runtime directory can be made, by making one.
func checkDirectory(dir string) (string, cell.Finding) {
	f := cell.Finding{Name: "directory", OK: true}
	base := filepath.Dir(dir)
	if dir == "" {
		var err error
		if base, err = stateDir(); err != nil {
			return os.TempDir(), failed(f, err)
		}
	} else if err := os.MkdirAll(base, 0o700); err != nil {
		return base, failed(f, reins.Errorf(reins.CodeInvalidInput, "%s cannot be made; name another directory with --dir", base))
	}
	probe, err := os.MkdirTemp(base, ".doctor-")
	if err != nil {
		return base, failed(f, reins.Errorf(reins.CodeInvalidInput, "%s cannot be written to; name another directory with --dir", base))
	}
	if err := os.Remove(probe); err != nil {
		return base, failed(f, reins.Errorf(reins.CodeInvalidInput, "%s cannot be tidied up: %w", base, err))
	}
	f.Detail = base + " can be used"
	return base, f
}

// checkLock tests that the kernel locks files there, which is how a runtime owns
// its directory (OWN-1).
func checkLock(base string) cell.Finding {
	f := cell.Finding{Name: "lock", OK: true, Detail: "the kernel locks files in " + base}
	probe, err := os.CreateTemp(base, ".doctor-")
	if err == nil {
		err = unix.Flock(int(probe.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return failed(f, reins.Errorf(reins.CodeInvalidInput, "files in %s cannot be locked; name a directory on a local disk with --dir", base))
	}
	return f
}

func failed(f cell.Finding, err error) cell.Finding {
	sentence, remedy, _ := strings.Cut(reins.AsError(err).Message, "; ")
	f.OK, f.Detail, f.Remedy = false, sentence, remedy
	return f
}

// report prints the diagnosis; a browser that cannot start is unsafe_host.
func report(out io.Writer, d diagnosis, asJSON, colour bool) error {
	if asJSON {
		if err := printJSON(out, d); err != nil {
			return err
		}
	} else {
		printFindings(out, d, palette(colour))
	}
	if d.OK {
		return nil
	}
	var names []string
	for _, f := range d.Findings {
		if !f.OK && !f.Optional {
			names = append(names, f.Name)
		}
	}
	return reins.Errorf(reins.CodeUnsafeHost, "browsers cannot start here: %s", strings.Join(names, ", ")).Recover(reins.RecoverNone)
}

func printFindings(out io.Writer, d diagnosis, p palette) {
	width := 0
	for _, f := range d.Findings {
		width = max(width, len(f.Name))
	}
	fmt.Fprintf(out, "What a browser needs, for user %s\n\n", d.User)
	for _, f := range d.Findings {
		mark := p.green("ok  ")
		if !f.OK && f.Optional {
			mark = p.yellow("note")
		} else if !f.OK {
			mark = p.red("FAIL")
		}
		fmt.Fprintf(out, "  %s  %-*s  %s\n", mark, width, f.Name, f.Detail)
		if f.Remedy != "" && !f.OK {
			fmt.Fprintf(out, "        %*s  %s\n", width, "", p.dim("→ "+f.Remedy))
		}
	}
	verdict := p.green("Browsers can start.")
	if !d.OK {
		verdict = p.red("Browsers cannot start.")
	}
	fmt.Fprintf(out, "\n%s\n", verdict)
}

// palette is whether colours are used.
type palette bool

func (p palette) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) red(s string) string    { return p.paint("31;1", s) }
func (p palette) dim(s string) string    { return p.paint("2", s) }
