package driver

import (
	"context"
	"errors"

	"github.com/reins-browser/reins/internal/child"
)

// Role names the driver's entry among a program's child processes.
const Role = "driver"

// Main is the driver's entry; list it under [Role] for child.Main.
func Main(ctx context.Context, self *child.Self) error { return errors.New("not built") }
