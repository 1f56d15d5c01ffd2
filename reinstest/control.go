package reinstest

import (
	"testing"

	"github.com/reins-browser/reins"
)

var controlTests = map[string]func(*testing.T, Factory){
	"CTL-1 to CTL-4 takeover":      takesOver,
	"CTL-8 an agent asks a person": asksPerson,
}

func (w *world) control(l reins.Lease) reins.Control {
	w.t.Helper()
	res, err := l.Do(w.ctx, reins.Call{Action: reins.GetControl{}})
	if err != nil || res.Control == nil {
		w.t.Fatalf("control: %+v, %v", res, err)
	}
	return *res.Control
}

func takesOver(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	a, ada, bob := w.lease(agent(1)), w.lease(person("ada")), w.lease(person("bob"))
	if _, err := a.Do(w.ctx, reins.Call{Action: reins.RequestControl{}}); reins.CodeOf(err) != reins.CodeDenied {
		t.Errorf("an agent asks for control: %v", err)
	}
	if _, err := ada.Do(w.ctx, reins.Call{Action: reins.RequestControl{}}); err != nil {
		t.Fatal(err)
	}
	if c := w.control(ada); c.State != reins.ControlHuman || !c.Mine || c.Actor != "ada" || c.Expires.IsZero() {
		t.Errorf("the holder sees %+v", c)
	}
	if c := w.control(bob); c.State != reins.ControlHuman || c.Mine {
		t.Errorf("another sees %+v", c)
	}
	if c := w.info().Control; c.State != reins.ControlHuman || c.Actor != "ada" {
		t.Errorf("the list says %+v", c)
	}
	_, err := a.Do(w.ctx, navigate("https://a.example/"))
	w.want(err, reins.CodeHumanControlled)
	_, err = bob.Do(w.ctx, reins.Call{Action: reins.RequestControl{}})
	w.want(err, reins.CodeControlBusy)
	if err := ada.Release(w.ctx); err != nil { // the end of the lease is the end of its hold (LSE-4)
		t.Fatal(err)
	}
	if _, err := a.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Errorf("after the takeover: %v", err)
	}
}

func asksPerson(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{Verbs: append(reins.DefaultVerbs(), reins.VerbRequestHuman)})
	a, ada := w.lease(agent(1)), w.lease(person("ada"))
	asked := w.do(a, reins.Call{Action: reins.RequestHuman{Reason: "log in, please é"}})
	var request reins.HumanRequest
	w.until("the agent's request", func() bool {
		if c := w.info().Control; len(c.Requests) == 1 {
			request = c.Requests[0]
		}
		return request.ID != ""
	})
	if request.Reason != "log in, please é" || request.Actor != "agent é" {
		t.Errorf("people see %+v", request)
	}
	if _, err := ada.Do(w.ctx, reins.Call{Action: reins.AnswerHuman{Request: request.ID, Note: "done"}}); err != nil {
		t.Fatal(err)
	}
	w.closed(asked.done, "the answer")
	if asked.err != nil || asked.res.Human == nil || asked.res.Human.Outcome != reins.HumanDone || asked.res.Human.Note != "done" || asked.res.Human.Actor != "ada" {
		t.Errorf("the agent heard %+v, %v", asked.res, asked.err)
	}
}
