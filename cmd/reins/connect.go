package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// connection is how a command reaches a running server: where it is and by which key.
type connection struct {
	server      string
	keyFile     string
	certificate string
}

// keyVariable is the environment variable that holds an API key. There is no flag: a
// command line is seen by everybody on the machine (CAP-4).
const keyVariable = "REINS_KEY"

// add adds the flags. Each can come from the environment too (applySettings).
func (c *connection) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.server, "server", "", "`address` of the server, such as http://127.0.0.1:7777 (default: the one that runs on this machine)")
	flags.StringVar(&c.keyFile, "key-file", "", "`file` with an API key (default: $"+keyVariable+", else the administrator's of that server)")
	flags.StringVar(&c.certificate, "ca", "", "`file` with a certificate to be trusted besides the system's")
}

// open returns a client of the server. Close it.
func (c *connection) open(ctx context.Context, cmd *cobra.Command) (*api.Client, error) {
	if err := applySettings(cmd); err != nil {
		return nil, err
	}
	at, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	return at.client()
}

// find says where the server is.
func (c *connection) find(ctx context.Context) (instance, error) {
	at := instance{URL: c.server, KeyFile: c.keyFile, Certificate: c.certificate}
	if c.server != "" {
		return at, nil
	}
	all, err := instances(ctx)
	if err != nil {
		return at, err
	}
	if len(all) == 0 {
		return at, reins.Errorf(reins.CodeNotFound, "no server of this user runs on this machine; start one with `reins serve`, or name one with --server")
	}
	at.URL = all[0].URL
	if at.KeyFile == "" {
		at.KeyFile = all[0].KeyFile
	}
	if at.Certificate == "" {
		at.Certificate = all[0].Certificate
	}
	return at, nil
}

// client makes a client of a server.
func (i instance) client() (*api.Client, error) {
	key, err := i.key()
	if err != nil {
		return nil, err
	}
	t, err := transportFor(i.Certificate)
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientOptions{URL: i.URL, Key: key, Transport: t})
}

// key is the API key: of the environment, else of the file.
func (i instance) key() (string, error) {
	if k := os.Getenv(keyVariable); k != "" {
		return k, nil
	}
	if i.KeyFile == "" {
		return "", reins.Errorf(reins.CodeUnauthorized, "there is no API key; set %s, or name a file with --key-file", keyVariable)
	}
	f, err := os.Open(i.KeyFile)
	if err != nil {
		return "", reins.Errorf(reins.CodeUnauthorized, "the key's file cannot be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 || bytes.ContainsAny(text, " \t\r\n") {
		return "", reins.Errorf(reins.CodeInvalidInput, "%s does not hold one API key", i.KeyFile)
	}
	return string(text), nil
}
