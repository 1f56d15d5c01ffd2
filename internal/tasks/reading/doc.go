// Package reading turns the text that a browser tool answers with into a tree
// that can be searched by role and name, the way a reader of the text would.
//
// [Parse] takes the whole answer as a model receives it. The outline in it is
// the longest fenced block; what stands around it stays available as
// [Page.Around]. Each line of an outline that begins with a dash is one node:
//
//   - role "name" [state] [state=value] [ref=f1e2]: value
//   - text: words of the page
//   - /url: a property of the node above
//
// When the answer says that it only shows what changed, each line has a mark
// before it; what is gone is kept apart ([Page.Gone]).
//
// Indentation by two spaces nests. Lines of any other form (how much was left
// out, where to go on) are kept as [Page.Notes] and never fail the reading:
// a reader of a page has to live with whatever the page says.
//
// Nothing here knows about style sheets, element IDs or scripts, and nothing
// here talks to a browser. The package is pure; tests give it text.
package reading
