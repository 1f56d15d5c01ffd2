package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

func shop(id string) reins.ResourceKey { return reins.ResourceKey{Project: "p", ID: id} }

// API-3: a person comes in by a link, opens a page, has a lease on a resource, uses what
// pages may of the API under it, and leaves.
func TestPersonComesAndGoes(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	register(t, s.truth, "b", nil)
	b := s.browser()
	if r := b.send("POST", "/people/page", "{}"); r.code() != reins.CodeUnauthorized || r.StatusCode != 401 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	join, err := s.client("").Join(t.Context(), api.JoinForm{Actor: "Mira", Projects: []string{"p"}})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(join.Expires); left < 50*time.Second || left > time.Minute || !strings.HasPrefix(join.URL, s.url+"/join#reins_") {
		t.Errorf("%+v", join)
	}
	r := b.send("POST", "/people/join", `{"secret":"`+secretOf(t, join)+`"}`)
	if c := r.Cookies(); len(c) != 1 || !strings.HasPrefix(c[0].Name, "reins_") || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Domain != "" || c[0].Path != "/" || c[0].MaxAge < 3600 {
		t.Errorf("%v", c)
	}
	if !strings.Contains(r.body, `"actor":"Mira"`) || !strings.Contains(r.body, `"projects":["p"]`) || !strings.Contains(r.body, `"resource":null`) {
		t.Errorf("%s", r.body)
	}
	b.cookie = r.Cookies()
	b.load()
	lease := b.open(shop("a"))
	if again := b.open(shop("a")); again != lease {
		t.Errorf("a second lease %s beside %s", again, lease)
	}
	for _, path := range []string{"/v1/projects/p/resources", "/v1/projects/p/resources/a", "/v1/leases/" + lease} {
		if r := b.send("GET", path, ""); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if r := b.send("GET", "/v1/leases/"+lease, ""); !strings.Contains(r.body, `"actor":"Mira","role":"human"`) || !strings.Contains(r.body, `"source":"viewer"`) {
		t.Errorf("%s", r.body)
	}
	if r := b.send("POST", "/v1/leases/"+lease+"/operations", `{"action":{"verb":"list_artifacts"}}`); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("POST", "/v1/projects/p/resources/b/terminate", ""); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("POST", "/people/close", `{"lease":"`+lease+`"}`); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("GET", "/v1/leases/"+lease, ""); r.StatusCode != 401 && r.StatusCode != 403 {
		t.Errorf("a closed lease: %d %s", r.StatusCode, r.body)
	}
	b.open(shop("b"))
	if r := b.send("DELETE", "/people/session", ""); r.StatusCode != 204 || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", r.StatusCode, r.Cookies())
	}
	if r := b.send("GET", "/v1/projects/p/resources", ""); r.code() != reins.CodeUnauthorized {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	idle(t, s, "b")
}

// idle waits until nobody takes part in a resource.
func idle(t *testing.T, s *site, id string) {
	t.Helper()
	for {
		all, err := s.truth.List(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Key.ID == id && i.Participants == 0 {
				return
			}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it is not released")
		}
	}
}

// API-3, attacks: a link works once, in its time, and every other answer is the same.
func TestLinks(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	c := s.client("")
	join, err := c.Join(t.Context(), api.JoinForm{Actor: "m", Projects: []string{"p"}})
	if err != nil {
		t.Fatal(err)
	}
	// A preview of the link fetches it, as a robot would, and spends nothing.
	if r := s.browser().send("GET", "/join", ""); r.StatusCode != 200 || strings.Contains(r.body, "reins_") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	late, err := c.Join(t.Context(), api.JoinForm{Actor: "m", Projects: []string{"p"}})
	if err != nil {
		t.Fatal(err)
	}
	s.door.people.mu.Lock()
	for _, j := range s.door.people.joins {
		if j.expires.Equal(late.Expires) {
			j.expires = time.Now().Add(-time.Millisecond)
		}
	}
	s.door.people.mu.Unlock()
	b := s.browser()
	b.join(join)
	bodies := map[string]bool{}
	for what, secret := range map[string]string{
		"used": secretOf(t, join), "late": secretOf(t, late), "never one": "reins_" + strings.Repeat("x", 43),
		"empty": "", "long": strings.Repeat("x", 10_000), "the admin's key": s.admin(), "a cookie": b.cookie[0].Value,
	} {
		r := s.browser().send("POST", "/people/join", `{"secret":"`+secret+`"}`)
		if r.code() != reins.CodeUnauthorized || len(r.Cookies()) > 0 {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
		bodies[r.body] = true
	}
	if len(bodies) != 1 {
		t.Errorf("the answers tell reasons apart: %v", bodies)
	}
	for what, in := range map[string]api.JoinForm{
		"nobody": {Projects: []string{"p"}}, "nothing": {Actor: "m"}, "unprintable": {Actor: "m\n", Projects: []string{"p"}},
		"both": {Actor: "m", Projects: []string{"p"}, Resource: &api.Place{Project: "p", ID: "a"}}, "bad project": {Actor: "m", Projects: []string{"p/q"}},
		"bad resource": {Actor: "m", Resource: &api.Place{Project: "p"}}, "short": {Actor: "m", Projects: []string{"p"}, Life: api.Life(time.Second)},
		"long": {Actor: "m", Projects: []string{"p"}, Life: api.Life(2 * time.Hour)}, "many": {Actor: "m", Projects: make([]string, 65)},
	} {
		if _, err := c.Join(t.Context(), in); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := s.log.String(); strings.Contains(s, secretOf(t, join)) || strings.Contains(s, b.cookie[0].Value) {
		t.Error("a secret is in the log")
	}
}

// API-3, attacks on a session: each secret alone is nothing, nor is that of another
// session, page or server; other sites and their pages get nowhere.
func TestSessionAttacks(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	other := start(t, t.TempDir()+"/runtime", nil)
	register(t, other.truth, "a", nil)
	victim := s.invited(api.JoinForm{Actor: "v", Projects: []string{"p"}})
	lease := victim.open(shop("a"))
	mallory := s.invited(api.JoinForm{Actor: "mallory", Projects: []string{"q"}})
	narrow := s.invited(api.JoinForm{Actor: "n", Resource: &api.Place{Project: "p", ID: "b"}})
	elsewhere := other.invited(api.JoinForm{Actor: "e", Projects: []string{"p"}})
	if elsewhere.cookie[0].Name == victim.cookie[0].Name {
		t.Error("two servers have cookies of one name")
	}
	act, list, mine := "/v1/leases/"+lease+"/operations", "/v1/projects/p/resources", `{"action":{"verb":"list_artifacts"}}`
	open := `{"project":"p","resource":"a"}`
	cookie := func(b *browser) string { return b.cookie[0].Name + "=" + b.cookie[0].Value }
	renamed := victim.cookie[0].Name + "=" + elsewhere.cookie[0].Value
	for what, c := range map[string]struct {
		by                 *browser
		method, path, body string
		more               []string
		code               reins.Code
	}{
		"no page secret":             {victim, "POST", act, mine, []string{pageHeader, ""}, reins.CodeUnauthorized},
		"no page secret, reading":    {victim, "GET", list, "", []string{pageHeader, ""}, reins.CodeUnauthorized},
		"no page secret, open":       {victim, "POST", "/people/open", open, []string{pageHeader, ""}, reins.CodeUnauthorized},
		"no cookie":                  {victim, "POST", act, mine, []string{"Cookie", ""}, reins.CodeUnauthorized},
		"two cookies":                {victim, "POST", act, mine, []string{"Cookie", cookie(victim) + "; " + cookie(mallory)}, reins.CodeUnauthorized},
		"another's page secret":      {victim, "POST", act, mine, []string{pageHeader, mallory.page}, reins.CodeUnauthorized},
		"another's cookie":           {victim, "POST", act, mine, []string{"Cookie", cookie(mallory)}, reins.CodeUnauthorized},
		"another server's cookie":    {victim, "POST", act, mine, []string{"Cookie", renamed}, reins.CodeUnauthorized},
		"another server's page":      {victim, "POST", act, mine, []string{pageHeader, elsewhere.page}, reins.CodeUnauthorized},
		"another's lease":            {mallory, "POST", act, mine, nil, reins.CodeUnauthorized},
		"another's lease, reading":   {narrow, "GET", "/v1/leases/" + lease, "", nil, reins.CodeUnauthorized},
		"another project":            {mallory, "GET", list, "", nil, reins.CodeDenied},
		"another project, open":      {mallory, "POST", "/people/open", open, nil, reins.CodeDenied},
		"another resource":           {narrow, "GET", list + "/a", "", nil, reins.CodeDenied},
		"another resource, start":    {narrow, "POST", list + "/a/terminate", "", nil, reins.CodeDenied},
		"another resource, open":     {narrow, "POST", "/people/open", open, nil, reins.CodeDenied},
		"foreign origin":             {victim, "POST", act, mine, []string{"Origin", "http://evil.test"}, reins.CodeDenied},
		"foreign origin, open":       {victim, "POST", "/people/open", open, []string{"Origin", "http://evil.test"}, reins.CodeDenied},
		"foreign origin, join":       {victim, "POST", "/people/join", `{"secret":"x"}`, []string{"Origin", "null"}, reins.CodeDenied},
		"foreign origin, page":       {victim, "POST", "/people/page", "{}", []string{"Origin", "http://127.0.0.1:1"}, reins.CodeDenied},
		"no origin":                  {victim, "POST", act, mine, []string{"Origin", ""}, reins.CodeDenied},
		"no origin, page":            {victim, "POST", "/people/page", "{}", []string{"Origin", ""}, reins.CodeDenied},
		"no origin, leave":           {victim, "DELETE", "/people/session", "", []string{"Origin", ""}, reins.CodeDenied},
		"a form":                     {victim, "POST", "/people/page", "{}", []string{"Content-Type", "text/plain"}, reins.CodeInvalidInput},
		"an image of another site":   {victim, "GET", list, "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, reins.CodeDenied},
		"rebound name":               {victim, "POST", act, mine, []string{"Host", "evil.test", "Origin", "http://evil.test"}, reins.CodeDenied},
		"register":                   {victim, "POST", list, `{"resource":"new"}`, nil, reins.CodeDenied},
		"retire":                     {victim, "POST", list + "/a/retire", "", nil, reins.CodeDenied},
		"attach":                     {victim, "POST", list + "/a/attach", `{"authority":"x","revision":9}`, nil, reins.CodeDenied},
		"issue":                      {victim, "POST", "/v1/projects/p/capabilities", "{}", nil, reins.CodeDenied},
		"keys":                       {victim, "GET", "/v1/keys", "", nil, reins.CodeDenied},
		"join others":                {victim, "POST", "/v1/joins", `{"actor":"x","projects":["p"]}`, nil, reins.CodeDenied},
		"audit":                      {victim, "GET", "/v1/audit?project=p", "", nil, reins.CodeDenied},
		"artifacts beside the lease": {victim, "GET", list + "/a/artifacts", "", nil, reins.CodeDenied},
		"renew the lease":            {victim, "POST", "/v1/leases/" + lease + "/renew", "", nil, reins.CodeDenied},
		"acquire":                    {victim, "POST", "/v1/leases", "{}", nil, reins.CodeDenied},
		"a token besides":            {mallory, "POST", act, mine, []string{"Reins-Capability", "reins_x"}, reins.CodeUnauthorized},
		"page as a bearer":           {victim, "GET", list, "", []string{"Authorization", "Bearer " + victim.page}, reins.CodeUnauthorized},
		"cookie as a bearer":         {victim, "GET", list, "", []string{"Authorization", "Bearer " + victim.cookie[0].Value}, reins.CodeUnauthorized},
		"session at MCP":             {victim, "POST", "/mcp", "{}", nil, "-"},
	} {
		r := c.by.send(c.method, c.path, c.body, c.more...)
		if c.code == "-" {
			if r.StatusCode != 401 {
				t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
			}
			continue
		}
		if r.code() != c.code {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
	// None of that did anything to the victim.
	if r := victim.send("POST", act, mine); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := narrow.send("GET", list, ""); r.StatusCode != 200 || strings.Contains(r.body, `"resource":"a"`) {
		t.Errorf("one resource: %d %s", r.StatusCode, r.body)
	}
}

// API-3, VIEW-5, LSE-6: a WebSocket needs both secrets and the origin of our own pages,
// and ends with the session.
func TestWebSocketAttacks(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	b := s.invited(api.JoinForm{Actor: "v", Projects: []string{"p"}})
	m := s.invited(api.JoinForm{Actor: "m", Projects: []string{"p"}})
	lease := b.open(shop("a"))
	dial := func(cookie *http.Cookie, origin, page string) (*websocket.Conn, int) {
		h := http.Header{}
		if cookie != nil {
			h.Set("Cookie", cookie.Name+"="+cookie.Value)
		}
		if origin != "" {
			h.Set("Origin", origin)
		}
		o := &websocket.DialOptions{HTTPHeader: h, Subprotocols: []string{"reins.view.v1"}, HTTPClient: s.http.Client()}
		if page != "" {
			o.Subprotocols = append(o.Subprotocols, pageProtocol+page)
		}
		c, r, err := websocket.Dial(t.Context(), s.url+"/v1/leases/"+lease+"/view", o)
		if err != nil && r == nil {
			t.Fatal(err)
		}
		return c, r.StatusCode
	}
	for what, c := range map[string]struct {
		cookie       *http.Cookie
		origin, page string
		want         int
	}{
		"foreign origin":        {b.cookie[0], "http://evil.test", b.page, 403},
		"no origin":             {b.cookie[0], "", b.page, 403},
		"null origin":           {b.cookie[0], "null", b.page, 403},
		"no page":               {b.cookie[0], s.url, "", 401},
		"no cookie":             {nil, s.url, b.page, 401},
		"another's page":        {b.cookie[0], s.url, m.page, 401},
		"another session whole": {m.cookie[0], s.url, m.page, 401},
	} {
		if _, got := dial(c.cookie, c.origin, c.page); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
	own, status := dial(b.cookie[0], s.url, b.page)
	if status != http.StatusSwitchingProtocols || own.Subprotocol() != "reins.view.v1" {
		t.Fatalf("%d", status)
	}
	defer own.CloseNow()
	own.SetReadLimit(1 << 20)
	if _, text, err := own.Read(t.Context()); err != nil || !strings.Contains(string(text), `"state"`) {
		t.Fatalf("%s %v", text, err)
	}
	if r := b.send("DELETE", "/people/session", ""); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for {
		if _, _, err := own.Read(t.Context()); err != nil {
			break // it ended with its session
		}
	}
}

// API-2, LSE-6: people who came in by a link that a key made leave with the key.
func TestSessionEndsWithKey(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	made, err := s.client("").CreateKey(t.Context(), api.KeyForm{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	joins := make([]api.Join, 2)
	for i := range joins {
		if joins[i], err = s.client(made.Token).Join(t.Context(), api.JoinForm{Actor: fmt.Sprint("m", i), Projects: []string{"p"}}); err != nil {
			t.Fatal(err)
		}
	}
	b := s.browser()
	b.join(joins[0])
	b.load()
	b.open(shop("a"))
	if err := s.client("").RevokeKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if r := b.send("GET", "/v1/projects/p/resources", ""); r.code() != reins.CodeUnauthorized {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.browser().send("POST", "/people/join", `{"secret":"`+secretOf(t, joins[1])+`"}`); r.code() != reins.CodeUnauthorized {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	idle(t, s, "a")
}

// LSE-3: the server renews a page's lease while the page is there; what the page held is
// released when it is not seen for a while, and the session stays.
func TestPageGoesAway(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", func(o *Options) { o.Limits.CapabilityLife = 4 * time.Second })
	register(t, s.truth, "a", nil)
	b := s.invited(api.JoinForm{Actor: "m", Projects: []string{"*"}})
	lease := b.open(shop("a"))
	first := stateOf(t, b, lease).Expires
	for stateOf(t, b, lease).Expires.Sub(first) < time.Second { // it was renewed
		<-time.After(20 * time.Millisecond)
	}
	s.door.people.mu.Lock()
	for _, one := range s.door.people.sessions {
		for _, g := range one.pages {
			g.seen = g.seen.Add(-2 * time.Minute)
		}
	}
	s.door.people.mu.Unlock()
	idle(t, s, "a")
	b.load()
	if r := b.send("GET", "/v1/projects/p/resources", ""); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func stateOf(t *testing.T, b *browser, lease string) (out api.LeaseState) {
	t.Helper()
	b.send("GET", "/v1/leases/"+lease, "").into(t, &out)
	return out
}

// Bounds: links, pages of a session; the page used least lately makes room.
func TestPeopleBounds(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	b := s.invited(api.JoinForm{Actor: "m", Projects: []string{"p"}})
	first := b.page
	for range pagesMax {
		b.load()
	}
	if r := b.send("GET", "/v1/projects/p/resources", "", pageHeader, first); r.code() != reins.CodeUnauthorized {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("GET", "/v1/projects/p/resources", ""); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if sessions, pages, _ := s.door.people.counts(); sessions != 1 || pages != pagesMax {
		t.Errorf("%d sessions, %d pages", sessions, pages)
	}
	var err error
	for range joinsMax + 1 {
		if _, err = s.Invite(api.JoinForm{Actor: "m", Projects: []string{"p"}}); err != nil {
			break
		}
	}
	expect(t, err, reins.CodeQuotaExceeded)
	if r := b.send("POST", "/people/join", `{"secret":"`+strings.Repeat("x", formMax)+`"}`); r.code() != reins.CodeInvalidInput {
		t.Errorf("%d %.200s", r.StatusCode, r.body)
	}
	for _, body := range []string{"", "[]", "{", `{"secret":1}`, `{"secret":"x","more":1}`, `{}{}`} {
		if r := b.send("POST", "/people/join", body); r.code() != reins.CodeInvalidInput && r.code() != reins.CodeUnauthorized {
			t.Errorf("%q: %d %s", body, r.StatusCode, r.body)
		}
	}
}

// An administrator's person sees all projects there are, by name.
func TestAllProjects(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	register(t, s.truth, "a", nil)
	register(t, s.truth, "b", func(r *reins.Registration) { r.Key.Project = "q" })
	b := s.invited(api.JoinForm{Actor: "m", Projects: []string{"*"}})
	var out struct{ Session sessionView }
	b.send("POST", "/people/page", "{}").into(t, &out)
	if got, _ := json.Marshal(out.Session.Projects); string(got) != `["p","q"]` {
		t.Errorf("%s", got)
	}
	b.open(reins.ResourceKey{Project: "q", ID: "b"})
}
