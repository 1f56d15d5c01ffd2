// Package redact takes secrets out of text (ACT-11): pure, no state.
//
// A [Set] is the secrets of one resource. [Set.Text] puts a mark with the
// secret's name in the place of its value, in whatever dress the value comes:
//
//   - as it is, in any case, with other white space, with invisible characters
//     or a backslash in between;
//   - in an address: percent-encoded in whole or in part, up to three times,
//     with + for a space;
//   - in JSON, in a Go or script string: \u0041, \x41, \n;
//   - in the name of a file, where _ stands for what names cannot have;
//   - in HTML: &amp;, &#65;, &#x41;
//   - as base64, when it stands for itself;
//   - a value of letters and digits, from 8 on, in groups: "4000 1234 5678".
//
// A part of a value is not looked for: whoever may write to a page could then
// guess a secret piece by piece, by seeing what is taken out. For the same
// reason [Set.Bounded] shortens every text that was cut at a bound alike,
// whether or not a secret may have been cut with it.
package redact

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Secret is a value and the name it is known by. The name is not secret.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Shortest and Longest bound a value: one that is shorter, in characters, would
// take common text along; Longest is in bytes.
const (
	Shortest = 4
	Longest  = 4096
)

// Set is secrets to be taken out of text. The nil Set takes out nothing. It
// must not change while it is used.
type Set []Secret

// Mark is what stands in the place of a value.
func Mark(name string) string { return "[secret:" + name + "]" }

// Text returns s without the secrets.
func (s Set) Text(text string) string {
	if len(s) == 0 || len(text) < Shortest {
		return text
	}
	needles := make([]needle, 0, 2*len(s))
	for _, each := range s {
		needles = append(needles, newNeedle(each.Name, each.Value))
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if coded := e.EncodeToString([]byte(each.Value)); len(coded) >= 8 {
				needles = append(needles, newNeedle(each.Name, coded))
			}
		}
	}
	return replace(text, needles)
}

// Bounded is Text for a page's string that may have been cut at a bound, which
// an ellipsis at its end tells: a secret may have been cut with it.
func (s Set) Bounded(text string) string {
	if len(s) == 0 {
		return text
	}
	text = s.Text(text)
	const ellipsis = "…"
	body, cut := strings.CutSuffix(text, ellipsis)
	if !cut || utf8.RuneCountInString(body) < 38 { // no bound is lower
		return text
	}
	longest := 0
	for _, each := range s {
		longest = max(longest, utf8.RuneCountInString(each.Value))
	}
	runes := []rune(body)
	return string(runes[:max(0, len(runes)-longest+1)]) + ellipsis
}

// needle is a value made ready to be looked for.
type needle struct {
	name    string
	runes   []rune // folded; white space of any kind and length is one ' '
	grouped bool   // separators may stand in between
}

func newNeedle(name, value string) needle {
	n := needle{name: name, grouped: true}
	for _, r := range value {
		r = fold(r)
		if r == ' ' && len(n.runes) > 0 && n.runes[len(n.runes)-1] == ' ' {
			continue
		}
		n.runes = append(n.runes, r)
		n.grouped = n.grouped && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	n.grouped = n.grouped && len(n.runes) >= 8
	return n
}

// fold makes runes equal that a page may show one for the other.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		switch {
		case r <= ' ' || r == 0x7f:
			return ' '
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}
	if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' || unicode.IsControl(r) {
		return ' '
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func replace(text string, needles []needle) string {
	var b strings.Builder
	copied := 0
	var begins [utf8.RuneSelf]bool // bytes that a value may begin with
	for i := range needles {
		if r := needles[i].runes[0]; r < utf8.RuneSelf {
			begins[r] = true
			begins['_'] = begins['_'] || noFile(r)
		}
	}
	for at := 0; at < len(text); {
		if c := text[at]; plain(c) && !begins[fold(rune(c))] {
			at++
			continue
		}
		end, name := 0, ""
		here := readingsAt(text, at)
		for i := range needles {
			if !here.has(needles[i].runes[0]) {
				continue
			}
			steps := 64 + 16*len(needles[i].runes)
			if e := needles[i].match(text, at, 0, &steps); e > end {
				end, name = e, needles[i].name
			}
		}
		if end > 0 {
			b.WriteString(text[copied:at])
			b.WriteString(Mark(name))
			copied, at = end, end
			continue
		}
		at += here[0].size
	}
	if copied == 0 {
		return text
	}
	b.WriteString(text[copied:])
	return b.String()
}

// match tells where the needle's runes from k on end when they stand at text
// at; 0 when they do not. Steps bounds the work on texts with many readings.
func (n *needle) match(text string, at, k int, steps *int) int {
	for k < len(n.runes) {
		if *steps--; *steps < 0 || at >= len(text) {
			return 0
		}
		want := n.runes[k]
		var found [len(readings{})]int
		sizes := found[:0]
		for _, r := range readingsAt(text, at) {
			if r.size > 0 && stands(r.r, want) {
				sizes = append(sizes, r.size)
			}
		}
		if want == ' ' && len(sizes) > 0 {
			return n.afterSpace(text, at, k, steps)
		}
		if len(sizes) == 0 {
			if k == 0 {
				return 0
			}
			size := n.between(text, at)
			if size == 0 {
				return 0
			}
			at += size
			continue
		}
		for _, size := range sizes[1:] { // the others, should the first lead nowhere
			if end := n.match(text, at+size, k+1, steps); end > 0 {
				return end
			}
		}
		at, k = at+sizes[0], k+1
	}
	return at
}

// between is the size of what may stand between two characters of a value.
func (n *needle) between(text string, at int) int {
	r, size := utf8.DecodeRuneInString(text[at:])
	switch r {
	case '\u200b', '\u200c', '\u200d', '\u2060', '\u00ad', '\ufeff', '\\':
		return size
	case ' ', '-', '.', '\u00a0', '\u2009', '\u202f':
		if n.grouped {
			return size
		}
	}
	return 0
}

// afterSpace is match where the needle has white space at k: any run of it
// will do, in any dress. The longest is tried first; a "+" may belong to what
// follows.
func (n *needle) afterSpace(text string, at, k int, steps *int) int {
	var ends []int
	for at < len(text) {
		size := 0
		for _, r := range readingsAt(text, at) {
			if r.size > 0 && fold(r.r) == ' ' {
				size = r.size
			}
		}
		if size == 0 {
			break
		}
		at += size
		ends = append(ends, at)
	}
	for _, end := range slices.Backward(ends) {
		if e := n.match(text, end, k+1, steps); e > 0 {
			return e
		}
	}
	return 0
}
