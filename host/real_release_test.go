package host

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestRealPopupUnderAPress is INP-2 in a browser: a page that opens a tab while
// somebody holds a button on it gets to know that the button was let go.
func TestRealPopupUnderAPress(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/": html(`<title>Start</title><body style="height:500px"><script>
			onmousedown = () => open("/other")
			onmouseup = e => { document.title = "let go at " + e.clientX }
		</script>`),
		"/other": html(`<title>Other</title><body style="height:500px">`),
	})
	h := real(t, reins.Hooks{})
	agent := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	ada := acquire(t, h, personOf(key1))
	do(t, agent, reins.Navigate{URL: base + "/"})
	at := do(t, ada, reins.ListTabs{}).Selected
	do(t, ada, reins.Pointer{Tab: at, Kind: "move", X: 70, Y: 70})
	do(t, ada, reins.Pointer{Tab: at, Kind: "down", X: 70, Y: 70})
	within(t, 20*time.Second, "let go on the page that opened another", func() bool {
		tabs := do(t, ada, reins.ListTabs{})
		titles := ""
		for _, tab := range tabs.Tabs {
			titles += tab.Title + "; "
		}
		return tabs.Selected != at && strings.Contains(titles, "let go at 70")
	})
	err := act(ada, reins.Pointer{Tab: at, Kind: "up", X: 70, Y: 70})
	code(t, err, reins.CodeInvalidState) // INP-1: it is not shown any more
}
