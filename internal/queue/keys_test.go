package queue

import (
	"fmt"
	"testing"

	"github.com/reins-browser/reins"
)

func begin(t *testing.T, k *Keys[int], key, action string) (*Keyed[int], bool) {
	t.Helper()
	use, first, err := k.Begin(key, []byte(action))
	if err != nil {
		t.Fatal(err)
	}
	return use, first
}

// TestKeysRepeat is OPS-5: the first outcome is repeated, another action under
// the same key is conflict, and what never began may be asked again.
func TestKeysRepeat(t *testing.T) {
	var k Keys[int]
	use, first := begin(t, &k, "k", "click e1")
	if !first {
		t.Fatal("the first use is not the first")
	}
	other, again := begin(t, &k, "k", "click e1")
	if again || other != use {
		t.Fatal("a repeat while it runs does not wait for the first")
	}
	if _, _, err := k.Begin("k", []byte("click e2")); reins.CodeOf(err) != reins.CodeConflict {
		t.Fatalf("another action: %v", err)
	}
	k.Settle(use, 7, nil, 1)
	k.Settle(use, 8, nil, 1)
	<-other.Done()
	if v, err := other.Outcome(); v != 7 || err != nil {
		t.Fatalf("outcome %d %v", v, err)
	}
	gone, _ := begin(t, &k, "never", "click")
	k.Forget(gone, errGone)
	if _, err := gone.Outcome(); err != errGone || gone.Began() || !use.Began() {
		t.Fatal("a waiter of what never began is not told")
	}
	if _, first := begin(t, &k, "never", "something else"); !first {
		t.Fatal("what never began blocks its key")
	}
	if _, _, err := k.Begin(fmt.Sprintf("%129d", 1), nil); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Fatalf("a long key: %v", err)
	}
}

// TestKeysAreBounded: outcomes, bytes and keys are bounded, and a key whose
// outcome is gone is refused instead of acting again.
func TestKeysAreBounded(t *testing.T) {
	var k Keys[int]
	for i := range 3 * keptKeys {
		use, first := begin(t, &k, fmt.Sprint("k", i), "a")
		if !first {
			t.Fatal(i)
		}
		k.Settle(use, i, nil, keptBytes/16)
		if k.bytes > keptBytes || len(k.settled) > keptResults || len(k.order) > keptKeys || len(k.known) != len(k.order) {
			t.Fatalf("%d bytes, %d outcomes, %d keys, %d known", k.bytes, len(k.settled), len(k.order), len(k.known))
		}
	}
	last := 3*keptKeys - 1
	if use, first := begin(t, &k, fmt.Sprint("k", last), "a"); first {
		t.Fatal("the newest is forgotten")
	} else if v, _ := use.Outcome(); v != last {
		t.Fatalf("outcome %d", v)
	}
	if _, _, err := k.Begin(fmt.Sprint("k", last-100), []byte("a")); reins.CodeOf(err) != reins.CodeConflict {
		t.Fatalf("a key whose outcome is gone: %v", err)
	}
	var busy Keys[int]
	for i := range keptKeys {
		begin(t, &busy, fmt.Sprint(i), "a")
	}
	if _, _, err := busy.Begin("one more", nil); reins.CodeOf(err) != reins.CodeQuotaExceeded {
		t.Fatalf("all keys in use: %v", err)
	}
}
