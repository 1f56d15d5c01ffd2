// Package site serves the small pages of the benchmark: each sets one task,
// decides everything from a seed, and judges by itself whether the task was
// done.
//
// A page lives in pages/NAME.html as a fragment; the server puts it into a
// frame with lib.css and lib.js and serves it as /t/NAME?seed=N&run=ID. One
// fragment may carry several tasks: without a file of its own, mail-reply is
// served from mail.html, which looks at its own address. Parts of a task that
// are documents of their own (a popup, a frame, a second page) are called
// NAME.PART.html.
//
// lib.js gives a page a generator seeded by task name and seed, task(text) to
// say what is to be done, and done(ok, detail) to judge, once: the first
// verdict counts. Both tell the server, so that whoever runs the benchmark
// learns them without asking the page: [Site.Instruction] and [Site.Outcome]
// wait for them. A run's ID is chosen by the runner; a page opened by hand has
// none and only shows its verdict.
//
// Some pages ask the server for more: pauses, suggestions, a file to save, an
// upload. Those answers depend on the request alone.
//
// [New] starts nothing; a Site is an [http.Handler]. It keeps one small record
// per run until [Site.Forget], and has nothing to close.
package site
