// Package tooltable is the table of tools that models are given: names, titles,
// descriptions, schemas, how arguments become an action of package reins, and
// how its result becomes a text, a picture and a structured form. The doors that
// offer tools (MCP, Go agent libraries, the shell) share it, so that a tool is the
// same thing everywhere; which protocol carries it is theirs.
//
// [Choose] makes a [List]; [List.Decode] makes a [Call] of arguments; [Call.Do]
// makes it under a lease and returns an [Answer]; what failed becomes a [Failure].
//
// Arguments are the fields of the actions under their JSON names and become one
// by [reins.DecodeAction], so that the rules about them live in one place. Only
// spelling is forgiven: "true" for true, "3" for 3, a check box's true without
// quotes.
//
// An answer's text and its structured form each say everything: clients hand one
// or the other to their model. Whatever a page wrote is quoted, or in a fence that
// it cannot close, and named as page content (OVW-7).
//
// Nothing here keeps state or starts anything.
package tooltable
