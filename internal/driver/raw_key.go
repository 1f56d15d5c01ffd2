package driver

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// composing is the key code of keys that an input method takes, or that a
// screen's keyboard does not tell.
const composing = 229

// rawKey is one event of a person's key, of whatever layout: what it types is
// what the event says, and what it is called by pages comes from its key and code
// (INP-3).
func rawKey(a reins.Key) rawInput {
	k := key{key: a.Key, code: a.Code, location: int64(a.Location), virtual: virtualKey(a)}
	mods := bitsOf(a.Modifiers)
	if a.Kind == "up" {
		return rawInput{requests: []cdp.Request{rawKeyEvent(a, k, input.DispatchKeyEventTypeKeyUp, mods&^modifierBits[a.Key])}}
	}
	mods |= modifierBits[a.Key]
	text, typing := typed(a, mods)
	if text != "" && mods&(bitControl|bitAlt) == bitControl|bitAlt {
		mods &^= bitControl | bitAlt // AltGr, as some systems tell it
	}
	in := rawInput{gesture: true}
	switch {
	case text == "":
		in.requests = []cdp.Request{rawKeyEvent(a, k, input.DispatchKeyEventTypeRawKeyDown, mods)}
	case len(utf16.Encode([]rune(text))) > keyText:
		in.requests = []cdp.Request{
			rawKeyEvent(a, k, input.DispatchKeyEventTypeRawKeyDown, mods),
			cdp.Prepare(input.InsertText, input.InsertTextParams{Text: text}),
		}
	case mods != typing: // the character alone comes without what only chose it
		k.text = text
		in.requests = []cdp.Request{
			rawKeyEvent(a, key{key: k.key, code: k.code, location: k.location, virtual: k.virtual}, input.DispatchKeyEventTypeRawKeyDown, mods),
			rawKeyEvent(a, k, input.DispatchKeyEventTypeChar, typing),
		}
	default:
		k.text = text
		in.requests = []cdp.Request{rawKeyEvent(a, k, input.DispatchKeyEventTypeKeyDown, mods)}
	}
	return in
}

// typed is what a key types, and the modifiers that its character comes with.
func typed(a reins.Key, mods int64) (text string, with int64) {
	with = mods &^ (bitControl | bitAlt | bitMeta)
	text = strings.ReplaceAll(a.Text, "\n", "\r")
	switch name, known := named[a.Key]; {
	case a.Key == "Enter" && mods&(bitAlt|bitMeta|bitControl) == 0:
		return "\r", with
	case known && name.text == "": // Tab and the like: their text is not typed
		return "", mods
	case mods&bitMeta != 0, mods&(bitControl|bitAlt) == bitControl:
		return "", mods // a shortcut
	}
	return text, with
}

func rawKeyEvent(a reins.Key, k key, kind input.DispatchKeyEventType, mods int64) cdp.Request {
	p := input.DispatchKeyEventParams{
		Type: kind, Modifiers: mods, Key: k.key, Code: k.code, WindowsVirtualKeyCode: k.virtual,
		Text: k.text, UnmodifiedText: k.text,
	}
	if a.Repeat {
		p.AutoRepeat = new(true)
	}
	switch k.location {
	case 1, 2:
		p.Location = k.location
	case 3:
		p.IsKeypad = new(true)
	}
	if kind == input.DispatchKeyEventTypeRawKeyDown {
		p.Commands = shortcut(a, mods)
	}
	return cdp.Prepare(input.DispatchKeyEvent, p)
}

// shortcut is what a chord does to text, which a browser without a window does
// not know by itself. Layouts without Latin letters have their shortcuts where
// the letters of others are. Meta is what some systems have for Control.
func shortcut(a reins.Key, mods int64) []string {
	if held := mods &^ bitShift; held != bitControl && held != bitMeta {
		return nil
	}
	letter := strings.ToLower(a.Key)
	if !isLatin(letter) {
		letter = strings.ToLower(strings.TrimPrefix(a.Code, "Key"))
	}
	command := commands[letter]
	if command == "undo" && mods&bitShift != 0 {
		command = "redo"
	}
	if command == "" {
		return nil
	}
	return []string{command}
}

func isLatin(s string) bool { return len(s) == 1 && s[0] >= 'a' && s[0] <= 'z' }

// virtualKey is the Windows virtual key code by which pages know a key: of its
// character where that is a Latin letter, so that layouts may move it about, else
// of its place.
func virtualKey(a reins.Key) int64 {
	if k, known := named[a.Key]; known && a.Key != "Space" && a.Key != "Clear" {
		return k.virtual
	}
	switch letter := strings.ToLower(a.Key); {
	case a.Key == "Process" || a.Key == "Unidentified":
		return composing
	case isLatin(letter):
		return int64(letter[0] - 'a' + 'A')
	}
	if v := virtualOf[a.Code]; v != 0 {
		return v
	}
	if utf8.RuneCountInString(a.Key) == 1 {
		return character(a.Key).virtual
	}
	return 0
}

// virtualOf are the virtual key codes of the places on a keyboard.
var virtualOf = placesOfKeys()

func placesOfKeys() map[string]int64 {
	m := map[string]int64{
		"Space": 32, "NumpadMultiply": 106, "NumpadAdd": 107, "NumpadComma": 194, "NumpadSubtract": 109,
		"NumpadDecimal": 110, "NumpadDivide": 111, "NumpadEqual": 187, "NumpadEnter": 13,
		"IntlBackslash": 226, "IntlRo": 193, "IntlYen": 220, "Lang1": 21, "Lang2": 25, "KanaMode": 21, "Convert": 28, "NonConvert": 29,
	}
	for _, k := range named {
		if m[k.code] == 0 {
			m[k.code] = k.virtual
		}
	}
	m["NumLock"] = 144
	for _, p := range punctuation {
		m[p.code] = int64(p.virtual)
	}
	for i := range 10 {
		m["Digit"+string(rune('0'+i))], m["Numpad"+string(rune('0'+i))] = int64('0'+i), int64(96+i)
	}
	for c := 'A'; c <= 'Z'; c++ {
		m["Key"+string(c)] = int64(c)
	}
	return m
}
