package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// site serves pages of a given number of elements on loopback.
type site struct {
	server *http.Server
	addr   string
}

func serve() (*site, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr().String()}
	pages := map[string]string{}
	for _, n := range []int{35, 950, 10000, 50000} {
		pages["/"+strconv.Itoa(n)] = page(n)
	}
	pages["/frames"] = `<!doctype html><html lang="en"><title>Frames</title><main>` + strings.Repeat(`<iframe src="/35" title="Goods"></iframe>`, 20) + `</main>`
	pages["/fetch"] = acting("Fetch", `answer=fetch('/35').then(r=>r.text()).then(()=>{out.textContent=++count})`)
	pages["/leave"] = acting("Leave", `location.assign('/leave?'+performance.now())`)
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	})}
	go s.server.Serve(l) //nolint:errcheck // ends with Close
	return s, nil
}

func (s *site) Close()                 { s.server.Close() }
func (s *site) url(name string) string { return "http://" + s.addr + "/" + name }

// page has about n elements: a form, and a shop's list of goods.
func page(n int) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><title>Goods</title><style>body{font:14px sans-serif}li{display:flex;gap:8px}</style>
<main><h1>Goods</h1><p>Choose what you need.</p>
<button onclick="this.textContent='Count '+(++count);document.getElementById('out').textContent=count">Count 0</button>
<p id="out">0</p><label>Name <input id="name"></label><script>let count=0</script><ul>`)
	for i := range (n - 14) / 6 {
		fmt.Fprintf(&b, `<li><h3>Article %d</h3><span>in stock</span><a href="/article/%d">Details of %d</a><button>Add %d</button><input type="checkbox" aria-label="Mark %d"></li>`, i, i, i, i, i)
	}
	b.WriteString(`</ul></main>`)
	return b.String()
}

// acting is a page with a button that does something.
func acting(name, script string) string {
	return `<!doctype html><html lang="en"><title>` + name + `</title><main><h1>` + name + `</h1><button onclick="` + script + `">` + name +
		`</button><p id="out">0</p></main><script>let count=0,answer;const out=document.getElementById('out')</script>`
}
