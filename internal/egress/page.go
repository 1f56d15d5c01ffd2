package egress

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
)

// reasonHeader carries the reason of every refusal, and is on nothing else.
const reasonHeader = "Reins-Egress"

// refuse answers with a refusal: a page for documents, a plain status for the
// rest (EGR-8).
func (x *exchange) refuse(w http.ResponseWriter, r *http.Request, ref *refusal) {
	x.decide(false, ref.addr, ref)
	h := w.Header()
	h.Del("Date")
	h.Del("Content-Type")
	h.Set(reasonHeader, string(ref.reason))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	// Who asks like this may mean something else by what follows.
	if x.last || ref.reason.status() < http.StatusForbidden || ref.reason == ReasonHeader {
		h.Set("Connection", "close")
	}
	if !wantsDocument(r) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(ref.reason.status())
		io.WriteString(w, "Refused by the network door: "+ref.detail+"\n")
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	w.WriteHeader(ref.reason.status())
	host := x.host
	if x.target.port != 0 {
		host = x.target.host()
	}
	host = html.EscapeString(host)
	fmt.Fprintf(w, refusalPage, host, host, html.EscapeString(ref.detail), html.EscapeString(string(ref.reason)))
}

// wantsDocument reports whether a person would see the answer. Over http a
// browser leaves Sec-Fetch-Dest out, so what it accepts tells.
func wantsDocument(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "document", "iframe", "frame", "fencedframe":
		return true
	case "":
		return strings.Contains(r.Header.Get("Accept"), "text/html")
	}
	return false
}

// bounded cuts text of the page for a record.
func bounded(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// refusalPage takes the host, the host, the sentence and the reason, escaped.
const refusalPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Refused: %s</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 36rem; margin: 15vh auto; padding: 0 1rem }
h1 { font-size: 1.25rem }
h1, p { overflow-wrap: anywhere }
</style>
<main>
<h1>%s was not reached</h1>
<p>%s.</p>
<p>Reason: <code>%s</code></p>
</main>
</html>
`
