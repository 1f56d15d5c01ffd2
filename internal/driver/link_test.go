package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reins-browser/reins"
)

// bare is the parent's end of a link whose other end is the test's.
func bare() (*Process, *wire) {
	near, far := net.Pipe()
	return &Process{wire: newWire(near), done: make(chan struct{}), moved: make(chan struct{}),
		waiting: map[uint64]chan<- wireFrame{}}, newWire(far)
}

// QUI-1: an order that was cancelled before its turn on the link is never sent, and
// its caller does not wait for a driver that takes nothing; one that has begun is
// sent whole and then cancelled.
func TestOrderCancelledBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, far := bare()
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		outcomes := make(chan error, 2)
		ask := func(ctx context.Context, lease string) {
			_, err := p.order(ctx, order{Action: []byte("{}"), Lease: lease})
			outcomes <- err
		}
		go ask(first, "first")
		synctest.Wait() // the driver reads nothing: it writes
		go ask(second, "second")
		synctest.Wait()
		cancelSecond()
		if err := <-outcomes; err != errNotSent {
			t.Errorf("the second came to %v", err)
		}
		cancelFirst()
		synctest.Wait()
		var got []string
		for range 2 {
			f, err := far.read()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%c%d", f.kind, f.id))
		}
		if fmt.Sprint(got) != "[o1 c1]" {
			t.Errorf("the driver got %v", got)
		}
		if len(p.waiting) != 1 {
			t.Errorf("%d orders wait", len(p.waiting))
		}
		far.conn.Close()
		p.receive(newOutbox(), nil)
		<-outcomes
	})
}

// DRV-5: what the parent keeps of a driver's word is bounded, and of the words that
// the vocabulary has; a driver that says something else is not listened to any more.
func TestDriversWord(t *testing.T) {
	long := reins.TabID(strings.Repeat("t", 1000))
	for name, o := range map[string]outcome{
		"a tab without end":  {Reply: &Reply{Result: reins.Result{Tab: &reins.Tab{ID: long}}}},
		"selected":           {Reply: &Reply{Result: reins.Result{Selected: long}}},
		"tabs":               {Reply: &Reply{Result: reins.Result{Tabs: []reins.Tab{{ID: long}}}}},
		"a code of its own":  {Error: &reins.Error{Code: "all_is_well", Message: "x"}},
		"numbers below zero": {Reply: &Reply{}, Numbers: Numbers{Tab: -1}},
		"numbers above all":  {Reply: &Reply{}, Numbers: Numbers{Document: 1 << 62}},
	} {
		f, err := o.frame(1)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := outcomeOf(f); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	for name, n := range map[string]notice{
		"a tab without end": {Event: &Event{Kind: "tab_opened", Tab: reins.Tab{ID: long}}},
		"a kind":            {Event: &Event{Kind: string(long)}},
		"a handover":        {Handover: &Handover{Numbers: Numbers{Tab: 1 << 62}}},
		"nothing":           {},
	} {
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := noticeOf(wireFrame{kind: frameNotice, parts: [][]byte{b}}); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	if _, err := noticeOf(wireFrame{kind: frameNotice, parts: [][]byte{bytes.Repeat([]byte(" "), mostNotice+1)}}); err == nil {
		t.Error("a notice without end is taken")
	}
}

// DRV-3: what waits for somebody who is slow to take it is bounded in bytes too.
func TestOutboxBytes(t *testing.T) {
	o := newOutbox()
	n := notice{Event: &Event{Kind: "tab_opened"}, size: mostNotice}
	for range mostWaiting / mostNotice {
		if !o.put(n) {
			t.Fatal("there is room")
		}
	}
	if o.put(n) {
		t.Error("the bound does not hold")
	}
	o = newOutbox()
	update := notice{Event: &Event{Kind: "tab_updated", Tab: reins.Tab{ID: "t1"}}, size: mostNotice}
	for range 2 * mostWaiting / mostNotice { // each in the place of the one before
		if !o.put(update) {
			t.Fatal("an update takes room twice")
		}
	}
	if _, err := o.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range mostWaiting / mostNotice {
		if !o.put(n) {
			t.Fatal("what was taken still takes room")
		}
	}
}
