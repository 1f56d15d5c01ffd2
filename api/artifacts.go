package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

const artifactsPath = resourcePath + "/artifacts"

func (h *Handler) artifactRoutes() {
	handle(h, route{method: "GET", path: artifactsPath, id: "listArtifacts", tag: "artifacts",
		summary: "List a resource's artifacts", about: "What is stored of it, whoever made it."},
		func(ctx context.Context, c *call, _ Nothing) (ArtifactList, error) {
			all, err := h.runtime.Artifacts(c.key()).List(ctx)
			return ArtifactList{all}, err
		})
	stream(h, route{method: "POST", path: artifactsPath, id: "putArtifact", tag: "artifacts", creates: true,
		summary: "Store an artifact", about: "The body is its bytes, under the quotas.",
		query: []parameter{{"kind", "What it is: upload, screenshot, download, pdf."}, {"media_type", "Of the bytes."},
			{"name", "For display."}, {"lease", "The lease that may use it."}, {"owner", "Whose it is, for the host."}}},
		typeJSON, reflect.TypeFor[[]byte](), reflect.TypeFor[reins.Artifact](), h.put)
	stream(h, route{method: "GET", path: artifactsPath + "/{artifact}", id: "getArtifact", tag: "artifacts",
		summary: "Read an artifact", about: "Its bytes, checked against size and digest first; the digest is in Repr-Digest."},
		typeBytes, reflect.TypeFor[Nothing](), reflect.TypeFor[[]byte](), h.get)
	handle(h, route{method: "DELETE", path: artifactsPath + "/{artifact}", id: "deleteArtifact", tag: "artifacts",
		summary: "Delete an artifact", about: "Its quota is free at once."},
		func(ctx context.Context, c *call, _ Nothing) (Nothing, error) {
			return Nothing{}, h.runtime.Artifacts(c.key()).Delete(ctx, c.path("artifact"))
		})
	stream(h, route{method: "GET", path: "/v1/leases/{lease}/artifacts/{artifact}", id: "read", tag: "leases", participant: true, headers: tokenParameter,
		summary: "Read an artifact under a lease", about: "Its bytes; the lease is checked before each chunk, and when it ends so does this, short of its length."},
		typeBytes, reflect.TypeFor[Nothing](), reflect.TypeFor[[]byte](), h.readLeased)
}

// put stores the body. Under an idempotency key the bytes are compared with
// those that were stored under it.
func (h *Handler) put(_ context.Context, c *call) error {
	q := c.r.URL.Query()
	a := reins.Artifact{Kind: q.Get("kind"), MediaType: q.Get("media_type"), Name: q.Get("name"), LeaseID: q.Get("lease"), Owner: q.Get("owner")}
	if a.Size = c.r.ContentLength; a.Size < 0 {
		a.Size = 0 // unknown
	}
	ctx, over, err := c.life(nil) // no byte is taken in for who may not send it any more
	if err != nil {
		return err
	}
	defer over()
	// A body that still comes is not waited for. Only while it does: a deadline that
	// passes in between would end the connection's later requests.
	stop := context.AfterFunc(ctx, func() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Now()) })
	defer stop()
	body := &sourced{r: c.r.Body}
	stored := false
	out, err := c.once(route{id: "putArtifact"}, a, func() (any, error) {
		stored = true
		return h.runtime.Artifacts(c.key()).Put(ctx, a, body)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if torn := body.failed(); torn != nil { // the client's end, not the store's
			err = reins.Errorf(reins.CodeInvalidInput, "the body ended early: %w", torn).In(reins.PhaseArtifact)
		}
		h.drain(c)
		return err
	case !stored:
		if err := same(out.(reins.Artifact), body); err != nil {
			h.drain(c)
			return err
		}
	}
	return writeJSON(c.w, http.StatusCreated, out)
}

// sourced remembers whether it was the reading that failed.
type sourced struct {
	r io.Reader

	mu   sync.Mutex
	err  error
	over bool
}

// stop keeps the reader from being read any more.
func (s *sourced) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *sourced) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *sourced) Read(p []byte) (int, error) {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		return 0, io.ErrClosedPipe
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}
	return n, err
}

// same refuses bytes that are not those of an artifact.
func same(a reins.Artifact, r io.Reader) error {
	d := newDigest(a)
	_, err := io.Copy(d, io.LimitReader(r, a.Size+1))
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return reins.Errorf(reins.CodeConflict, "the idempotency key was used for other bytes; use a new one").In(reins.PhaseAdmission)
	}
	return nil
}

// drain takes some of a body that is refused, so that the client gets to read
// why before its connection is closed.
func (h *Handler) drain(c *call) {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.CopyN(io.Discard, c.r.Body, 64<<20)
}

// get streams an artifact to the trusted host.
func (h *Handler) get(ctx context.Context, c *call) error {
	a, body, err := h.runtime.Artifacts(c.key()).Open(ctx, c.path("artifact"))
	if err != nil {
		return err
	}
	defer body.Close()
	ctx, done, err := c.life(nil)
	if err != nil {
		return err
	}
	defer done()
	h.sendArtifact(ctx, c, a, func(buf []byte) ([]byte, error) {
		n, err := io.ReadFull(body, buf)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return buf[:n], err
	})
	return nil
}

// readLeased streams an artifact to a participant: each chunk is an action of
// its own through the fence (LSE-8, OVW-8), and the end of the lease cuts the
// connection, whatever is being written (LSE-6).
func (h *Handler) readLeased(_ context.Context, c *call) error {
	l, err := c.held()
	if err != nil {
		return err
	}
	ctx, done, err := c.life(l.lease.Done())
	if err != nil {
		return err
	}
	defer done()
	id, at := c.path("artifact"), int64(0)
	next := func([]byte) ([]byte, error) {
		res, err := l.lease.Do(ctx, reins.Call{Action: reins.ReadArtifact{Artifact: id, Offset: at, Length: chunk}})
		if err != nil {
			return nil, err
		}
		at += int64(len(res.Data))
		return res.Data, nil
	}
	res, err := l.lease.Do(ctx, reins.Call{Action: reins.ReadArtifact{Artifact: id, Length: chunk}})
	if err != nil {
		return err
	}
	if len(res.Artifacts) != 1 {
		return reins.Errorf(reins.CodeInternal, "the runtime did not say which artifact it read")
	}
	first := res.Data
	h.sendArtifact(ctx, c, res.Artifacts[0], func(buf []byte) ([]byte, error) {
		if at == 0 && first != nil {
			at, buf = int64(len(first)), first
			first = nil
			return buf, nil
		}
		return next(buf)
	})
	return nil
}

// sendArtifact writes headers and chunks. A failure after the first byte ends
// the answer short of its length, which no client takes for the whole.
func (h *Handler) sendArtifact(ctx context.Context, c *call, a reins.Artifact, next func([]byte) ([]byte, error)) {
	head := c.w.Header()
	head.Set("Content-Type", typeBytes)
	head.Set("Content-Length", strconv.FormatInt(a.Size, 10))
	head.Set("Content-Disposition", "attachment") // never shown by a browser (ART-8)
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	describeArtifact(head, a)
	c.w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(c.w)
	buf := make([]byte, chunk)
	for sent := int64(0); sent < a.Size; {
		data, err := next(buf)
		if err != nil || len(data) == 0 || ctx.Err() != nil {
			clear(data)
			break
		}
		err = h.sendChunk(ctx, out, c.w, data)
		sent += int64(len(data))
		clear(data)
		if err != nil {
			break
		}
	}
}

// sendChunk writes in pieces, so that a slow client counts as alive while it
// takes something, and nothing is written after the end.
func (h *Handler) sendChunk(ctx context.Context, out *http.ResponseController, w io.Writer, data []byte) error {
	const piece = 64 << 10
	for len(data) > 0 {
		n := min(piece, len(data))
		_ = out.SetWriteDeadline(time.Now().Add(patience)) // where it cannot be set, the server's own holds
		if ctx.Err() != nil {                              // after the deadline: the end sets its own
			return ctx.Err()
		}
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

const digestOpen, digestClose = "sha-256=:", ":"

// describeArtifact tells of an artifact in headers, so that the client knows it
// before its bytes.
func describeArtifact(head http.Header, a reins.Artifact) {
	if sum, err := hex.DecodeString(a.SHA256); err == nil {
		head.Set(digestHeader, digestOpen+base64.StdEncoding.EncodeToString(sum)+digestClose)
	}
	about := url.Values{}
	for name, v := range map[string]string{
		"artifact": a.ID, "kind": a.Kind, "media_type": a.MediaType, "name": a.Name, "lease": a.LeaseID, "owner": a.Owner,
		"size": strconv.FormatInt(a.Size, 10), "created": a.Created.Format(time.RFC3339Nano),
	} {
		if v != "" {
			about.Set(name, v)
		}
	}
	if !a.Expires.IsZero() {
		about.Set("expires", a.Expires.Format(time.RFC3339Nano))
	}
	head.Set(artifactHeader, about.Encode())
}
