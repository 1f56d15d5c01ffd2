package main

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reins-browser/reins"
)

// settingPrefix is that of environment variables that stand for flags:
// REINS_LOG_LEVEL is --log-level.
const settingPrefix = "REINS_"

// applySettings gives the flags of a command that the command line does not give what
// the environment says, else what the file says that --config names: a line "name =
// value" for each, with the names of the flags; lists by lines of the same name. A
// flag's own rules judge all three.
func applySettings(cmd *cobra.Command) error {
	flags := cmd.Flags()
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	var errs error
	flags.VisitAll(func(f *pflag.Flag) {
		name := settingPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if given[f.Name] || !ok || value == "" || errs != nil || f.Name == "help" {
			return
		}
		given[f.Name] = true
		if err := flags.Set(f.Name, value); err != nil {
			errs = reins.Errorf(reins.CodeInvalidInput, "the environment variable %s: %w", name, err)
		}
	})
	if errs != nil {
		return errs
	}
	config := flags.Lookup("config")
	if config == nil || config.Value.String() == "" {
		return nil
	}
	return applyFile(flags, config.Value.String(), given)
}

// configMax bounds a configuration file.
const configMax = 1 << 20

func applyFile(flags *pflag.FlagSet, path string, given map[string]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return reins.Errorf(reins.CodeInvalidInput, "the file of --config cannot be read: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, configMax)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch flag := flags.Lookup(name); {
		case !ok:
			return reins.Errorf(reins.CodeInvalidInput, "%s, line %d: %.60q is no line such as \"listen = 127.0.0.1:7777\"", path, n, line)
		case flag == nil || name == "config" || name == "help":
			return reins.Errorf(reins.CodeInvalidInput, "%s, line %d: there is no setting %.60q; the names are those of the flags", path, n, name)
		case given[name]:
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return reins.Errorf(reins.CodeInvalidInput, "%s, line %d, %s: %w", path, n, name, err)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return reins.Errorf(reins.CodeInvalidInput, "the file of --config cannot be read: %w", err)
	} else if err != nil {
		return reins.Errorf(reins.CodeInvalidInput, "%s has a line of more than %d bytes", path, configMax)
	}
	return nil
}
