// Package disk tells how much a tree of files takes, where somebody else may be
// changing it: a browser's profile, of which both the browser's owner and the
// keeper of persistent profiles have to know (CELL-7, WSP-2).
//
// [Usage] opens nothing above the folder it is given and follows no link out of
// it, whatever is done to the tree meanwhile. It is bounded in entries and ends
// with its context; it holds nothing afterwards.
package disk
