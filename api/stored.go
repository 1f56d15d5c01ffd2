package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// stored is [reins.Artifacts] that are elsewhere.
type stored struct {
	c   *Client
	key reins.ResourceKey
}

// Artifacts implements [reins.Runtime].
func (c *Client) Artifacts(key reins.ResourceKey) reins.Artifacts { return stored{c, key} }

func (s stored) path(id string) (string, error) {
	if err := s.key.Validate(); err != nil {
		return "", err
	}
	p := pathOf(s.key) + "/artifacts"
	if id == "" {
		return p, nil
	}
	if !isName(id) {
		return "", reins.Errorf(reins.CodeNotFound, "no artifact of that name is stored for resource %s", s.key).In(reins.PhaseArtifact)
	}
	return p + "/" + segment(id), nil
}

// List implements [reins.Artifacts].
func (s stored) List(ctx context.Context) ([]reins.Artifact, error) {
	path, err := s.path("")
	if err != nil {
		return nil, err
	}
	var out ArtifactList
	if err := s.c.call(ctx, request{method: "GET", path: path, repeat: true}, &out); err != nil {
		return nil, err
	}
	return append([]reins.Artifact{}, out.Artifacts...), nil
}

// Put implements [reins.Artifacts]. A reader can be read once, so a lost answer
// is completion_unknown.
func (s stored) Put(ctx context.Context, a reins.Artifact, from io.Reader) (reins.Artifact, error) {
	path, err := s.path("")
	if err != nil {
		return reins.Artifact{}, err
	}
	if from == nil {
		return reins.Artifact{}, reins.Errorf(reins.CodeInvalidInput, "the artifact needs a reader of its bytes, not nil")
	}
	q := url.Values{}
	for name, v := range map[string]string{"kind": a.Kind, "media_type": a.MediaType, "name": a.Name, "lease": a.LeaseID, "owner": a.Owner} {
		if v != "" {
			q.Set(name, v)
		}
	}
	body := &sourced{r: from}
	var out reins.Artifact
	err = s.c.call(ctx, request{method: "POST", path: path, query: q, bytes: body, effect: "the storing"}, &out)
	body.stop() // a transport may go on for a moment
	if e := body.failed(); e != nil && err != nil {
		if ctx.Err() != nil {
			return reins.Artifact{}, reins.ContextError(ctx)
		}
		return reins.Artifact{}, reins.Errorf(reins.CodeInvalidInput, "the artifact's bytes could not be read to their end; nothing was stored").In(reins.PhaseArtifact).Because(e)
	}
	return out, err
}

// Delete implements [reins.Artifacts].
func (s stored) Delete(ctx context.Context, id string) error {
	path, err := s.named(id)
	if err != nil {
		return err
	}
	return s.c.call(ctx, request{method: "DELETE", path: path, repeat: true}, nil)
}

func (s stored) named(id string) (string, error) {
	if id == "" {
		id = "/" // no name
	}
	return s.path(id)
}

// Open implements [reins.Artifacts]: the server checks size and digest first;
// what arrives is checked again, and an end before the whole is no end but an
// error. Its context ends the opening, Close the reading.
func (s stored) Open(ctx context.Context, id string) (reins.Artifact, io.ReadCloser, error) {
	none := reins.Artifact{}
	path, err := s.named(id)
	if err != nil {
		return none, nil, err
	}
	if s.c.ctx.Err() != nil {
		return none, nil, errClosed()
	}
	inner, cancel := s.c.within(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	r, err := s.c.open(inner, request{method: "GET", path: path, repeat: true})
	if !stop() && err == nil {
		r.Body.Close()
		err = reins.ContextError(ctx)
	}
	if err != nil {
		cancel(nil)
		return none, nil, err
	}
	a, err := readArtifact(r.Header, s.key)
	if err != nil {
		r.Body.Close()
		cancel(nil)
		return none, nil, err
	}
	return a, &download{c: s.c, a: a, body: r.Body, digest: newDigest(a), cancel: cancel}, nil
}

// readArtifact reads what describeArtifact wrote.
func readArtifact(head http.Header, key reins.ResourceKey) (reins.Artifact, error) {
	v, err := url.ParseQuery(head.Get(artifactHeader))
	size, errSize := strconv.ParseInt(v.Get("size"), 10, 64)
	created, errCreated := time.Parse(time.RFC3339Nano, v.Get("created"))
	sum, errSum := readDigest(head.Get(digestHeader))
	if err := errors.Join(err, errSize, errCreated, errSum); err != nil {
		return reins.Artifact{}, reins.Errorf(reins.CodeTransportFailure, "the server's answer does not describe the artifact as Reins does: %w", err).In(reins.PhaseArtifact)
	}
	a := reins.Artifact{
		ID: v.Get("artifact"), Project: key.Project, Resource: key.ID, Kind: v.Get("kind"), MediaType: v.Get("media_type"),
		Size: size, SHA256: sum, Created: created, LeaseID: v.Get("lease"), Owner: v.Get("owner"), Name: v.Get("name"),
	}
	a.Expires, _ = time.Parse(time.RFC3339Nano, v.Get("expires")) // none is never
	return a, nil
}

// readDigest reads a SHA-256 from a Repr-Digest and returns it as hex.
func readDigest(s string) (string, error) {
	text, ok := strings.CutPrefix(s, digestOpen)
	text, closed := strings.CutSuffix(text, digestClose)
	sum, err := base64.StdEncoding.DecodeString(text)
	if !ok || !closed || err != nil || len(sum) != sha256.Size {
		return "", errors.New("there is no SHA-256")
	}
	return hex.EncodeToString(sum), nil
}

// download checks what is read against what was promised.
type download struct {
	c      *Client
	a      reins.Artifact
	body   io.ReadCloser
	digest *digest
	cancel context.CancelCauseFunc
	once   sync.Once
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	_, _ = d.digest.Write(p[:n]) // a hash takes all
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && d.digest.size == d.a.Size:
		if d.digest.check() == nil {
			return n, io.EOF
		}
		clear(p[:n])
		return 0, reins.Errorf(reins.CodeCorrupt, "artifact %s arrived with another digest than it was stored with", d.a.ID).In(reins.PhaseArtifact)
	case d.c.ctx.Err() != nil:
		return n, errClosed()
	}
	return n, reins.Errorf(reins.CodeTransportFailure, "the reading of artifact %s ended after %d of %d bytes; open it again", d.a.ID, d.digest.size, d.a.Size).In(reins.PhaseArtifact).Because(err)
}

// Close implements io.Closer; idempotent.
func (d *download) Close() error {
	d.once.Do(func() {
		_ = d.body.Close() // there is nothing to lose
		d.cancel(nil)
	})
	return nil
}

// digest is the running digest of an artifact's bytes.
type digest struct {
	want string
	all  int64
	hash hash.Hash
	size int64
}

func newDigest(a reins.Artifact) *digest {
	return &digest{want: a.SHA256, all: a.Size, hash: sha256.New()}
}

func (d *digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	return d.hash.Write(p)
}

func (d *digest) check() error {
	if d.size != d.all || hex.EncodeToString(d.hash.Sum(nil)) != d.want {
		return errors.New("other bytes")
	}
	return nil
}
