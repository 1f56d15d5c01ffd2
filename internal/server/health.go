package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/reins-browser/reins"
)

// readyTime bounds what /readyz asks.
const readyTime = 2 * time.Second

// The headers by which a server proves who it is to who can read its directory, before
// it is told a key: another user could listen where a server was that was killed.
const (
	ChallengeHeader = "Reins-Challenge"
	ProofHeader     = "Reins-Proof"
)

// Proof is what only who knows the secret can answer to a challenge.
func Proof(secret, challenge string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("reins server " + challenge))
	return hex.EncodeToString(mac.Sum(nil))
}

// healthz says that the process lives and answers.
func (d *Door) healthz(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if c := r.Header.Get(ChallengeHeader); c != "" && len(c) <= 128 && d.o.Secret != "" {
		w.Header().Set(ProofHeader, Proof(d.o.Secret, c))
	}
	answer(w, http.StatusOK, map[string]string{"status": "ok", "version": d.o.Version})
}

// readyView is what /readyz tells (API-5).
type readyView struct {
	Ready        bool                     `json:"ready"`
	Capabilities map[string]reins.Capable `json:"capabilities"`
}

// readyz says whether work is taken, and where not, why and what helps.
func (d *Door) readyz(w http.ResponseWriter, r *http.Request) {
	v := readyView{Ready: true, Capabilities: map[string]reins.Capable{}}
	if d.o.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		v.Capabilities = d.o.Ready(ctx)
	}
	status := http.StatusOK
	for _, c := range v.Capabilities {
		if c.State != stateReady {
			v.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	if !v.Ready {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status, v)
}

const stateReady = "ready"

// capable is ready, or failed for err.
func capable(err error) reins.Capable {
	e := reins.AsError(err)
	if e == nil {
		return reins.Capable{State: stateReady}
	}
	return reins.Capable{State: "failed", Cause: e.Message, Remedy: e.Recovery.Sentence()}
}
