package driver

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// key is one key of a keyboard as the UI Events standard names it (ACT-4).
type key struct {
	key      string // "a", "Enter"
	code     string // "KeyA"; empty for a character no key of the US layout makes
	virtual  int64  // Windows virtual key code
	text     string // what it types
	plain    string // what it would type without the modifiers held with it
	location int64
	shift    bool // the US layout needs Shift for it
}

// The bits of held modifiers in input events.
const (
	bitAlt int64 = 1 << iota
	bitControl
	bitMeta
	bitShift
)

var modifierBits = map[string]int64{"Alt": bitAlt, "Control": bitControl, "Meta": bitMeta, "Shift": bitShift}

// named are keys that have a name.
var named = namedKeys()

func namedKeys() map[string]key {
	m := map[string]key{
		"Enter":     {code: "Enter", virtual: 13, text: "\r"},
		"Tab":       {code: "Tab", virtual: 9},
		"Space":     {key: " ", code: "Space", virtual: 32, text: " "},
		"Backspace": {code: "Backspace", virtual: 8}, "Delete": {code: "Delete", virtual: 46}, "Insert": {code: "Insert", virtual: 45},
		"Escape": {code: "Escape", virtual: 27}, "Home": {code: "Home", virtual: 36}, "End": {code: "End", virtual: 35},
		"PageUp": {code: "PageUp", virtual: 33}, "PageDown": {code: "PageDown", virtual: 34},
		"ArrowLeft": {code: "ArrowLeft", virtual: 37}, "ArrowUp": {code: "ArrowUp", virtual: 38},
		"ArrowRight": {code: "ArrowRight", virtual: 39}, "ArrowDown": {code: "ArrowDown", virtual: 40},
		"CapsLock": {code: "CapsLock", virtual: 20}, "NumLock": {code: "NumLock", virtual: 144}, "ScrollLock": {code: "ScrollLock", virtual: 145},
		"Pause": {code: "Pause", virtual: 19}, "PrintScreen": {code: "PrintScreen", virtual: 44}, "ContextMenu": {code: "ContextMenu", virtual: 93},
		"Shift": {code: "ShiftLeft", virtual: 16, location: 1}, "Control": {code: "ControlLeft", virtual: 17, location: 1},
		"Alt": {code: "AltLeft", virtual: 18, location: 1}, "Meta": {code: "MetaLeft", virtual: 91, location: 1},
		"AltGraph": {code: "AltRight", virtual: 18, location: 2},
		"Help":     {code: "Help", virtual: 47}, "Clear": {code: "NumLock", virtual: 12}, "Select": {code: "Select", virtual: 41},
		"BrowserBack": {code: "BrowserBack", virtual: 166}, "BrowserForward": {code: "BrowserForward", virtual: 167},
		"BrowserRefresh": {code: "BrowserRefresh", virtual: 168}, "BrowserHome": {code: "BrowserHome", virtual: 172},
		"AudioVolumeMute": {code: "AudioVolumeMute", virtual: 173}, "AudioVolumeDown": {code: "AudioVolumeDown", virtual: 174},
		"AudioVolumeUp": {code: "AudioVolumeUp", virtual: 175}, "MediaTrackNext": {code: "MediaTrackNext", virtual: 176},
		"MediaTrackPrevious": {code: "MediaTrackPrevious", virtual: 177}, "MediaStop": {code: "MediaStop", virtual: 178},
		"MediaPlayPause": {code: "MediaPlayPause", virtual: 179},
	}
	for i := range int64(24) {
		name := "F" + strings.TrimLeft(string([]byte{byte('0' + (i+1)/10), byte('0' + (i+1)%10)}), "0")
		m[name] = key{code: name, virtual: 112 + i}
	}
	for name, k := range m {
		if k.key == "" {
			k.key = name
			m[name] = k
		}
	}
	return m
}

// aliases are names people use for keys besides the standard ones.
var aliases = map[string]string{
	"Esc": "Escape", "Return": "Enter", "Del": "Delete", "Ins": "Insert", "Ctrl": "Control", "Cmd": "Meta", "Command": "Meta",
	"Super": "Meta", "Win": "Meta", "Option": "Alt", "Opt": "Alt", "Left": "ArrowLeft", "Right": "ArrowRight", "Up": "ArrowUp", "Down": "ArrowDown",
	"PgUp": "PageUp", "PgDn": "PageDown", "Spacebar": "Space", "ControlOrMeta": "Control", "Plus": "+",
}

// punctuation is what the US layout makes without and with Shift.
var punctuation = []struct {
	plain, shifted, code string
	virtual              int64
}{
	{"`", "~", "Backquote", 192}, {"-", "_", "Minus", 189}, {"=", "+", "Equal", 187}, {"[", "{", "BracketLeft", 219},
	{"]", "}", "BracketRight", 221}, {"\\", "|", "Backslash", 220}, {";", ":", "Semicolon", 186}, {"'", "\"", "Quote", 222},
	{",", "<", "Comma", 188}, {".", ">", "Period", 190}, {"/", "?", "Slash", 191}, {"1", "!", "Digit1", 49}, {"2", "@", "Digit2", 50},
	{"3", "#", "Digit3", 51}, {"4", "$", "Digit4", 52}, {"5", "%", "Digit5", 53}, {"6", "^", "Digit6", 54}, {"7", "&", "Digit7", 55},
	{"8", "*", "Digit8", 56}, {"9", "(", "Digit9", 57}, {"0", ")", "Digit0", 48},
}

// character is the key for a character; one outside of the US layout has no
// code, as on a keyboard that a page knows nothing of.
func character(s string) key {
	r, size := utf8.DecodeRuneInString(s)
	if size == len(s) {
		switch {
		case r >= 'a' && r <= 'z':
			return key{key: s, code: "Key" + string(unicode.ToUpper(r)), virtual: int64(unicode.ToUpper(r)), text: s}
		case r >= 'A' && r <= 'Z':
			return key{key: s, code: "Key" + s, virtual: int64(r), text: s, shift: true}
		case r == ' ':
			return named["Space"]
		case r == '\n' || r == '\r':
			return named["Enter"]
		case r == '\t':
			return named["Tab"]
		}
	}
	for _, p := range punctuation {
		switch s {
		case p.plain:
			return key{key: s, code: p.code, virtual: p.virtual, text: s}
		case p.shifted:
			return key{key: s, code: p.code, virtual: p.virtual, text: s, shift: true}
		}
	}
	return key{key: s, text: s}
}

// chord is a key and the modifiers held with it, in the order given.
type chord struct {
	key
	held []string
}

// parseChord reads "Enter", "Control+A", "Shift++", "é". Names are not
// sensitive to case; an unknown one is invalid_input with the nearest known.
func parseChord(s string) (chord, error) {
	var c chord
	rest := s
	for {
		i := strings.IndexByte(rest, '+')
		if i <= 0 || i == len(rest)-1 {
			break
		}
		name, ok := keyName(rest[:i])
		if !ok || modifierBits[name] == 0 {
			if single(rest) {
				break
			}
			return c, unknownKey(s, rest[:i])
		}
		c.held = append(c.held, name)
		rest = rest[i+1:]
	}
	if !single(rest) {
		name, ok := keyName(rest)
		if !ok {
			return c, unknownKey(s, rest)
		}
		if c.key, ok = named[name]; ok {
			return c, nil
		}
		rest = name
	}
	c.key = character(rest)
	if len(c.held) > 0 {
		c.key = underModifiers(c)
	}
	return c, nil
}

// underModifiers is a character's key while modifiers are held: letters are
// told apart by Shift alone, and nothing is typed under Control, Alt or Meta.
func underModifiers(c chord) key {
	k := c.key
	shifted, typing := false, true
	for _, m := range c.held {
		if m == "Shift" {
			shifted = true
		} else {
			typing = false
		}
	}
	if utf8.RuneCountInString(k.key) == 1 {
		r, _ := utf8.DecodeRuneInString(k.key)
		switch {
		case shifted:
			k.key = shiftedCharacter(k.key)
		case !typing && r >= 'A' && r <= 'Z':
			k.key, k.shift = strings.ToLower(k.key), false
		}
	}
	k.plain, k.text = k.key, ""
	if typing {
		k.text = k.key
	}
	return k
}

func shiftedCharacter(s string) string {
	for _, p := range punctuation {
		if p.plain == s {
			return p.shifted
		}
	}
	return strings.ToUpper(s)
}

// single reports whether s is one character as people count them.
func single(s string) bool {
	n := 0
	joined := false
	for _, r := range s {
		if n == 0 {
			n = 1
			continue
		}
		if joined || r == '\u200d' || r >= 0xfe00 && r <= 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0xe0020 && r <= 0xe007f || unicode.Is(unicode.M, r) {
			joined = r == '\u200d'
			continue
		}
		n++
	}
	return n == 1
}

// keyName finds the standard spelling of a key's name, or of a code such as
// "KeyA" or "Digit1".
func keyName(s string) (string, bool) {
	for alias, name := range aliases {
		if strings.EqualFold(alias, s) {
			return name, true
		}
	}
	for name := range named {
		if strings.EqualFold(name, s) {
			return name, true
		}
	}
	if len(s) == 4 && strings.EqualFold(s[:3], "Key") && unicode.IsLetter(rune(s[3])) {
		return strings.ToLower(s[3:]), true
	}
	if len(s) == 6 && strings.EqualFold(s[:5], "Digit") && s[5] >= '0' && s[5] <= '9' {
		return s[5:], true
	}
	for _, p := range punctuation {
		if strings.EqualFold(p.code, s) {
			return p.plain, true
		}
	}
	return "", false
}

func unknownKey(whole, part string) error {
	best, distance := "", 1<<30
	for name := range named {
		if d := edits(strings.ToLower(part), strings.ToLower(name)); d < distance || d == distance && name < best {
			best, distance = name, d
		}
	}
	for alias, name := range aliases {
		if d := edits(strings.ToLower(part), strings.ToLower(alias)); d < distance {
			best, distance = name, d
		}
	}
	return reins.Errorf(reins.CodeInvalidInput, "key %.64q is unknown; the nearest known key is %q (write chords as \"Control+A\", characters as themselves)", whole, best).
		With("nearest", best)
}

// edits is the number of single changes between two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// commands are what editing keys do; a browser without a window does not know
// by itself.
var commands = map[string]string{"a": "selectAll", "c": "copy", "x": "cut", "v": "paste", "z": "undo", "y": "redo"}

// chordEvents are the presses and releases of a chord, to leave in one write.
func chordEvents(c chord) []cdp.Request {
	var mods int64
	var out []cdp.Request
	for _, m := range c.held {
		mods |= modifierBits[m]
		out = append(out, keyEvent(input.DispatchKeyEventTypeRawKeyDown, named[m], mods, ""))
	}
	under := mods
	if c.shift {
		under |= bitShift
	}
	out = append(out, strokeWith(c.key, under, mods)...)
	for i := len(c.held) - 1; i >= 0; i-- {
		mods &^= modifierBits[c.held[i]]
		out = append(out, keyEvent(input.DispatchKeyEventTypeKeyUp, named[c.held[i]], mods, ""))
	}
	return out
}

// stroke presses and releases one key.
func stroke(k key, mods int64) []cdp.Request { return strokeWith(k, mods, mods) }

// strokeWith is stroke with other modifiers at the release: a Shift that only
// the character needed is let go before, or a page would think it held.
func strokeWith(k key, mods, after int64) []cdp.Request {
	if bit := modifierBits[k.key]; bit != 0 {
		mods |= bit
	}
	text := k.text
	if mods&(bitControl|bitAlt|bitMeta) != 0 {
		text = ""
	}
	down := input.DispatchKeyEventTypeRawKeyDown
	if text != "" || mods&(bitControl|bitAlt|bitMeta) == bitAlt && k.plain != "" {
		down = input.DispatchKeyEventTypeKeyDown // one that types, or may be an access key
	}
	return []cdp.Request{keyEvent(down, k, mods, text), keyEvent(input.DispatchKeyEventTypeKeyUp, k, after&^modifierBits[k.key], "")}
}

// keyEvent is one event of a key. Access keys are found by what a key would type
// without modifiers.
func keyEvent(kind input.DispatchKeyEventType, k key, mods int64, text string) cdp.Request {
	plain := text
	if kind == input.DispatchKeyEventTypeKeyDown && text == "" {
		plain = k.plain
	}
	p := input.DispatchKeyEventParams{
		Type: kind, Modifiers: mods, Key: k.key, Code: k.code, WindowsVirtualKeyCode: k.virtual, Text: text, UnmodifiedText: plain,
		Location: k.location,
	}
	if command := commands[strings.ToLower(k.key)]; kind == input.DispatchKeyEventTypeRawKeyDown && command != "" && mods&^bitShift == bitControl {
		if mods&bitShift != 0 && command == "undo" {
			command = "redo"
		}
		p.Commands = []string{command}
	}
	return cdp.Prepare(input.DispatchKeyEvent, p)
}
