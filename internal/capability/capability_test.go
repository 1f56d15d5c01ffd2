package capability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

func TestTokenIsRandomAndURLSafe_CAP4(t *testing.T) {
	seen := map[reins.Token]bool{}
	ones := 0
	for range 2000 {
		tok := NewToken()
		s := string(tok)
		if len(s) != TokenLength || !strings.HasPrefix(s, tokenPrefix) {
			t.Fatalf("token has %d bytes, want %d with prefix %q", len(s), TokenLength, tokenPrefix)
		}
		if i := strings.IndexFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		}); i >= 0 {
			t.Fatalf("character %d of a token needs escaping in a URL", i)
		}
		if seen[tok] {
			t.Fatal("a token came twice")
		}
		seen[tok] = true
		for _, b := range Sum(tok) {
			for ; b != 0; b &= b - 1 {
				ones++
			}
		}
	}
	// 512,000 fair bits: eight standard deviations are about 2,900.
	if d := ones - 2000*128; d < -2900 || d > 2900 {
		t.Fatalf("hashes of tokens have %d ones more than half", d)
	}
}

func TestHashRecognisesExactlyItsToken_CAP4(t *testing.T) {
	tok := NewToken()
	h := Sum(tok)
	if !h.Matches(tok) {
		t.Fatal("a hash does not match its own token")
	}
	flipped := []byte(tok)
	flipped[len(flipped)-2] ^= 1
	for name, other := range map[string]reins.Token{
		"another": NewToken(), "empty": "", "cut": tok[:len(tok)-1], "longer": tok + "A",
		"upper": reins.Token(strings.ToUpper(string(tok))), "changed": reins.Token(flipped),
		"without prefix": tok[len(tokenPrefix):],
	} {
		if h.Matches(other) {
			t.Errorf("the hash of a token matches one that is %s", name)
		}
	}
	if (Hash{}).Matches(tok) || (Hash{}).Matches("") {
		t.Error("the zero hash matches something")
	}
}

func TestNothingFormattedShowsTheToken_CAP4(t *testing.T) {
	tok := NewToken()
	secret := string(tok)[len(tokenPrefix):]
	c := reins.Capability{ID: NewID(KindCapability), Token: tok}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{tok, &c, c, []reins.Token{tok}, map[string]reins.Token{"t": tok}} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, secret) || strings.Contains(out, fmt.Sprintf("%x", secret)) {
				t.Errorf("%s of %T shows the token", verb, v)
			}
		}
	}
}

func TestIDsFitTheRuleForNames_RES6(t *testing.T) {
	kinds := []Kind{KindRuntime, KindGeneration, KindResource, KindCapability, KindLease, KindOperation, KindArtifact}
	seen := map[string]bool{}
	for _, k := range kinds {
		for range 300 {
			id := NewID(k)
			if seen[id] {
				t.Fatalf("ID %s came twice", id)
			}
			seen[id] = true
			if err := (reins.ResourceKey{Project: "p", ID: id}).Validate(); err != nil {
				t.Fatal(err)
			}
			if !IsID(k, id) {
				t.Fatalf("IsID(%s, %q) is false", k, id)
			}
		}
	}
	good := NewID(KindGeneration)
	for _, bad := range []string{
		"", "gen_", good + "a", good[:len(good)-1], "lease" + good[3:], "gen_../../../../../../../../ab",
		strings.ToUpper(good), good[:10] + "/" + good[11:], good[:10] + "\x00" + good[11:], good[:10] + "\n" + good[11:], "gen_" + strings.Repeat("1", 26),
	} {
		if IsID(KindGeneration, bad) {
			t.Errorf("IsID accepts %q", bad)
		}
	}
	if IsID(KindLease, good) {
		t.Error("IsID accepts an ID of another kind")
	}
}
