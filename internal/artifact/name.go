package artifact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the most bytes a display name has.
const maxName = 160

// SafeName makes a name that a page or a person gave fit for showing and for
// offering as a file name: no path, no control or invisible characters, nothing
// that reorders text, no leading dots, nothing that a common file system
// refuses, at most 160 bytes with the extension kept. Empty becomes "file". It
// is idempotent. The result never becomes part of a path here (ART-2).
func SafeName(s string) string {
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) || unicode.Is(hidden, r):
			// Left out: control, format and bidirectional characters, bad UTF-8.
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case strings.ContainsRune(`<>:"|?*`, r):
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
		if b.Len() > 8*maxName { // enough to find an extension in
			break
		}
	}
	s = trimName(b.String())
	if reserved(s) {
		s = "_" + s
	}
	if len(s) > maxName {
		s = shorten(s)
	}
	if s == "" {
		return "file"
	}
	return s
}

// hidden are characters that print as nothing but are no format characters to
// unicode.IsPrint, such as Hangul fillers and variation selectors.
var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{{0x034f, 0x034f, 1}, {0x115f, 0x1160, 1}, {0x17b4, 0x17b5, 1}, {0x180b, 0x180f, 1},
		{0x2800, 0x2800, 1}, {0x3164, 0x3164, 1}, {0xfe00, 0xfe0f, 1}, {0xffa0, 0xffa0, 1}},
	R32: []unicode.Range32{{0xe0000, 0xe0fff, 1}},
}

func trimName(s string) string {
	return strings.TrimRight(strings.TrimLeft(s, ". "), ". ")
}

// reserved reports whether Windows takes s for a device whatever its extension.
func reserved(s string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(s), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && base[3] >= '0' && base[3] <= '9'
}

// shorten cuts the middle out of a long name, between whole characters.
func shorten(s string) string {
	ext := ""
	if i := strings.LastIndexByte(s, '.'); i > 0 && len(s)-i <= 16 {
		s, ext = s[:i], s[i:]
	}
	keep := min(len(s), maxName-len(ext))
	for keep > 0 && keep < len(s) && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return trimName(s[:keep]) + ext
}
