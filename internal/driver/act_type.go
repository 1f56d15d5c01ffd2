package driver

import (
	"iter"
	"unicode/utf16"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins/internal/cdp"
)

// keyText is how much text one key event can carry, in UTF-16 units.
const keyText = 3

// typeCluster types one character: by a key where one event can carry it, else
// as text that an input method hands over. So comes a tab: its key would lead
// to another field, and the rest of the text with it.
func typeCluster(s string) []cdp.Request {
	if s == "\t" || len(utf16.Encode([]rune(s))) > keyText {
		return []cdp.Request{cdp.Prepare(input.InsertText, input.InsertTextParams{Text: s})}
	}
	k := character(s)
	var mods int64
	if k.shift {
		mods = bitShift
	}
	return strokeWith(k, mods, 0)
}

// clusters splits text into characters as people count them, as far as keys go.
func clusters(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i := range s {
			if i == start || single(s[start:i]) && single(s[start:i+runeLen(s[i:])]) {
				continue
			}
			if s[start:i] == "\r" && s[i] == '\n' { // one line end
				start = i
				continue
			}
			if !yield(s[start:i]) {
				return
			}
			start = i
		}
		if start < len(s) {
			yield(s[start:])
		}
	}
}

func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
