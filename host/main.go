package host

import (
	"github.com/reins-browser/reins/internal/child"
	"github.com/reins-browser/reins/internal/driver"

	"github.com/reins-browser/reins/cell/process"
)

// Main makes this process the child it was started as, if it was, and then
// does not return. Call it before anything else in main and in TestMain: cells
// and drivers are re-executions of the program itself, and [Host.Start] refuses
// to begin in a program that cannot have them.
func Main() {
	child.Main(map[string]child.Entry{driver.Role: driver.Main, process.InitRole: process.InitMain})
}
