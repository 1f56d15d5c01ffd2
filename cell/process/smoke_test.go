package process

import (
	"bufio"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Entry{InitRole: InitMain})
	goleak.VerifyTestMain(m)
}

func TestSmoke(t *testing.T) {
	for _, f := range New(Options{}).Check(t.Context()) {
		t.Logf("%+v", f)
	}
	b := New(Options{})
	for _, e := range []reins.Engine{reins.EngineFull, reins.EngineShell, reins.EngineFull, reins.EngineShell} {
		begin := time.Now()
		c, err := b.Start(t.Context(), cell.Spec{Profile: t.TempDir(), Downloads: t.TempDir(), Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("started", time.Since(begin))
		fmt.Fprintf(c.Doors().ToBrowser, "{\"id\":1,\"method\":\"Browser.getVersion\"}\x00{\"id\":2,\"method\":\"Target.getTargets\"}\x00")
		r := bufio.NewReader(c.Doors().FromBrowser)
		for range 2 {
			s, err := r.ReadString(0)
			t.Log(time.Since(begin), s, err)
		}
		t.Log(c.Verify(t.Context()), time.Since(begin))
		for _, x := range must(c.(*box).inside.tasks()) {
			t.Logf("%+v", x)
		}
		t.Log(c.(*box).inside.volatile())
		begin = time.Now()
		t.Log(c.Close(t.Context()), c.Err(), time.Since(begin))
		t.Log(c.(*box).init.Exit(), c.(*box).init.Stderr())
	}
	_ = os.Args
}

func must[T any](v T, err error) T { return v }
