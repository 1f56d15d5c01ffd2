package driver

import _ "embed"

// walkerSource runs once in the isolated world of every document, before the
// page's first script, and defines globalThis.reins there. Running it again
// changes nothing.
//
//go:embed js/walker.js
var walkerSource string

// worldName is the isolated world that walkerSource lives in.
const worldName = "reins"
