package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// CAP-6, API-2: a request whose body comes after its key was revoked does nothing.
func TestLateBody(t *testing.T) {
	s := start(t, t.TempDir()+"/run", nil)
	admin := s.client("")
	stolen, err := admin.CreateKey(t.Context(), api.KeyForm{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/keys HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
		strings.TrimPrefix(s.url, "http://"), string(stolen.Token))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // it was admitted, and its body is waited for
		t.Fatalf("%q %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := admin.RevokeKey(t.Context(), stolen.ID); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "{}")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	keys, err := admin.Keys(t.Context(), "")
	if err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v; want the first one and the revoked one", len(keys), err)
	}
}

// API-3: the links of one project's key leave room for others', and go with it.
func TestJoinsOfOneKey(t *testing.T) {
	s := start(t, t.TempDir()+"/run", nil)
	admin := s.client("")
	key, err := admin.CreateKey(t.Context(), api.KeyForm{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	project := s.client(string(key.Token))
	form := api.JoinForm{Actor: "Ada", Projects: []string{"p"}}
	for range joinsOfKey {
		if _, err := project.Join(t.Context(), form); err != nil {
			t.Fatal(err)
		}
	}
	_, err = project.Join(t.Context(), form)
	expect(t, err, reins.CodeQuotaExceeded)
	if _, err := admin.Join(t.Context(), form); err != nil {
		t.Error(err)
	}
	if err := admin.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Join(t.Context(), form); err != nil {
		t.Error(err)
	}
	s.door.people.mu.Lock()
	defer s.door.people.mu.Unlock()
	if n := len(s.door.people.joins); n != 2 {
		t.Errorf("%d links are kept, want the administrator's two", n)
	}
}

// A server proves who it is; nobody else can.
func TestProof(t *testing.T) {
	s := start(t, t.TempDir()+"/run", func(o *Options) { o.Secret = "secret" })
	b := s.browser()
	if got := b.send("GET", "/healthz", "", ChallengeHeader, "c").Header.Get(ProofHeader); got != Proof("secret", "c") || got == Proof("other", "c") {
		t.Errorf("it proves itself with %q", got)
	}
	for _, none := range []string{"", strings.Repeat("c", 129)} {
		if got := b.send("GET", "/healthz", "", ChallengeHeader, none).Header.Get(ProofHeader); got != "" {
			t.Errorf("%d bytes are answered with %q", len(none), got)
		}
	}
}
