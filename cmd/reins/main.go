// Command reins gives AI agents sealed Chromium browsers.
//
//	reins mcp         tools for one MCP client, over stdin and stdout
//	reins serve       browsers for agents, programs and people
//	reins view        a link that lets a person in
//	reins resource    browsers of a running server: make, list, start, end
//	reins act         one thing with one of them, as an agent would
//	reins artifact    their files
//	reins audit       what was done
//	reins capability  rights to act on one browser
//	reins key         API keys
//	reins demo        a walk through a small shop, by a real MCP client
//	reins doctor      what a browser needs on this machine, and what is missing
//	reins version     which version this is
//
// Each subcommand is a file of this package: flags, and the wiring of the
// packages that do the work. Started as root, those that start browsers become an
// ordinary user before they open anything. Exit codes are by kind of error; see
// `reins help exit-codes`.
package main

import (
	"os"
	"syscall"

	"github.com/reins-browser/reins/host"
)

func main() {
	host.Main()          // cells and drivers are re-executions of this program
	syscall.Umask(0o077) // what it makes is its user's alone, and always its user's
	os.Exit(run(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}
