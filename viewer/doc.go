// Package viewer is the page through which people see and drive browsers: the
// list of them, one browser with its live picture, and the page of a join link
// (VIEW-1..5). It holds assets only, embedded; internal/server serves them and
// what they ask for.
//
// The pages are plain ES modules with types in JSDoc comments, checked by
// tsc --checkJs; there is no bundler and no framework. They load nothing from
// elsewhere and have no script or style inside of the markup, so that they work
// under
//
//	default-src 'none'; script-src 'self'; style-src 'self';
//	img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'
//
// test/viewer drives them in a real Chromium, by a server that plays a script and
// by a real one. docs/viewer.md says what they do and how to embed them.
package viewer
