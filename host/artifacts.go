package host

import (
	"context"
	"io"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/artifact"
)

const cellDownloads = cell.DownloadsPath

// mediaTypeOf is what a file name says of its content; the page's word for it
// is not asked.
func mediaTypeOf(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// access is what a lease may see: an agent only what was made under it or
// marked for it, a person all of the resource (LSE-8).
func (l *lease) access() artifact.Access {
	a := artifact.Access{Key: l.r.key}
	if l.grant.binding.Role == reins.RoleAgent {
		a.LeaseID = l.id
	}
	return a
}

// artifacts runs the verbs on stored bytes. Nothing goes out that was read
// while authority ended: it is cleared instead (LSE-8).
func (op *operation) artifacts(ctx context.Context) (*reins.Result, error) {
	store, access := op.r.gen.store, op.lease.access()
	res := &reins.Result{}
	var err error
	switch a := op.action.(type) {
	case reins.ListArtifacts:
		res.Artifacts = store.List(access)
	case reins.ReadArtifact:
		var meta reins.Artifact
		if meta, res.Data, err = store.ReadChunk(ctx, access, a.Artifact, a.Offset, a.Length); err == nil {
			res.Artifacts = []reins.Artifact{meta}
		}
	case reins.DeleteArtifact:
		err = store.Delete(ctx, access, a.Artifact)
	default:
		err = reins.Errorf(reins.CodeInvalidInput, "this runtime does not know the verb %q", op.verb)
	}
	if err == nil {
		err = op.check(ctx)
	}
	if err != nil {
		clear(res.Data)
		return nil, err
	}
	res.Meta = op.meta()
	return res, nil
}

// files puts the artifacts that a file control is to get where the browser can
// read them, and says where that is inside the cell (ACT-3). They stay until
// the incarnation ends, because a page reads them when it likes.
func (op *operation) files(ctx context.Context, inc *incarnation) (map[string]string, error) {
	fill, ok := op.action.(reins.Fill)
	if !ok || len(fill.Value.Artifacts) == 0 {
		return nil, nil
	}
	if !inc.hold() {
		return nil, reins.ContextError(inc.ctx)
	}
	defer inc.saves.Done()
	out := map[string]string{}
	for _, id := range fill.Value.Artifacts {
		inside, err := op.upload(ctx, inc, id)
		if err != nil {
			return nil, err
		}
		out[id] = inside
	}
	return out, nil
}

// upload copies one artifact, given by its ID or by its URI as results name it,
// into the upload folder: a directory named by the
// artifact's ID, which the store made, and in it the name that the page gets to
// see.
func (op *operation) upload(ctx context.Context, inc *incarnation, id string) (string, error) {
	id = strings.TrimPrefix(id, reins.Artifact{Project: op.r.key.Project, Resource: op.r.key.ID}.URI())
	meta, r, err := op.r.gen.store.Open(ctx, op.lease.access(), id)
	if err != nil {
		return "", err
	}
	defer r.Close()
	name := artifact.SafeName(meta.Name)
	dir := filepath.Join(inc.room.Uploads().Name(), meta.ID)
	inside := path.Join(cell.UploadsPath, meta.ID, name)
	if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
		return inside, nil
	}
	if err := copyUpload(dir, name, &leased{op: op, ctx: ctx, from: r}); err != nil {
		if ended := op.check(ctx); ended != nil {
			return "", ended
		}
		return "", reins.Errorf(reins.CodeInternal, "the file for the upload could not be written; the log has the details").In(reins.PhaseArtifact).Because(err)
	}
	return inside, nil
}

// leased is a read that goes on only while its operation may: the lease is
// checked before each chunk (LSE-8).
type leased struct {
	op   *operation
	ctx  context.Context // of one upload
	from io.Reader
}

// Read implements io.Reader.
func (l *leased) Read(p []byte) (int, error) {
	if err := l.op.check(l.ctx); err != nil {
		return 0, err
	}
	return l.from.Read(p)
}

// copyUpload writes a file that appears under its name only when it is whole.
func copyUpload(dir, name string, r io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // fails once it has its name
	_, err = io.Copy(part, r)
	if cerr := part.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part.Name(), filepath.Join(dir, name))
	}
	return err
}

// keeper is the trusted host's way to a resource's artifacts. It implements
// [reins.Artifacts].
type keeper struct {
	host *Host
	key  reins.ResourceKey
}

// Artifacts implements [reins.Runtime].
func (h *Host) Artifacts(key reins.ResourceKey) reins.Artifacts { return keeper{h, key} }

// open is the resource and its store; a retired or unknown one has none.
func (k keeper) open() (*resource, *artifact.Store, error) {
	g, err := k.host.current()
	if err != nil {
		return nil, nil, err
	}
	r, err := g.find(k.key)
	if err != nil {
		return nil, nil, err
	}
	return r, g.store, nil
}

// List implements [reins.Artifacts].
func (k keeper) List(context.Context) ([]reins.Artifact, error) {
	_, store, err := k.open()
	if err != nil {
		return nil, err
	}
	return store.List(artifact.Access{Key: k.key}), nil
}

// Open implements [reins.Artifacts].
func (k keeper) Open(ctx context.Context, id string) (reins.Artifact, io.ReadCloser, error) {
	_, store, err := k.open()
	if err != nil {
		return reins.Artifact{}, nil, err
	}
	meta, r, err := store.Open(ctx, artifact.Access{Key: k.key}, id)
	if err != nil {
		return reins.Artifact{}, nil, err
	}
	return meta, r, nil
}

// Put implements [reins.Artifacts]. A resource that is being retired takes
// nothing more.
func (k keeper) Put(ctx context.Context, a reins.Artifact, from io.Reader) (reins.Artifact, error) {
	r, store, err := k.open()
	if err != nil {
		return reins.Artifact{}, err
	}
	if fence := r.fenced(); fence != nil {
		return reins.Artifact{}, fence
	}
	if from == nil {
		return reins.Artifact{}, reins.Errorf(reins.CodeInvalidInput, "the artifact needs a reader of its bytes, not nil")
	}
	a.Project, a.Resource = k.key.Project, k.key.ID
	out, err := store.Put(ctx, a, from, 0)
	if err != nil {
		return reins.Artifact{}, err
	}
	if fence := r.fenced(); fence != nil { // it may be too late for the purge
		_ = store.Delete(context.WithoutCancel(ctx), artifact.Access{Key: k.key}, out.ID) // gone already, or tried again by the store
		return reins.Artifact{}, fence
	}
	r.publish(reins.Event{Kind: "artifact", Detail: out.ID})
	return out, nil
}

// Delete implements [reins.Artifacts].
func (k keeper) Delete(ctx context.Context, id string) error {
	_, store, err := k.open()
	if err != nil {
		return err
	}
	return store.Delete(ctx, artifact.Access{Key: k.key}, id)
}
