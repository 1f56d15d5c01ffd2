// Package driver puts verbs on pages. Its two halves are two processes: the
// parent's end of a driver ([Start], [Process]), and the driver itself ([Main]),
// a sealed child that holds the DevTools pipes of one browser.
//
// # The parent's half
//
// [Start] spawns a driver, lets it take the browser over from whoever drove it
// before, and returns when it is connected. [Process.Do] sends it one command
// and waits for the reply; cancelling the context asks the driver to stop the
// side effect, and Do returns only when the browser is quiet again or the driver
// is gone (QUI-1). What was lost with a driver is told apart: a command that was
// never sent is transport_failure, one whose effect may have begun is
// completion_unknown (DRV-2). The parent speaks no DevTools protocol.
//
// A driver's death is not the browser's: the parent keeps both pipe ends, and
// [Process.Handover] names what the next driver has to take over.
//
// # The driver's half
//
// One browser value models the tabs, their frames and the documents in them,
// fed by DevTools events in the order in which the browser sent them. Handlers
// of events run on one goroutine, change the model under browser.mu and never
// wait; actions run on goroutines of their own, read the model under the same
// lock and wait for conditions on it (browser.await). So when a DevTools call
// returns, the model already knows everything the browser said before.
//
// An element is named by a ref: the number of its document, which only grows
// on a connection, and a number that the document's walker gave it (SNAP-4). A
// document is replaced as a whole, with the execution context its walker lives
// in; nothing of it can be mistaken for something of the next.
//
// # Those who watch
//
// Orders about the picture ([Process.StartCast], [Process.AckFrame],
// [Process.Capture], [Process.SetViewport]) run beside the actions and wait for no
// page. Frames have a kind of their own on the link and a sender of their own in
// the driver, which holds no more of them than Chromium has unacknowledged: they
// never hold up an outcome or a notice. A page is drawn in as many pixels as the
// device of the viewer has, which only its surface can have: it is scaled up to
// them, and every place on the way to the browser with it (tab.mouse). A frame
// bears the revision of the viewport that its page was laid out for, as the page
// itself tells once it was painted so; what cannot be told is not shown.
//
// Raw input (tab.rawPointer, rawTouch, rawKey) is one write to the browser, in
// order; it waits a moment for the page to have handled it and settles nothing.
// An agent's action that is watched tells where it acts before it does (acting).
//
// # Testing
//
// Tests drive a real Chromium over pipes; the in-package ones use the browser
// model in their own process.
package driver
