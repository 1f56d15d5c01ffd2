package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// processOf returns the process below pid whose command line names a kind, the one
// of several that holds most memory.
func processOf(t *testing.T, pid int, kind string) int {
	t.Helper()
	most, found := -1, 0
	for _, id := range descendants(pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
		if err != nil || !strings.Contains(string(line), kind) {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		held := 0
		if fields := strings.Fields(rest); len(fields) > 0 {
			held, _ = strconv.Atoi(fields[0])
		}
		if held > most {
			most, found = held, id
		}
	}
	if found == 0 {
		t.Fatalf("there is no process of kind %s", kind)
	}
	return found
}

// B069: only the process of one page dies: its tab says so and is of use again
// after a navigation, the others go on as they were. The processes that the browser
// starts anew by itself cost a try at most.
func TestOnePageCrashes(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fat":
			fmt.Fprint(w, `<title>Fat</title><h1>Fat</h1><script>fat = new Uint8Array(300 << 20).fill(1)</script>`)
		default:
			fmt.Fprint(w, `<title>Lean</title><button onclick="this.textContent = 'Pressed ' + (window.n = (window.n || 0) + 1)">Press</button>`)
		}
	}))
	defer site.Close()
	at := site.Listener.Addr().String()
	other := strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	for _, engine := range []string{"full", "shell"} {
		t.Run(engine, func(t *testing.T) {
			cmd := program(t, "mcp", "--engine", engine, "--tools", "tabs", "--allow", at)
			c := connect(t, cmd)
			good := func(tool string, arguments map[string]any, see ...string) string {
				t.Helper()
				text, failed := ask(t, c, tool, arguments)
				for _, s := range see {
					if failed || !strings.Contains(text, s) {
						t.Fatalf("%s %v: %q, want %q", tool, arguments, text, s)
					}
				}
				return text
			}
			good("browser_navigate", map[string]any{"url": site.URL + "/fat"}, `heading "Fat"`)
			text := good("browser_open_tab", map[string]any{"url": other}, `button "Press"`)
			_, rest, _ := strings.Cut(text, "[ref=")
			ref, _, _ := strings.Cut(rest, "]")
			good("browser_click", map[string]any{"ref": ref, "tab": "t2"}, "Clicked")
			if err := syscall.Kill(processOf(t, cmd.Process.Pid, "--type=renderer"), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if text, failed := ask(t, c, "browser_snapshot", map[string]any{"tab": "t1"}); !failed || !strings.Contains(text, "page_crashed") || !strings.Contains(text, "\nNext: ") {
					t.Errorf("the crashed page says %q", text)
				}
			}
			good("browser_list_tabs", nil, "crashed")
			good("browser_snapshot", map[string]any{"tab": "t2"}, "Pressed 1")
			good("browser_navigate", map[string]any{"tab": "t1", "url": site.URL + "/again"}, `button "Press"`)
			if text := good("browser_list_tabs", nil, "Open tabs: 2."); strings.Contains(text, "crashed") {
				t.Errorf("once it is loaded anew: %q", text)
			}
			for _, kind := range []string{"--type=gpu-process", "network.mojom.NetworkService"} {
				if err := syscall.Kill(processOf(t, cmd.Process.Pid, kind), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				for try := 0; ; try++ {
					text, failed := ask(t, c, "browser_navigate", map[string]any{"tab": "t1", "url": site.URL + "/after"})
					if !failed {
						break
					}
					if try == 1 || !strings.Contains(text, "Retryable: yes") {
						t.Fatalf("after the end of %s: %q", kind, text)
					}
				}
				good("browser_snapshot", map[string]any{"tab": "t2"}, "Pressed 1")
			}
		})
	}
}
