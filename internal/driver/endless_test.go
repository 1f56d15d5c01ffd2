package driver

import (
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestFramesWithoutEnd: a page that makes frames faster than they can be read is
// read without them, in a bounded time (SNAP-2).
func TestFramesWithoutEnd(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<title>c</title><button>Outside</button><div id=d></div><script>
setInterval(() => { d.innerHTML = ''; for (let i = 0; i < 10; i++) { const f = document.createElement('iframe'); f.srcdoc = '<button>x'; d.append(f); } }, 5)</script>`})
	b.open(t, s.URL+"/")
	began := time.Now()
	r, err := b.try(reins.Snapshot{})
	if took := time.Since(began); err != nil || took > 25*time.Second || !strings.Contains(r.Result.Snapshot.Text, `button "Outside"`) {
		t.Errorf("after %s: %v", took, err)
	}
}
