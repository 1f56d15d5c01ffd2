package driver

import (
	"context"
	"time"

	protobrowser "github.com/chromedp/cdproto/browser"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// answerTime is how long the browser's own process may take to say its version.
const answerTime = 10 * time.Second

// suspect asks the browser's own process whether it answers at all, once an action
// came to a timeout. A page that does not is one thing; a browser that does not is
// of no use to anybody, and neither is a driver on it: hung is closed then.
func (b *browser) suspect(err error) {
	if reins.CodeOf(err) != reins.CodeTimeout {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asking {
		return
	}
	b.asking = true
	b.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		_, err := cdp.Call(ctx, b.conn.Root(), protobrowser.GetVersion, none)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asking = false
		if err != nil && ctx.Err() != nil {
			b.asking = true // for good: it is told once
			close(b.hung)
		}
	})
}
