package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release that this is, or comes after.
const version = "0.1.0"

// about is what `reins version` tells.
type about struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // of the source, with "+" when it was changed
	Go      string `json:"go"`
	System  string `json:"system"`
}

func newVersion(io stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print which version this is",
		Example: "  reins version\n  reins version --json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			a := readAbout()
			if asJSON {
				return printJSON(io.out, a)
			}
			_, err := fmt.Fprintln(io.out, a.line())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// line is all of it for people.
func (a about) line() string {
	out := "reins " + a.Version
	if a.Commit != "" {
		out += " (" + a.Commit + ")"
	}
	return out + " " + a.Go + " " + a.System
}

func readAbout() about {
	a := about{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return a
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			a.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed && a.Commit != "" {
		a.Commit += "+"
	}
	return a
}
