package reins

import (
	"slices"
	"strings"
	"time"
)

// Bounds that several actions share.
const (
	MaxURL        = 16 << 10 // bytes
	MaxFill       = 1 << 20  // bytes
	MaxPageString = 2048     // characters of a page-made string in a result
	maxKey        = 64
	maxRef        = 64
	maxFind       = 1024
)

func checkTarget(tab TabID, ref Ref, needRef bool) error {
	if len(tab) > maxRef {
		return Errorf(CodeInvalidInput, "tab %.40q… is not a tab ID such as \"t1\"", string(tab))
	}
	if needRef && ref == "" {
		return Errorf(CodeInvalidInput, "ref is missing; take one from a snapshot, such as \"f1e2\"")
	}
	if len(ref) > maxRef {
		return Errorf(CodeInvalidInput, "ref %.40q… is not a ref from a snapshot", string(ref))
	}
	return nil
}

func checkChoice(field, v string, choices ...string) error {
	if v == "" || slices.Contains(choices, v) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%s %.40q is unknown; use one of %s", field, v, strings.Join(choices, ", "))
}

func checkRange(field string, v, lo, hi int64, unit string) error {
	if v != 0 && (v < lo || v > hi) {
		return Errorf(CodeInvalidInput, "%s %d is out of range; use %d to %d%s", field, v, lo, hi, unit)
	}
	return nil
}

func (w Waits) validate() error {
	for _, f := range []struct {
		name string
		d    *Duration
	}{{"actionable_ms", w.Actionable}, {"settle_ms", w.Settle}} {
		if f.d != nil && (*f.d < 0 || time.Duration(*f.d) > time.Minute) {
			return Errorf(CodeInvalidInput, "%s must be 0 to 60000", f.name)
		}
	}
	return nil
}

func checkURL(u string, required bool) error {
	if required && strings.TrimSpace(u) == "" {
		return Errorf(CodeInvalidInput, "url is missing; give an address, or \"back\", \"forward\" or \"reload\"")
	}
	if len(u) > MaxURL {
		return Errorf(CodeInvalidInput, "url has %d bytes; at most %d are taken", len(u), MaxURL)
	}
	return nil
}

func checkWait(wait string, timeout Duration) error {
	if err := checkChoice("wait", wait, "commit", "domcontentloaded", "load"); err != nil {
		return err
	}
	return checkRange("timeout_ms", time.Duration(timeout).Milliseconds(), 100, 300_000, " ms")
}

// Validate implements Action.
func (a Navigate) Validate() error {
	return firstError(checkTarget(a.Tab, "", false), checkURL(a.URL, true), checkWait(a.Wait, a.Timeout))
}

// Validate implements Action.
func (a Snapshot) Validate() error {
	if len(a.Find) > maxFind || len(a.Cursor) > maxFind {
		return Errorf(CodeInvalidInput, "find and cursor take at most %d bytes", maxFind)
	}
	if a.Depth < 0 {
		return Errorf(CodeInvalidInput, "depth must not be negative; 0 means all levels")
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), checkRange("max_bytes", int64(a.MaxBytes), 1000, 1_000_000, " bytes"))
}

// Validate implements Action.
func (a Screenshot) Validate() error {
	if a.Ref != "" && a.FullPage {
		return Errorf(CodeInvalidInput, "a screenshot is of the full page or of a ref, not both")
	}
	return firstError(checkTarget(a.Tab, a.Ref, false),
		checkChoice("format", a.Format, "png", "jpeg", "webp"),
		checkChoice("scale", a.Scale, "css", "device"),
		checkRange("quality", int64(a.Quality), 1, 100, ""))
}

// Validate implements Action.
func (a Click) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, true), checkModifiers(a.Modifiers),
		checkChoice("button", a.Button, "left", "middle", "right"),
		checkRange("count", int64(a.Count), 1, 3, ""), a.Waits.validate())
}

// Validate implements Action.
func (a Fill) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, true), a.Value.validate("value"), a.Waits.validate())
}

// Validate implements Action.
func (a Press) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, false), checkKey(a.Key), a.Waits.validate())
}

// Validate implements Action.
func (ListTabs) Validate() error { return nil }

// Validate implements Action.
func (a OpenTab) Validate() error {
	return firstError(checkURL(a.URL, false), checkWait(a.Wait, a.Timeout))
}

// Validate implements Action.
func (a SelectTab) Validate() error {
	if a.Tab == "" {
		return Errorf(CodeInvalidInput, "tab is missing; list the tabs to see their IDs")
	}
	return checkTarget(a.Tab, "", false)
}

// Validate implements Action.
func (a CloseTab) Validate() error { return checkTarget(a.Tab, "", false) }

// Validate implements Action.
func (a Type) Validate() error {
	if a.Secret != "" {
		if a.Text != "" {
			return Errorf(CodeInvalidInput, "type takes text or a secret, not both")
		}
		return firstError(checkTarget(a.Tab, a.Ref, false), SecretValue(a.Secret).validate("secret"), a.Waits.validate())
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), TextValue(a.Text).validate("text"), a.Waits.validate())
}

// Validate implements Action.
func (a PressKey) Validate() error {
	return firstError(checkTarget(a.Tab, "", false), checkKey(a.Key), a.Waits.validate())
}

// Validate implements Action.
func (ListArtifacts) Validate() error { return nil }

// Validate implements Action.
func (a ReadArtifact) Validate() error {
	if a.Offset < 0 || a.Length < 0 {
		return Errorf(CodeInvalidInput, "offset and length must not be negative")
	}
	return firstError(checkID("artifact", a.Artifact), checkRange("length", a.Length, 1, 1<<20, " bytes"))
}

// Validate implements Action.
func (a DeleteArtifact) Validate() error { return checkID("artifact", a.Artifact) }

func checkKey(k string) error {
	if k == "" {
		return Errorf(CodeInvalidInput, "key is missing; give one such as \"Enter\" or \"Control+A\"")
	}
	if len(k) > maxKey {
		return Errorf(CodeInvalidInput, "key %.40q… is too long for a key or chord", k)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
