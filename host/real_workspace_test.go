package host

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/reins-browser/reins"
)

// counting is a page that keeps how often it was shown in local storage and in a
// database, and says so together with the cookie that its server sees.
const counting = `<title>Count</title><p>Wait</p><script>
	const seen = 1 + Number(localStorage.getItem("seen"))
	localStorage.setItem("seen", seen)
	const open = indexedDB.open("kept", 1)
	open.onupgradeneeded = () => open.result.createObjectStore("numbers")
	open.onsuccess = () => {
		const numbers = open.result.transaction("numbers", "readwrite").objectStore("numbers")
		const had = numbers.get("seen")
		had.onsuccess = () => {
			const next = 1 + (had.result || 0)
			numbers.put(next, "seen").onsuccess = () => { document.querySelector("p").textContent = document.title = "%s " + seen + " " + next }
		}
	}
</script>`

// TestRealWorkspace is WSP-2: cookies and storage are on disk when a browser was
// ended, at once after they were set, by Terminate and by the stop of the
// runtime; a second writer is busy, and a workspace
// goes with the last resource that uses it.
func TestRealWorkspace(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/count": func(w http.ResponseWriter, r *http.Request) {
			who := "nobody"
			if c, err := r.Cookie("who"); err == nil {
				who = c.Value
			}
			http.SetCookie(w, &http.Cookie{Name: "who", Value: "ada", MaxAge: 3600})
			html(fmt.Sprintf(counting, who))(w, r)
		},
	})
	for _, engine := range []reins.Engine{reins.EngineFull, reins.EngineShell} {
		t.Run(string(engine), func(t *testing.T) {
			h := real(t, reins.Hooks{})
			spec := reins.BrowserSpec{Workspace: "desk", Egress: policy, Engine: engine}
			l := realLease(t, h, key1, spec)
			count := func(when, want string) {
				t.Helper()
				do(t, l, reins.Navigate{URL: base + "/count"})
				do(t, l, reins.WaitFor{Gone: "Wait"})
				if got := do(t, l, reins.ListTabs{}).Tabs[0].Title; got != want {
					t.Errorf("%s: %q, want %q", when, got, want)
				}
			}
			count("at first", "nobody 1 1")
			other := realLease(t, h, reins.ResourceKey{Project: "p", ID: "two"}, spec)
			_, err := other.Do(t.Context(), reins.Call{Action: reins.Navigate{URL: base + "/count"}})
			code(t, err, reins.CodeBusy)
			r, err := h.Open(t.Context(), key1)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			count("after Terminate", "ada 2 2")
			if err := h.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			l = realLease(t, h, key1, spec)
			count("after a restart of the runtime", "ada 3 3")
			if r, err = h.Open(t.Context(), key1); err != nil {
				t.Fatal(err)
			}
			if err := r.Retire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names, err := os.ReadDir(filepath.Join(h.dir, "workspaces")); err != nil || len(names) != 0 {
				t.Errorf("workspaces after retiring: %v (%v)", names, err)
			}
		})
	}
}
