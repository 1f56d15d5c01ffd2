package driver

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/reins-browser/reins"
)

// workersPage starts one worker of each kind and lists those that spoke.
const workersPage = `<!doctype html><title>Workers</title><output id=result aria-label=result></output><script>
const heard = new Set(), out = document.getElementById('result');
const hear = (e) => { heard.add(e.data); out.textContent = [...heard].sort().join(' '); };
const blob = (code) => URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
new Worker(blob('postMessage("blob")')).onmessage = hear;
new Worker('/worker.js').onmessage = hear;
new Worker('/nest.js').onmessage = hear;
const shared = new SharedWorker('/shared.js');
shared.port.onmessage = hear;
navigator.serviceWorker.onmessage = hear;
navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready).then((r) => r.active.postMessage(''));
new AudioContext().audioWorklet.addModule('/worklet.js').then(() => hear({ data: 'worklet' }));
</script>`

// Workers of every kind run: only frames are stopped until their session is
// set up (TAB-3).
func TestWorkersRun(t *testing.T) {
	mux := http.NewServeMux()
	script := func(path, code string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, code)
		})
	}
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, workersPage)
	})
	script("/worker.js", `postMessage("file")`)
	script("/nest.js", `new Worker("/inner.js").onmessage = e => postMessage(e.data)`)
	script("/inner.js", `postMessage("nested")`)
	script("/shared.js", `onconnect = e => e.ports[0].postMessage("shared")`)
	script("/service.js", `onmessage = e => e.source.postMessage("service")`)
	script("/worklet.js", `registerProcessor("p", class extends AudioWorkletProcessor { process() { return false } })`)
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		const all = "blob file nested service shared worklet"
		if _, err := b.try(reins.WaitFor{Text: all}); err != nil {
			t.Errorf("of the workers %q only %q spoke", all, b.result(t))
		}
	})
}
