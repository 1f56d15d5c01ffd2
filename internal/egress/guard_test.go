package egress_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// What two parsers could read in two ways is refused, and nothing of what
// follows on the connection is read as a request (EGR-8, B105).
func TestSmuggling(t *testing.T) {
	var hits atomic.Int32
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		io.Copy(io.Discard, r.Body)
	})
	p := start(t, egress.Options{}, newNetwork().name("a.example.com", []string{public}).to(public+":80", at).to(public+":443", at))
	const line, host = "POST http://a.example.com/ HTTP/1.1\r\n", "Host: a.example.com\r\n"
	next := "GET http://a.example.com/smuggled HTTP/1.1\r\nHost: a.example.com\r\n\r\n"
	for name, raw := range map[string]string{
		"length and coding":               line + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding and length":               line + host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"two lengths":                     line + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
		"two equal lengths":               line + host + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
		"lengths in a list":               line + host + "Content-Length: 4, 4\r\n\r\nabcd",
		"signed length":                   line + host + "Content-Length: +4\r\n\r\nabcd",
		"negative length":                 line + host + "Content-Length: -4\r\n\r\nabcd",
		"hex length":                      line + host + "Content-Length: 0x4\r\n\r\nabcd",
		"huge length":                     line + host + "Content-Length: 99999999999999999999\r\n\r\nabcd",
		"empty length":                    line + host + "Content-Length:\r\n\r\nabcd",
		"coding twice":                    line + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding in a list":                line + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"coding with a vertical tab":      line + host + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		"other coding":                    line + host + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"coding in 1.0":                   "POST http://a.example.com/ HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"space before colon":              line + host + "Content-Length : 4\r\n\r\nabcd",
		"space before name":               line + host + " Content-Length: 4\r\n\r\nabcd",
		"folded line":                     line + host + "X-A: 1\r\n\tTransfer-Encoding: chunked\r\n\r\n",
		"folded first line":               line + " X: 1\r\n" + host + "\r\n",
		"no colon":                        line + host + "X-A\r\n\r\n",
		"empty name":                      line + host + ": x\r\n\r\n",
		"NUL in a value":                  line + host + "X-A: a\x00b\r\n\r\n",
		"NUL in a name":                   line + host + "X\x00A: b\r\n\r\n",
		"bare CR in a value":              line + host + "X-A: a\rTransfer-Encoding: chunked\r\n\r\n",
		"bare LF":                         line + host + "X-A: a\nX-B: b\r\n\r\n",
		"bare LF all through":             strings.ReplaceAll(line+host, "\r", "") + "\n",
		"leading empty line":              "\r\n" + line + host + "\r\n",
		"non-ASCII name":                  line + host + "X-\xc3\xa9: b\r\n\r\n",
		"two hosts":                       line + host + host + "\r\n",
		"no host":                         line + "\r\n",
		"another host":                    line + "Host: b.example.com\r\n\r\n",
		"another host's port":             line + "Host: a.example.com:8080\r\n\r\n",
		"user in the target":              "GET http://a.example.com@10.0.0.1/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n",
		"space in the target":             "GET http://a.example.com/ x HTTP/1.1\r\n" + host + "\r\n",
		"tab in the request line":         "GET\thttp://a.example.com/\tHTTP/1.1\r\n" + host + "\r\n",
		"control in the target":           "GET http://a.example.com/\x01 HTTP/1.1\r\n" + host + "\r\n",
		"raw UTF-8 in the target":         "GET http://a.example.com/\xc3\xa9 HTTP/1.1\r\n" + host + "\r\n",
		"raw UTF-8 in the host":           "GET http://①②⑦.⓪.⓪.①/ HTTP/1.1\r\nHost: ①②⑦.⓪.⓪.①\r\n\r\n",
		"method with a colon":             "GE:T http://a.example.com/ HTTP/1.1\r\n" + host + "\r\n",
		"no version":                      "GET http://a.example.com/\r\n" + host + "\r\n",
		"version 2":                       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"version 1.2":                     "GET http://a.example.com/ HTTP/1.2\r\n" + host + "\r\n",
		"origin form":                     "GET / HTTP/1.1\r\n" + host + "\r\n",
		"asterisk":                        "OPTIONS * HTTP/1.1\r\n" + host + "\r\n",
		"https in absolute form":          "GET https://a.example.com/ HTTP/1.1\r\n" + host + "\r\n",
		"ftp in absolute form":            "GET ftp://a.example.com/ HTTP/1.1\r\n" + host + "\r\n",
		"authority form without a tunnel": "GET a.example.com:80 HTTP/1.1\r\n" + host + "\r\n",
		"CONNECT with a length":           "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\nContent-Length: 0\r\n\r\n",
		"CONNECT with a coding":           "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\nTransfer-Encoding: chunked\r\n\r\n",
		"CONNECT without a port":          "CONNECT a.example.com HTTP/1.1\r\nHost: a.example.com\r\n\r\n",
		"CONNECT to port 0":               connect("a.example.com:0"),
		"CONNECT to port 65536":           connect("a.example.com:65536"),
		"CONNECT for another host":        "CONNECT a.example.com:443 HTTP/1.1\r\nHost: b.example.com:443\r\n\r\n",
		"CONNECT with a path":             connect("a.example.com:443/x"),
		"CONNECT to an absolute form":     "CONNECT http://a.example.com:443/ HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n",
		"CONNECT to a path":               "CONNECT /a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n",
		"TLS":                             "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n\r\n\r\n",
	} {
		c := p.dial(t)
		resp, body := c.ask(raw + next)
		if got := resp.Header.Get("Reins-Egress"); resp.StatusCode != 400 || got != "malformed" && got != "bad-host" {
			t.Errorf("%s: %d %q %s", name, resp.StatusCode, got, body)
		}
		// Closed, perhaps by a reset, and not waiting for more.
		rest, err := io.ReadAll(c.Reader)
		if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection went on with %q, %v", name, rest, err)
		}
	}
	// Without CR no end of the head would ever come.
	resp, _ := p.dial(t).ask("GET http://a.example.com/ HTTP/1.1\n" + host)
	wantReason(t, resp, egress.ReasonMalformed)
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived at the host", hits.Load())
	}
	// Requests in order and whole are not stopped by any of this.
	hits.Store(0)
	c := p.dial(t)
	io.WriteString(c.Conn, line+host+"Content-Length: 5\r\n\r\nGET /"+next+next)
	for i := range 3 {
		resp, err := http.ReadResponse(c.Reader, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("pipelined request %d: %v, %v", i, resp, err)
		}
		io.Copy(io.Discard, resp.Body)
	}
	if hits.Load() != 3 {
		t.Errorf("%d requests arrived, want 3", hits.Load())
	}
}

// A refused head is answered in its turn: the request before it is served.
func TestSmugglingAnswersInOrder(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "first") })
	p := start(t, egress.Options{}, newNetwork().to(public+":80", at))
	c := p.dial(t)
	resp, body := c.ask(get("http://"+public+"/") + "GET http://" + public + "/ HTTP/1.1\r\nX\r\n\r\n")
	if resp.StatusCode != 200 || body != "first" {
		t.Errorf("first answer %d %q", resp.StatusCode, body)
	}
	resp, err := http.ReadResponse(c.Reader, nil)
	if err != nil || resp.StatusCode != 400 {
		t.Fatalf("second answer %v, %v", resp, err)
	}
	wantReason(t, resp, egress.ReasonMalformed)
}

// EGR-7: the bound of a head, whether it comes at once, in drips or never
// ends; the proxy goes on serving others (B105).
func TestHeadBound(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, len(r.Header.Get("X-Big"))) })
	p := start(t, egress.Options{Limits: reins.Limits{EgressHeader: 8 << 10}}, newNetwork().to(public+":80", at))
	head := "GET http://" + public + "/ HTTP/1.1\r\nHost: " + public + "\r\nX-Big: "
	fits := (8 << 10) - len(head) - 4
	if _, body := p.dial(t).ask(head + strings.Repeat("x", fits) + "\r\n\r\n"); body != fmt.Sprint(fits) {
		t.Errorf("a head at the bound: %q", body)
	}
	resp, _ := p.dial(t).ask(head + strings.Repeat("x", fits+1) + "\r\n\r\n")
	wantReason(t, resp, egress.ReasonHeader)
	if resp.StatusCode != 431 {
		t.Errorf("a head above the bound: %d", resp.StatusCode)
	}
	c := p.dial(t)
	go io.WriteString(c.Conn, "GET http://"+strings.Repeat("x", 1<<20))
	resp, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, resp, egress.ReasonHeader)
	drip := p.dial(t)
	for i := range 40 {
		io.WriteString(drip.Conn, get("http://10.0.0.1/")[i:i+1])
		if i%10 == 0 {
			if resp, _ := p.dial(t).ask(get("http://" + public + "/")); resp.StatusCode != 200 {
				t.Errorf("beside a drip: %d", resp.StatusCode)
			}
		}
	}
	resp, _ = drip.ask(get("http://10.0.0.1/")[40:])
	wantReason(t, resp, egress.ReasonAddress)
}
