package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// conclude makes the result of an action that the driver has done: pictures
// and downloads become artifacts, and what only the host knows is added.
func (op *operation) conclude(ctx context.Context, inc *incarnation, conn *connection, reply *driver.Reply) (*reins.Result, error) {
	res := &reply.Result
	op.r.update(func(*state) { // who watches reads them
		op.target = res.Target
		if res.Tab != nil {
			op.tab = res.Tab.ID
		}
	})
	op.takeDownloads(inc, res, reply.Downloads)
	if reply.Picture != nil {
		if err := op.keepPicture(ctx, res, reply.Picture); err != nil {
			return nil, err
		}
	}
	if reply.Paper != nil {
		if err := op.keepPaper(ctx, res, reply.Paper); err != nil {
			return nil, err
		}
	}
	res.Meta = op.meta()
	op.r.update(func(s *state) {
		l, now := op.lease, conn.id()
		if l.told != now {
			res.Meta.Reconnected = true
			res.Notes = append(res.Notes, "The browser was connected anew: tab IDs and refs from before are gone.")
		}
		l.told = now
		if res.Snapshot != nil {
			l.seen, l.observed = now, s.control.Taken()
		}
		if res.Selected != "" && inc.conn == conn {
			op.r.showLocked(s, conn, res.Selected)
		}
	})
	op.addLater(res)
	return res, nil
}

// meta is what a result says of how it came about (LSE-7).
func (op *operation) meta() reins.Meta {
	return reins.Meta{
		Operation: op.id, CapabilityID: op.lease.grant.id, LeaseID: op.lease.id,
		Incarnation: op.on.incarnation, Connection: op.on.number,
		Started: op.began, Duration: time.Since(op.began),
	}
}

// keepPicture stores a screenshot and, when one was asked for, adds the
// picture for a model. The lease is checked once more before bytes go out
// (LSE-8).
func (op *operation) keepPicture(ctx context.Context, res *reins.Result, p *driver.Picture) error {
	name := "screenshot" + extension(p.MediaType)
	a, err := op.r.gen.store.Put(ctx, op.artifact("screenshot", p.MediaType, name), bytes.NewReader(p.Data), int64(len(p.Data)))
	if err != nil {
		return err
	}
	op.r.publish(reins.Event{Kind: "artifact", Detail: a.ID})
	shot := &reins.ScreenshotResult{Artifact: a, Width: p.Width, Height: p.Height, Scaled: p.Scaled}
	if len(p.Model) > 0 {
		if err := op.check(ctx); err != nil {
			return err
		}
		shot.Image, shot.MediaType = p.Model, p.ModelType
	}
	res.Screenshot = shot
	return nil
}

// keepPaper stores a page that was printed.
func (op *operation) keepPaper(ctx context.Context, res *reins.Result, p *driver.Paper) error {
	a, err := op.r.gen.store.Put(ctx, op.artifact("pdf", "application/pdf", "page.pdf"), bytes.NewReader(p.Data), int64(len(p.Data)))
	if err != nil {
		return err
	}
	op.r.publish(reins.Event{Kind: "artifact", Detail: a.ID})
	res.Document = &a
	return nil
}

func extension(mediaType string) string {
	switch mediaType {
	case "image/jpeg":
		return ".jpg"
	case "image/webp":
		return ".webp"
	}
	return ".png"
}

// artifact describes bytes made by this operation.
func (op *operation) artifact(kind, mediaType, name string) reins.Artifact {
	return reins.Artifact{
		Project: op.r.key.Project, Resource: op.r.key.ID, Kind: kind, MediaType: mediaType,
		Name: name, LeaseID: op.lease.id,
	}
}

// takeDownloads brings finished downloads in (ACT-10). The driver names them in
// the order of those that its changes say are completed; a navigation that
// became a download is the last of them (NAV-4). One that cannot be kept is
// reported as cancelled with the reason; it does not fail the action. A caller that
// leaves meanwhile leaves the file to the resource.
func (op *operation) takeDownloads(inc *incarnation, res *reins.Result, saved []driver.Saved) {
	var reported []*reins.Download
	if c := res.Changes; c != nil {
		for i := range c.Downloads {
			if c.Downloads[i].State == "completed" {
				reported = append(reported, &c.Downloads[i])
			}
		}
	}
	if len(saved) == 0 || !inc.hold() {
		return // nothing to take, or its folder is going
	}
	defer inc.saves.Done()
	for i, s := range saved {
		a, err := inc.take(inc.ctx, s, op.lease.id)
		if i >= len(reported) {
			continue // it is among the artifacts all the same
		}
		if err != nil {
			reported[i].State, reported[i].Reason = "cancelled", reins.AsError(err).Message
		} else {
			reported[i].Artifact = &a
		}
	}
	if n := res.Navigation; n != nil && n.Download != nil && n.Download.State == "completed" && len(reported) > 0 {
		*n.Download = *reported[len(reported)-1]
	}
}

// learnLocked notes what a result tells of tabs: who last acted on each, for
// downloads that end later, and which documents are in which, for refs without
// a tab in per-tab order (SCH-4).
func (r *resource) learnLocked(op *operation, res *reins.Result) {
	inc := r.st.inc
	if inc == nil || inc.number != op.on.incarnation || res.Tab == nil {
		return
	}
	tab := res.Tab.ID
	if !op.verb.ReadOnly() {
		if len(r.st.owner) > maxDocs {
			clear(r.st.owner) // more than a browser can have: the driver makes them up
		}
		r.st.owner[tab] = op.lease.id
	}
	if r.spec.Scheduling != reins.PerTab || res.Snapshot == nil || inc.conn == nil || inc.conn.id() != op.on {
		return
	}
	if len(r.st.docs) > maxDocs {
		clear(r.st.docs) // refs to forgotten ones run alone
	}
	text := res.Snapshot.Text
	if a, ok := op.action.(reins.Snapshot); ok && a.Cursor != "" {
		_, text, _ = strings.Cut(text, "\n") // may begin in the middle of a value
	}
	for _, doc := range documents(text) {
		r.st.docs[doc] = tab
	}
}

const maxDocs = 4096

// document is the part of a ref that names its document: "f2" of "f2e12".
func document(ref reins.Ref) string {
	doc, _, ok := strings.Cut(string(ref), "e")
	if !ok || !strings.HasPrefix(doc, "f") {
		return ""
	}
	if _, err := strconv.ParseUint(doc[1:], 10, 64); err != nil {
		return ""
	}
	return doc
}

// documents are the documents of the refs in an outline. What the page wrote in
// names and values is passed over, so that it cannot say which tab a document of
// another page is in.
func documents(outline string) []string {
	var out []string
	for line := range strings.Lines(outline) {
		doc := document(reins.Ref(mark(line)))
		if doc != "" && (len(out) == 0 || out[len(out)-1] != doc) {
			out = append(out, doc)
		}
	}
	return out
}

// mark is the ref of a line of an outline: it stands outside of quotes and
// before the value, which follows a colon.
func mark(line string) string {
	const begin = "[ref="
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++ // whatever it is, it ends nothing
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ':' && strings.HasPrefix(line[i+1:], " "):
			return ""
		case strings.HasPrefix(line[i:], begin):
			ref, _, _ := strings.Cut(line[i+len(begin):], "]")
			return ref[:min(len(ref), 64)]
		}
	}
	return ""
}

// happened takes what the driver tells of the browser. It returns soon: a
// download that ended after its action is brought in on the side.
func (r *resource) happened(conn *connection, e driver.Event) {
	owner := ""
	r.update(func(s *state) {
		conn.noteLocked(e)
		r.actingLocked(s, e)
		if e.Kind == "tab_selected" || e.Tab.Selected {
			r.showLocked(s, conn, e.Tab.ID)
		}
		owner = cmp.Or(e.Lease, s.owner[e.Tab.ID])
		if e.Kind == "tab_closed" {
			delete(s.owner, e.Tab.ID)
			if e.Tab.ID != "" && s.inc != nil && s.inc.conn == conn {
				r.forgetInputLocked(s, e.Tab.ID)
			}
		}
	})
	switch {
	case e.Saved != nil && e.Kind == "discarded":
		conn.inc.discard(*e.Saved)
		return
	case e.Saved != nil:
		conn.inc.save(*e.Saved, owner, ended(e))
		return
	case e.Kind == "download":
		r.tellLater(owner, ended(e))
	case e.Kind == "acting":
		return
	}
	r.publish(reins.Event{Kind: "tab", Detail: strings.TrimSpace(e.Kind + " " + string(e.Tab.ID))})
}

// hold keeps the incarnation's folders until saves.Done is called; false when
// they are going already.
func (inc *incarnation) hold() (held bool) {
	inc.r.update(func(*state) {
		if held = !inc.ending; held {
			inc.saves.Add(1)
		}
	})
	return held
}

// save brings a download in that ended after its action, for whoever began it or
// last acted on its tab, and has it told.
func (inc *incarnation) save(s driver.Saved, leaseID string, told reins.Download) {
	if !inc.hold() {
		return
	}
	go func() {
		defer inc.saves.Done()
		a, err := inc.take(inc.ctx, s, leaseID)
		if err != nil {
			inc.r.did("download", time.Now(), err)
			told.State, told.Reason = "cancelled", reins.AsError(err).Message
		} else {
			told.Artifact = &a
		}
		inc.r.tellLater(leaseID, told)
	}()
}

// discard deletes what a browser saved although it was told not to. The name is
// the driver's word, so it is a name in the folder or nothing.
func (inc *incarnation) discard(s driver.Saved) {
	if !inc.hold() {
		return
	}
	defer inc.saves.Done()
	folder, err := os.OpenRoot(inc.room.Downloads().Name())
	if err == nil {
		err = errors.Join(folder.Remove(s.GUID), folder.Close())
	}
	if err != nil {
		inc.r.did("discard", time.Now(), reins.Errorf(reins.CodeToolFailed, "a file that was not wanted could not be deleted").Because(err))
	}
}

// take moves a finished download from the cell's folder into the store.
func (inc *incarnation) take(ctx context.Context, s driver.Saved, leaseID string) (reins.Artifact, error) {
	r := inc.r
	a, err := r.gen.store.Take(ctx, reins.Artifact{
		Project: r.key.Project, Resource: r.key.ID, Kind: "download",
		MediaType: mediaTypeOf(s.Name), Name: r.secrets.text(s.Name), LeaseID: leaseID,
	}, inc.room.Downloads(), s.GUID)
	if err == nil {
		r.publish(reins.Event{Kind: "artifact", Detail: a.ID})
	}
	return a, err
}
