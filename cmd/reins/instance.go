package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/server"
)

// instanceFile is what a running server writes into its directory, so that `reins
// view` and the other commands find it. Nothing is believed because of it alone: who
// answers at its address has to prove that it knows the secret in it.
const instanceFile = "instance.json"

// instance says where a running server is.
type instance struct {
	URL         string    `json:"url"`                   // for this machine
	KeyFile     string    `json:"key_file"`              // of its administrator
	Certificate string    `json:"certificate,omitempty"` // of its TLS, to be trusted there
	Secret      string    `json:"secret"`                // by which it is known; see server.Proof
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
}

// write puts the file into a runtime directory; remove takes it away.
func (i instance) write(dir string) (remove func(), err error) {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, reins.AsError(err)
	}
	path := filepath.Join(dir, instanceFile)
	if err := server.WritePrivate(path, append(text, '\n')); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil // the next start writes it anew
}

// readInstance reads what a server wrote into a directory; not_found when there is none.
func readInstance(dir string) (instance, error) {
	var i instance
	path := filepath.Join(dir, instanceFile)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return i, reins.Errorf(reins.CodeNotFound, "no server runs over %s", dir)
	}
	if err != nil {
		return i, reins.Errorf(reins.CodeNotFound, "%s cannot be read: %w", path, err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(&i); err != nil || i.URL == "" {
		return i, reins.Errorf(reins.CodeNotFound, "%s is not what a server writes; the next start writes it anew", path)
	}
	return i, nil
}

// instances are the servers whose files lie in this user's own directories and that
// answer: `reins serve` first, then each `reins mcp`.
func instances(ctx context.Context) ([]instance, error) {
	base, err := stateDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(base, "mcp-*", instanceFile))
	if err != nil {
		return nil, reins.AsError(err)
	}
	var found []instance
	for _, f := range append([]string{filepath.Join(base, serveDirectory, instanceFile)}, files...) {
		if i, err := readInstance(filepath.Dir(f)); err == nil && i.answers(ctx) {
			found = append(found, i)
		}
	}
	return found, nil
}

// answers reports whether the server that wrote the file serves there: it can be left of
// a process that was killed, and somebody else can listen there by now.
func (i instance) answers(ctx context.Context) bool {
	t, err := transportFor(i.Certificate)
	if err != nil {
		return false
	}
	defer t.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL+"/healthz", nil)
	if err != nil || i.Secret == "" {
		return false
	}
	challenge := rand.Text()
	r.Header.Set(server.ChallengeHeader, challenge)
	res, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	proof := []byte(server.Proof(i.Secret, challenge))
	return res.StatusCode == http.StatusOK && hmac.Equal([]byte(res.Header.Get(server.ProofHeader)), proof)
}

// transportFor carries requests to a server whose certificate, when a file is named,
// is trusted besides those of the system.
func transportFor(certificate string) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	if certificate == "" {
		return t, nil
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the certificate %s cannot be read: %w", certificate, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, reins.Errorf(reins.CodeInvalidInput, "%s holds no certificate in PEM form", certificate)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
