package driver

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// DRV-6, RDY-1: a browser whose own process does not answer any more ends its
// driver, once an action came to a timeout; a page that does not, does not.
func TestHungBrowser(t *testing.T) {
	s := site(t, map[string]string{
		"/":     `<title>Home</title><p>here</p>`,
		"/busy": `<title>Busy</title><p>here</p><script>setTimeout(() => { for (;;); }, 100)</script>`,
	})
	c := launch(t, reins.EngineShell)
	p := startDriver(t, c, reins.EngineShell, 1, Handover{}, nil)
	wait := reins.WaitFor{Text: "never", Timeout: reins.Duration(300 * time.Millisecond)}
	for _, path := range []string{"/", "/busy"} {
		if _, err := run(p, reins.Navigate{URL: s.URL + path}); err != nil {
			t.Fatal(err)
		}
		_, err := run(p, wait)
		wantCode(t, err, reins.CodeTimeout)
	}
	if r, err := run(p, reins.Navigate{URL: s.URL + "/"}); err != nil || r.Result.Navigation.Title != "Home" {
		t.Fatalf("after a busy page: %v", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer c.cmd.Process.Signal(syscall.SIGCONT)
	if _, err := run(p, wait); err == nil {
		t.Error("a stopped browser shows a text")
	}
	select {
	case <-p.Done():
	case <-time.After(answerTime + 20*time.Second):
		t.Fatal("the driver stays on a browser that does not answer")
	}
	wantCode(t, p.Err(), reins.CodeTransportFailure)
	if !strings.Contains(p.Err().Error(), "has not said its version") {
		t.Errorf("it ended with %v", p.Err())
	}
}
