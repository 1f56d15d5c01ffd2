package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

type fake struct{ events chan reins.Event }

func (f fake) Join(_ context.Context, in api.JoinForm) (api.Join, error) {
	if !in.Framed || in.Resource == nil {
		return api.Join{}, reins.Errorf(reins.CodeInvalidInput, "no link for a frame: %+v", in)
	}
	return api.Join{URL: "http://reins.test/r/p/r?embed=1#secret"}, nil
}

func (f fake) Events(context.Context, string) (<-chan reins.Event, error) { return f.events, nil }

func TestHostPage(t *testing.T) {
	f := fake{make(chan reins.Event, 8)}
	key := reins.ResourceKey{Project: "p", ID: "r"}
	s := httptest.NewServer(handler(f, "http://reins.test", key))
	defer s.Close()
	get := func(method, path, site string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", site)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	if status, body := get("GET", "/", "none"); status != 200 || !strings.Contains(body, `e.origin !== "http://reins.test"`) {
		t.Errorf("the page: %d\n%s", status, body)
	}
	if status, body := get("POST", "/link", "same-origin"); status != 200 || !strings.Contains(body, "#secret") {
		t.Errorf("a link: %d %s", status, body)
	}
	if status, _ := get("POST", "/link", "cross-site"); status != 403 {
		t.Errorf("a link for another site's page: %d", status)
	}
	f.events <- reins.Event{Key: reins.ResourceKey{Project: "p", ID: "other"}, Kind: "state", State: reins.StateRunning}
	f.events <- reins.Event{Key: key, Kind: "state", State: reins.StateStarting}
	f.events <- reins.Event{Key: key, Kind: "state", State: reins.StateRunning}
	f.events <- reins.Event{Key: key, Kind: "control", Control: &reins.Control{Requests: []reins.HumanRequest{{ID: "1"}}}}
	close(f.events)
	res, err := http.Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got []string
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			got = append(got, lines.Text())
		}
	}
	if len(got) != 2 || !strings.Contains(got[0], "false") || !strings.Contains(got[1], "true") {
		t.Errorf("told %q", got)
	}
}
