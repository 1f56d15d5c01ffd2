package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reins-browser/reins/internal/server"
)

// CAP-4: no key is sent to who only listens where a server was.
func TestInstanceProvesItself(t *testing.T) {
	secret := "ours"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a key was sent")
		}
		w.Header().Set(server.ProofHeader, server.Proof(secret, r.Header.Get(server.ChallengeHeader)))
	}))
	defer s.Close()
	i := instance{URL: s.URL, Secret: "ours"}
	if !i.answers(t.Context()) {
		t.Error("the server itself is not believed")
	}
	secret = "a stranger's"
	if i.answers(t.Context()) {
		t.Error("a stranger is believed")
	}
	if (instance{URL: s.URL}).answers(t.Context()) {
		t.Error("a file without a secret is believed")
	}
}
