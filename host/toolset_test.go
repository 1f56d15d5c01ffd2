package host

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
)

// TestToolsetRun is TOOL-1: the run and the scope of a toolset's capability reach
// the gate and the audit record of every call; a call of another run reaches
// neither, nor the browser.
func TestToolsetRun(t *testing.T) {
	var gate box[[]reins.Binding]
	hooks := reins.Hooks{BeforeOperation: func(_ context.Context, op reins.Operation) error {
		gate.set(append(gate.get(), op.Authority.Binding))
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, _ *resource) {
		b := agentOf(key1, 1)
		b.Scope, b.Run = "shop", "run-7"
		c, err := w.host.Issue(ctx0, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		set, err := toolset.Open(w.host, c, toolset.Options{Scope: "shop", Run: "run-7"})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		calls := map[string]string{"browser_navigate": `{"url":"a.test","snapshot":false}`, "browser_press": `{"key":"Enter"}`, "browser_snapshot": `{}`}
		for name, arguments := range calls {
			if a := set.Call(toolset.WithRun(ctx0, "run-7"), name, json.RawMessage(arguments)); a.Err != nil {
				t.Errorf("%s: %v", name, a.Err)
			}
			a := set.Call(toolset.WithRun(ctx0, "run-8"), name, json.RawMessage(arguments))
			if a.Err == nil {
				t.Errorf("%s of another run was made", name)
			}
		}
		synctest.Wait()
		if asked := gate.get(); len(asked) != len(calls) {
			t.Errorf("the gate was asked %d times", len(asked))
		}
		for _, asked := range gate.get() {
			if asked.Run != "run-7" || asked.Scope != "shop" {
				t.Errorf("the gate saw run %q and scope %q", asked.Run, asked.Scope)
			}
		}
		records := 0
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, rec := range w.records {
			if rec.Operation == "" {
				continue
			}
			records++
			if rec.Run != "run-7" {
				t.Errorf("record %+v", rec)
			}
		}
		if records != len(calls) {
			t.Errorf("%d records of %d calls", records, len(calls))
		}
	})
}
