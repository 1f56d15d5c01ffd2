package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins/internal/redact"
)

func TestText(t *testing.T) { // ACT-11
	set := redact.Set{{Name: "pass", Value: `hunter2 "ü&`}, {Name: "card", Value: "4000123456789010"}, {Name: "pin", Value: "9a.1"}}
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"nothing here, hunter2 alone neither", "nothing here, hunter2 alone neither"},
		{`a hunter2 "ü& b`, "a [secret:pass] b"},
		{`HUNTER2 "Ü&`, "[secret:pass]"},
		{"hunter2 \t\n\"ü&", "[secret:pass]"},
		{"http://a.test/?q=hunter2+%22%C3%BC%26&x=1", "http://a.test/?q=[secret:pass]&x=1"},
		{"next=%252Fhunter2%2520%2522%25C3%25BC%2526", "next=%252F[secret:pass]"},
		{"h%75nter2%20%22%c3%bc&", "[secret:pass]"},
		{`{"v":"hunter2 \"\u00fc&"}`, `{"v":"[secret:pass]"}`},
		{"hunter2 &quot;&#252;&amp;", "[secret:pass]"},
		{"hun\u200bter2 \"ü&", "[secret:pass]"},
		{"4000 1234 5678 9010", "[secret:card]"},
		{"4000-1234-5678-9010, ends 9010", "[secret:card], ends 9010"},
		{"4000  1234 5678 9010", "[secret:card]"},
		{"9a.1 9a 1 9 a.1", "[secret:pin] 9a 1 9 a.1"},
		{"9a.19a.1", "[secret:pin][secret:pin]"},
		{base64.StdEncoding.EncodeToString([]byte("4000123456789010")), "[secret:card]=="},
		{"for hunter2 _ü&.txt", "for [secret:pass].txt"},
		{"%2525zz%41", "%2525zz%41"},
		{"\xff9a.1\xff", "\xff[secret:pin]\xff"},
	} {
		if got := set.Text(c.in); got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestBounded: of a text that was cut, as much is left out as a secret could
// have been cut with it, whatever stands there.
func TestBounded(t *testing.T) {
	set := redact.Set{{Name: "pass", Value: "correct horse"}}
	long := strings.Repeat("x", 50)
	for _, c := range []struct{ in, want string }{
		{"Read more…", "Read more…"},
		{long + "correct hors…", long + "…"},
		{long + "other words.…", long + "…"},
		{long + "correct horse", long + "[secret:pass]"},
	} {
		if got := set.Bounded(c.in); got != c.want {
			t.Errorf("Bounded(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := (redact.Set)(nil).Bounded(long + "…"); got != long+"…" {
		t.Errorf("without secrets: %q", got)
	}
}

// TestDresses: whatever the value, no encoding that a text of a browser goes
// through lets it pass.
func TestDresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("aB3$%+&\\\"'<> /ü日😀.-_=?")), 4, 24, -1).
			Filter(func(s string) bool { return len(strings.TrimSpace(s)) >= 4 && strings.TrimSpace(s) == s }).Draw(t, "value")
		js, _ := json.Marshal(value)
		dresses := map[string]string{
			"plain": value, "query": url.QueryEscape(value), "path": url.PathEscape(value), "twice": url.QueryEscape(url.QueryEscape(value)),
			"json": string(js), "quoted": strconv.Quote(value), "ascii": strconv.QuoteToASCII(value), "html": html.EscapeString(value),
			"upper": strings.ToUpper(value),
		}
		set := redact.Set{{Name: "s", Value: value}}
		for name, dressed := range dresses {
			before, after := rapid.SampledFrom([]string{"", "x", " ", "?q="}).Draw(t, "before"), rapid.SampledFrom([]string{"", "y", "&z=1"}).Draw(t, "after")
			if got := set.Text(before + dressed + after); !strings.Contains(got, "[secret:s]") {
				t.Fatalf("%s: %q stays in %q", name, value, got)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("a%41\\u0041&#65;", "abcd")
	f.Add("%%%%25%2525", "%%%%")
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(value) < redact.Shortest || len(value) > 64 {
			return
		}
		got := redact.Set{{Name: "n", Value: value}}.Text(text)
		if strings.Contains(text, value) && !strings.Contains(got, redact.Mark("n")) && utf8.ValidString(value) {
			t.Errorf("%q stays in %q", value, got)
		}
		if !strings.Contains(got, redact.Mark("n")) && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	set := redact.Set{{Name: "a", Value: "correct horse battery"}, {Name: "b", Value: "hunter2 hunter2"}}
	text := strings.Repeat("- link \"Some words on a page\" [ref=f1e12]\n", 600)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		set.Text(text)
	}
}
