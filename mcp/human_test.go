package mcp_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// CTL-8: what came of asking for a person, in text and structured. What the
// person wrote is quoted, on one line.
func TestRequestHumanOutcomes(t *testing.T) {
	for _, c := range []struct {
		answer reins.HumanAnswer
		text   string
	}{
		{reins.HumanAnswer{Outcome: reins.HumanDone, Actor: "ada", Note: "signed\nin"}, `A person is done; look at the page before you go on. They say: "signed\nin"`},
		{reins.HumanAnswer{Outcome: reins.HumanDone}, "A person is done; look at the page before you go on."},
		{reins.HumanAnswer{Outcome: reins.HumanDeclined, Note: "no"}, `A person declined. They say: "no"`},
		{reins.HumanAnswer{Outcome: reins.HumanExpired}, "Nobody came in time."},
	} {
		l := newFakeLease(func(_ context.Context, call reins.Call) (*reins.Result, error) {
			if a := call.Action.(reins.RequestHuman); a.Reason != "type the code" || a.Timeout != reins.Duration(5*time.Second) {
				t.Errorf("asked %+v", a)
			}
			return &reins.Result{Human: &c.answer}, nil
		})
		client := connect(t, mcp.Options{Lease: give(l), Tools: []string{"full"}, People: true}, nil)
		res := call(t, client, "browser_request_human", map[string]any{"reason": "type the code", "timeout_ms": 5000})
		if got := textOf(t, res); got != c.text || res.IsError {
			t.Errorf("text %q, want %q", got, c.text)
		}
		human, _ := res.StructuredContent.(map[string]any)["human"].(map[string]any)
		if human["outcome"] != string(c.answer.Outcome) {
			t.Errorf("structured %v", res.StructuredContent)
		}
	}
}

// CTL-8 and MCP-6: a wait for a person says so now and then, and holds up no
// other call of the client.
func TestRequestHumanTellsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLease(func(ctx context.Context, call reins.Call) (*reins.Result, error) {
			if _, ok := call.Action.(reins.RequestHuman); !ok {
				return &reins.Result{}, nil
			}
			call.Progress(reins.Progress{Stage: "person"})
			select {
			case <-time.After(25 * time.Second):
			case <-ctx.Done():
			}
			return &reins.Result{Human: &reins.HumanAnswer{Outcome: reins.HumanExpired}}, nil
		})
		server, err := mcp.NewServer(mcp.Options{Lease: give(l), Tools: []string{"full"}, People: true})
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- server.Serve(t.Context(), &sdk.IOTransport{Reader: far, Writer: far}) }()
		told := make(chan string, 16)
		client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) { told <- req.Params.Message },
		}).Connect(t.Context(), &sdk.IOTransport{Reader: near, Writer: near}, nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			p := &sdk.CallToolParams{Name: "browser_request_human", Arguments: map[string]any{"reason": "help"}}
			p.SetProgressToken("p")
			_, err := client.CallTool(t.Context(), p)
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		if _, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}}); err != nil || time.Since(began) != 0 {
			t.Errorf("another call took %s: %v", time.Since(began), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		close(told)
		var all []string
		for m := range told {
			all = append(all, m)
		}
		if got := strings.Join(all, " "); got != "Waiting for a person. Waiting for a person for 10 s. Waiting for a person for 20 s." {
			t.Errorf("told %q", got)
		}
		_ = client.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
