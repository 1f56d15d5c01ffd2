package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reading is a rune that the bytes of a text stand for, and how many they are.
type reading struct {
	r    rune
	size int
}

// readings are the ways to read what stands at a place; those of size 0 are
// none.
type readings [6]reading

// readingsAt reads what stands at a place: as it is, and as an escape of one
// of the kinds that texts of a browser come in.
func readingsAt(text string, at int) readings {
	var out readings
	if c := text[at]; plain(c) {
		out[0] = reading{rune(c), 1}
		return out
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	out[0] = reading{r, size}
	rest := text[at:]
	switch r {
	case '%':
		n := 1
		for times := range mostTimes {
			out[n] = percent(rest, times)
			if n++; out[n-1].r == '+' {
				out[n] = reading{' ', out[n-1].size}
				n++
			}
		}
	case '+':
		out[1] = reading{' ', 1}
	case '\\':
		out[1] = backslash(rest)
	case '&':
		out[1] = entity(rest)
	}
	return out
}

// plain tells bytes that stand for themselves and nothing else.
func plain(c byte) bool {
	return c < utf8.RuneSelf && c != '%' && c != '+' && c != '\\' && c != '&'
}

// stands reports whether a rune of a text may stand for one of a value, which
// is folded. In names of files a line stands for what they cannot have.
func stands(r, want rune) bool {
	return r == want || fold(r) == want || r == '_' && noFile(want)
}

func noFile(r rune) bool { return strings.ContainsRune(`<>:"/\|?*`, r) }

// has reports whether one of the readings is r, folded.
func (all *readings) has(r rune) bool {
	for _, each := range all {
		if each.size == 0 {
			continue
		}
		if stands(each.r, r) {
			return true
		}
	}
	return false
}

// mostTimes is how often a text may have been percent-encoded, one address
// inside another.
const mostTimes = 3

// percent reads one rune of UTF-8 that is percent-encoded, and all of that
// again some times.
func percent(s string, again int) reading {
	var bytes [utf8.UTFMax]byte
	n, at := 0, 0
	for n < len(bytes) {
		b, size := percentByte(s[at:], again)
		if size == 0 {
			break
		}
		bytes[n] = b
		n, at = n+1, at+size
		if utf8.FullRune(bytes[:n]) {
			r, width := utf8.DecodeRune(bytes[:n])
			if width != n {
				return reading{}
			}
			return reading{r, at}
		}
	}
	return reading{}
}

// percentByte reads %41; %2541 when that was encoded again once, and so on.
func percentByte(s string, again int) (byte, int) {
	end := 3 + 2*again
	if len(s) < end || s[0] != '%' || !isHex(s[end-2]) || !isHex(s[end-1]) {
		return 0, 0
	}
	for at := 1; at < end-2; at += 2 {
		if s[at:at+2] != "25" {
			return 0, 0
		}
	}
	v, err := strconv.ParseUint(s[end-2:end], 16, 8)
	if err != nil {
		return 0, 0
	}
	return byte(v), end
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// backslash reads an escape of a JSON, Go or script string.
func backslash(s string) reading {
	if len(s) < 2 {
		return reading{}
	}
	switch s[1] {
	case 'n', 'r', 't', 'v', 'f':
		return reading{' ', 2}
	case 'x':
		return hex(s, 2, 2)
	case 'U':
		return hex(s, 2, 8)
	case 'u':
		first := hex(s, 2, 4)
		if first.size > 0 && utf16.IsSurrogate(first.r) && strings.HasPrefix(s[6:], `\u`) {
			second := hex(s[6:], 2, 4)
			return reading{utf16.DecodeRune(first.r, second.r), 6 + second.size}
		}
		return first
	}
	r, size := utf8.DecodeRuneInString(s[1:])
	return reading{r, 1 + size}
}

func hex(s string, at, digits int) reading {
	if len(s) < at+digits {
		return reading{}
	}
	v, err := strconv.ParseUint(s[at:at+digits], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return reading{}
	}
	return reading{rune(v), at + digits}
}

var entities = []struct {
	name string
	r    rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", ' '}}

// entity reads a character reference of HTML.
func entity(s string) reading {
	for _, e := range entities {
		if strings.HasPrefix(s, e.name) {
			return reading{e.r, len(e.name)}
		}
	}
	if len(s) < 4 || s[1] != '#' {
		return reading{}
	}
	end := strings.IndexByte(s[:min(len(s), 12)], ';')
	if end < 3 {
		return reading{}
	}
	digits, base := s[2:end], 10
	if digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil || v > utf8.MaxRune {
		return reading{}
	}
	return reading{rune(v), end + 1}
}
