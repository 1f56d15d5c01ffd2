// Package archtest holds the floors of the house: its test fails the build when
// an import goes up or sideways, when a package has no comment, or when the
// library knows something that only a command may know.
//
// The floors are listed in ARCHITECTURE.md; the table in the test is the same
// list, and the test compares the two.
package archtest
