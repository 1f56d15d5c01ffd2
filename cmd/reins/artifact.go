package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

func newArtifact(io stdio) *cobra.Command {
	r := &remote{io: io}
	return r.family(&cobra.Command{
		Use:   "artifact",
		Short: "Files of a browser: screenshots, downloads, PDFs",
		Long: `Artifacts are the files that a browser's actions made: screenshots, downloads, uploads,
PDFs. They are kept under quotas until their time is over.`,
		Example: `  reins artifact list till
  reins artifact get till art_… --out page.png`,
	}, r.listArtifacts(), r.getArtifact(), r.deleteArtifacts())
}

func (r *remote) listArtifacts() *cobra.Command {
	cmd := r.asks(&cobra.Command{
		Use:     "list [PROJECT/]RESOURCE",
		Aliases: []string{"ls"},
		Short:   "List the files of a browser",
		Example: "  reins artifact list till\n  reins artifact list shop/till --json",
	}, 1, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		all, err := c.Artifacts(key).List(ctx)
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(r.io.out, api.ArtifactList{Artifacts: all})
		}
		if len(all) == 0 {
			return r.say(nil, "%s has no artifacts.", key)
		}
		rows := [][]string{{"ARTIFACT", "KIND", "TYPE", "BYTES", "MADE", "NAME"}}
		for _, a := range all {
			rows = append(rows, []string{a.ID, a.Kind, word(a.MediaType), strconv.FormatInt(a.Size, 10), clock(a.Created), word(a.Name)})
		}
		return table(r.io.out, rows)
	})
	r.completes(cmd, 0, r.resources)
	return cmd
}

func (r *remote) getArtifact() *cobra.Command {
	var out string
	cmd := r.asks(&cobra.Command{
		Use:   "get [PROJECT/]RESOURCE ARTIFACT",
		Short: "Read a file of a browser",
		Long: `Writes an artifact to standard output, or to the file that --out names, which is there
only when all of it is and its digest fits.`,
		Example: "  reins artifact get till art_… --out page.png\n  reins artifact get till art_… | less",
	}, 2, 2, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		a, body, err := c.Artifacts(key).Open(ctx, arguments[1])
		if err != nil {
			return err
		}
		defer body.Close()
		if out == "" {
			if f, ok := r.io.out.(*os.File); ok && isTerminal(f) {
				return reins.Errorf(reins.CodeInvalidInput, "%s is a %s of %d bytes, nothing for a terminal; name a file with --out", a.ID, word(a.MediaType), a.Size)
			}
			_, err := io.Copy(r.io.out, body)
			return readError(err)
		}
		if err := writeWhole(out, body); err != nil {
			return err
		}
		return r.say(a, "%s has %d bytes of %s.", out, a.Size, word(a.MediaType))
	})
	cmd.Flags().StringVarP(&out, "out", "o", "", "`file` to write, replacing what is there (default: standard output)")
	r.completes(cmd, -1, r.artifacts)
	return cmd
}

// readError is why an artifact was not read to its end.
func readError(err error) error {
	var known *reins.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return reins.Errorf(reins.CodeInternal, "the file could not be written: %w", err)
}

// writeWhole makes a file of all that comes, or none.
func writeWhole(path string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".reins-*")
	if err != nil {
		return reins.Errorf(reins.CodeInvalidInput, "--out: %w", err)
	}
	_, err = io.Copy(f, from)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the reason is err
	}
	return readError(err)
}

func (r *remote) deleteArtifacts() *cobra.Command {
	cmd := r.asks(&cobra.Command{
		Use:     "delete [PROJECT/]RESOURCE ARTIFACT...",
		Aliases: []string{"rm"},
		Short:   "Delete files of a browser",
		Example: "  reins artifact delete till art_…",
	}, 2, -1, func(ctx context.Context, c *api.Client, arguments []string) error {
		key, err := r.key(arguments[0])
		if err != nil {
			return err
		}
		for i, id := range arguments[1:] {
			if err := c.Artifacts(key).Delete(ctx, id); err != nil {
				return reins.AsError(err).With("deleted", i)
			}
		}
		return r.say(map[string]any{"deleted": arguments[1:]}, "%d deleted.", len(arguments)-1)
	})
	r.completes(cmd, -1, r.artifacts)
	return cmd
}

// artifacts offers a resource, then its artifacts.
func (r *remote) artifacts(ctx context.Context, c *api.Client, arguments []string, begun string) ([]string, error) {
	if len(arguments) == 0 {
		return r.resources(ctx, c, arguments, begun)
	}
	key, err := r.key(arguments[0])
	if err != nil {
		return nil, err
	}
	all, err := c.Artifacts(key).List(ctx)
	var out []string
	for _, a := range all {
		out = append(out, a.ID+"\t"+a.Kind+" "+word(a.Name))
	}
	return out, err
}
