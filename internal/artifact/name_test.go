package artifact

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "file",
		"report.pdf":                      "report.pdf",
		"../../etc/passwd":                "passwd",
		`C:\Users\x\a.txt`:                "a.txt",
		"/":                               "file",
		"..":                              "file",
		".bashrc":                         "bashrc",
		"  a  b .txt. ":                   "a  b .txt",
		"a\x00b\x1b[31m\r\nc.txt":         "ab[31m  c.txt",
		"invoice\u202efdp.exe":            "invoicefdp.exe",
		"a\u200b\u2066b\u2069\ufeff.txt":  "ab.txt",
		"\u3164\u115f\u2800":              "file",
		`<script>"x"|?*.html`:             "_script__x____.html",
		"con":                             "_con",
		"COM1.txt":                        "_COM1.txt",
		"nul .txt":                        "_nul .txt",
		"COMA.txt":                        "COMA.txt",
		"bad\xff\xfeutf8.txt":             "badutf8.txt",
		"Übersicht – 日本.xlsx":             "Übersicht – 日本.xlsx",
		strings.Repeat("a", 300) + ".pdf": strings.Repeat("a", maxName-4) + ".pdf",
	} {
		if got := SafeName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	long := SafeName(strings.Repeat("日", 200) + ".pdf")
	if len(long) > maxName || !strings.HasSuffix(long, "日.pdf") {
		t.Errorf("a long name becomes %d bytes ending in %q", len(long), long[len(long)-10:])
	}
}

func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"", "a/b", "con.", strings.Repeat("é", 200) + ".tar", "..\\..", "\u202e", ".\u200b.", "a.\xff", " . .", strings.Repeat(". ", 200) + "x." + strings.Repeat("y", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := SafeName(s)
		if got == "" || len(got) > maxName+1 || !utf8.ValidString(got) || strings.ContainsAny(got, `/\<>:"|?*`) ||
			filepath.Base(got) != got || got[0] == '.' || got[0] == ' ' || strings.HasSuffix(got, ".") || strings.HasSuffix(got, " ") {
			t.Fatalf("%q becomes %q", s, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) || unicode.Is(hidden, r) {
				t.Fatalf("%q becomes %q with %U", s, got, r)
			}
		}
		if reserved(got) {
			t.Fatalf("%q becomes the device %q", s, got)
		}
		if again := SafeName(got); again != got {
			t.Fatalf("%q becomes %q and then %q", s, got, again)
		}
	})
}
