//go:build !linux || !(amd64 || arm64)

package child

// Elsewhere there is nothing to seal a browser with, so the build fails, and this
// is the sentence that says why (OVW-5).
var _ int = "Reins runs on Linux, on amd64 and arm64, and nowhere else"
