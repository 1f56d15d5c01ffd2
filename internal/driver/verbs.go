package driver

import (
	"context"

	"github.com/reins-browser/reins"
)

// The verbs on pages: each file that brings one takes its line away here.

func (b *browser) snapshot(ctx context.Context, x *action, a reins.Snapshot) error {
	return errUnbuilt
}

func (b *browser) screenshot(ctx context.Context, x *action, a reins.Screenshot) error {
	return errUnbuilt
}

func (b *browser) click(ctx context.Context, x *action, a reins.Click) error { return errUnbuilt }

func (b *browser) fill(ctx context.Context, x *action, a reins.Fill) error { return errUnbuilt }

func (b *browser) press(ctx context.Context, x *action, a reins.Press) error { return errUnbuilt }

func (b *browser) typeText(ctx context.Context, x *action, a reins.Type) error { return errUnbuilt }

var errUnbuilt = reins.Errorf(reins.CodeToolFailed, "this verb is not built yet")
