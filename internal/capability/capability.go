// Package capability makes and checks the secrets and names that authority is
// built from.
//
// A [reins.Token] is 256 random bits as text. It is shown once, to whoever was
// given the capability; what stays behind is its [Hash], which is enough to
// recognise it and useless for making it. Look a token up by [Sum] and decide
// with [Hash.Matches], so that the time an answer takes says nothing about how
// near a guess was. All reasons for a no look alike to the caller (LSE-1); that
// is the host's business, and this package gives it one bool to decide on.
//
// An ID names a thing and is no secret: a readable prefix and 128 random bits
// in an alphabet that is safe in paths, URLs and file names of any system. It
// cannot be chosen by callers and never repeats (RES-6).
//
// Nothing here keeps state, so nothing needs closing. Randomness comes from the
// kernel; a kernel that has none ends the process (crypto/rand), there is no
// weaker source to fall back to.
package capability

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"strings"

	"github.com/reins-browser/reins"
)

// tokenPrefix lets scanners of logs and repositories recognise a leaked token.
const tokenPrefix = "reins_"

// TokenLength is the length in bytes of a token's text.
const TokenLength = len(tokenPrefix) + 43

// NewToken returns a new token of 256 random bits (CAP-4): "reins_" and 43
// characters of the URL-safe base64 alphabet.
func NewToken() reins.Token {
	var b [32]byte
	rand.Read(b[:])
	return reins.Token(tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:]))
}

// Hash is what is kept of a token: SHA-256 over its text. It is comparable, so
// it can be the key of a map.
type Hash [sha256.Size]byte

// Sum returns the hash of a token. Any text has one; a text that is no token
// has one that matches nothing.
func Sum(t reins.Token) Hash { return sha256.Sum256([]byte(t)) }

// Matches reports whether t is the token that h was made of. The time it takes
// depends on the length of t only (CAP-4). The zero Hash matches nothing.
func (h Hash) Matches(t reins.Token) bool {
	sum := Sum(t)
	same := subtle.ConstantTimeCompare(h[:], sum[:])
	none := subtle.ConstantTimeCompare(h[:], make([]byte, len(h)))
	return same&^none == 1
}

// Kind is the prefix of an ID: it says what the ID names.
type Kind string

// The kinds of IDs.
const (
	KindRuntime    Kind = "rt"
	KindGeneration Kind = "gen"
	KindResource   Kind = "res"
	KindCapability Kind = "cap"
	KindLease      Kind = "lease"
	KindOperation  Kind = "op"
	KindArtifact   Kind = "art"
	KindCell       Kind = "cell"
)

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

var idText = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// NewID returns a new ID of a kind: the kind, "_" and 26 characters of [a-z2-7]
// that carry 128 random bits, such as "lease_k3v5…". It satisfies the rule for
// project and resource IDs.
func NewID(k Kind) string {
	var b [16]byte
	rand.Read(b[:])
	return string(k) + "_" + idText.EncodeToString(b[:])
}

// IsID reports whether s has the form of an ID of the kind k. Use it before a
// name read from a disk becomes part of a path.
func IsID(k Kind, s string) bool {
	rest, ok := strings.CutPrefix(s, string(k)+"_")
	if !ok || len(rest) != idText.EncodedLen(16) {
		return false
	}
	// Not by decoding: that would skip line breaks.
	return strings.Trim(rest, alphabet) == ""
}
