package driver

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/reins-browser/reins"
)

const (
	readBytes   = 24_000  // budget of a reading that names none
	keptTexts   = 32      // readings that can be gone on with
	keptLetters = 8 << 20 // bytes of them
	framesDeep  = 5       // documents inside documents
)

// texts is what readings left over. The zero value is empty and ready for use.
type texts struct {
	mu     sync.Mutex
	kept   []leftover // oldest first
	number int        // of the newest cursor
}

// leftover is the rest of a reading, as it was read: going on with it is exact
// whatever has become of the page.
type leftover struct {
	cursor string
	lease  string
	text   string
	whole  int
	limit  int
	tab    *tab
}

// markdown is what a document's walker returned (js/read.js: read).
type markdown struct {
	Gone bool   `json:"gone"`
	Text string `json:"text"`
	Full bool   `json:"full"` // there is more than a reading takes
}

// readPage returns the main content of a page, or an element, as Markdown.
func (b *browser) readPage(ctx context.Context, x *action, a reins.Read) error {
	limit := a.MaxBytes
	if a.Cursor != "" {
		rest, ok := b.texts.take(x.cmd.Lease, a.Cursor)
		if !ok {
			return reins.Errorf(reins.CodeInvalidInput, "cursor %.40q is not known any more; read again without it", a.Cursor)
		}
		if limit == 0 {
			limit = rest.limit
		}
		x.tab = rest.tab
		b.serve(x, rest.text, rest.whole, limit)
		return nil
	}
	if limit == 0 {
		limit = readBytes
	}
	var d *document
	n := 0
	var err error
	if a.Ref != "" {
		d, n, err = b.element(a.Ref)
	} else {
		d, err = b.steadyDocument(ctx, x.tab)
	}
	if err != nil {
		return err
	}
	docs, err := x.tab.documents(ctx)
	if err != nil {
		return err
	}
	text, err := b.markdownOf(ctx, x, d, n, docs, 0)
	if err != nil {
		if errors.Is(err, errGoneElement) {
			return errStale(a.Ref)
		}
		return err
	}
	text = x.cmd.Redact.Text(strings.ToValidUTF8(text, "\uFFFD"))
	b.serve(x, text, len(text), limit)
	if text == "" {
		x.note("there is no text to read; take a snapshot to see what there is")
	}
	return nil
}

// steadyDocument is a tab's document once the page has had its moment to come.
func (b *browser) steadyDocument(ctx context.Context, t *tab) (*document, error) {
	ctx, release := t.guard(ctx)
	defer release()
	b.arrive(ctx, t)
	return t.document(ctx)
}

// markdownOf reads a document, or element n of it, with what is in its frames.
func (b *browser) markdownOf(ctx context.Context, x *action, d *document, n int, docs []placed, depth int) (string, error) {
	if _, err := b.walk(ctx, d, n); err != nil { // closed shadow roots are handed in
		return "", err
	}
	var got markdown
	if err := d.eval(ctx, "n => reins.read(n)", &got, n); err != nil {
		return "", err
	}
	if got.Gone {
		return "", errGoneElement
	}
	if got.Full {
		x.note("the page has more text than one reading takes; read an element of it by its ref")
	}
	return b.withFrames(ctx, x, d, got.Text, docs, depth)
}

// frameMark stands around the number of a frame's element where its content
// belongs; the script takes it out of the page's own text.
const frameMark = "\ue000"

// withFrames puts the content of frames where it belongs.
func (b *browser) withFrames(ctx context.Context, x *action, d *document, text string, docs []placed, depth int) (string, error) {
	if !strings.Contains(text, frameMark) {
		return text, nil
	}
	at := indexOf(docs, d)
	inside := map[string]string{}
	for _, each := range docs {
		if each.parent < 0 || each.parent != at || depth == framesDeep {
			continue
		}
		number, err := b.ownerNumber(ctx, d, each.frame)
		if err != nil || !strings.Contains(text, frameMark+strconv.Itoa(number)+frameMark) {
			continue
		}
		content, err := b.markdownOf(ctx, x, each.document, 0, docs, depth+1)
		if err != nil {
			if ctx.Err() != nil || interrupted(err) {
				return "", err
			}
			x.note("one frame did not answer; what is in it is missing")
		}
		inside[strconv.Itoa(number)] = content
	}
	var out strings.Builder
	empty := false
	for i, part := range strings.Split(text, frameMark) {
		if i%2 == 1 {
			part = inside[part]
			empty = part == ""
		} else if empty { // the gap that a frame without content leaves
			part = strings.TrimPrefix(part, "\n\n")
		}
		out.WriteString(part)
	}
	return strings.TrimSpace(out.String()), nil
}

// serve puts as much of a text as fits into the reply, and keeps the rest.
func (b *browser) serve(x *action, text string, whole, limit int) {
	end := breakAt(text, limit)
	out := &reins.Reading{Markdown: text[:end], Whole: whole, Left: len(text) - end}
	if out.Left > 0 {
		out.Cursor = b.texts.keep(leftover{lease: x.cmd.Lease, text: text[end:], whole: whole, limit: limit, tab: x.tab})
		x.note("%d of %d bytes are left; a read with cursor %q goes on exactly there", out.Left, whole, out.Cursor)
	}
	x.reply.Result.Reading = out
}

// breakAt is where a text is best cut to at most limit bytes: after a block, a
// line or a word in its second half, else between characters.
func breakAt(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for _, mark := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(text[:limit], mark); i >= limit/2 {
			return i + len(mark)
		}
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

func (t *texts) keep(l leftover) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
	l.cursor = "r" + strconv.Itoa(t.number)
	t.kept = append(t.kept, l)
	size := 0
	for i := len(t.kept) - 1; i >= 0; i-- {
		size += len(t.kept[i].text)
		if i < len(t.kept)-1 && size > keptLetters || len(t.kept)-i > keptTexts {
			t.kept = append(t.kept[:0], t.kept[i+1:]...)
			break
		}
	}
	return l.cursor
}

// take finds what a lease's reading left over. It stays, so that an answer that
// was lost can be asked for again.
func (t *texts) take(lease, cursor string) (leftover, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.kept {
		if l.cursor == cursor && l.lease == lease {
			return l, true
		}
	}
	return leftover{}, false
}
