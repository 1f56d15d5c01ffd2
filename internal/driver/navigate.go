package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// voyage is one navigation that an action makes.
type voyage struct {
	b       *browser
	t       *tab
	x       *action
	want    phase
	given   string // as the action said it
	to      string // address, when the browser is told one
	commits int    // of the tab before it
	within  int
	began   int // navigations of the tab before it
	loader  proto.LoaderID
	fault   string // net::ERR_… that the browser answered
	file    bool   // it became a download
	same    bool   // it stays in the document
	patient bool   // the wait was asked for; the default one ends where a page can be used
	wake    *time.Timer
}

const navigateTimeout = 30 * time.Second

// errNavigationTime ends a navigation's wait; it never leaves the package.
var errNavigationTime = errors.New("the navigation's time passed")

// navigate is the verb (NAV-1..5).
func (b *browser) navigate(ctx context.Context, x *action, a reins.Navigate) error {
	t := x.tab
	v := &voyage{b: b, t: t, x: x, want: phaseParsed, given: withoutUser(a.URL), patient: a.Wait != ""}
	switch a.Wait {
	case "commit":
		v.want = phaseCommitted
	case "load":
		v.want = phaseLoaded
	}
	limit := time.Duration(a.Timeout)
	if limit == 0 {
		limit = navigateTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errNavigationTime)
	defer cancel()
	b.mu.Lock()
	v.commits, v.within, v.began = t.nav.commits, t.nav.within, t.nav.began
	t.leaving++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		t.leaving--
		b.mu.Unlock()
	}()
	v.leaveDialogs()
	if err := t.blocked(); err != nil && reins.CodeOf(err) != reins.CodePageCrashed {
		return err
	}
	v.free(timed)
	if err := v.start(timed, a.URL); err != nil {
		return v.explain(ctx, limit, err)
	}
	met, err := v.arrive(timed)
	if err != nil {
		return v.explain(ctx, limit, err)
	}
	if err := v.keep(timed); err != nil {
		return err
	}
	return v.report(timed, met)
}

// start tells the browser where to go.
func (v *voyage) start(ctx context.Context, to string) error {
	s := v.t.pageSession()
	switch to {
	case "back", "forward":
		return v.history(ctx, s, to)
	case "reload":
		return s.Call(ctx, page.Reload.Method, page.ReloadParams{}, nil)
	}
	var err error
	if v.to, err = address(to, v.b.settings.Navigation); err != nil {
		return err
	}
	reply := cdp.Send(s, page.Navigate, page.NavigateParams{URL: v.to})
	// The reply comes with the commit; a dialog that the page opens may come
	// first and hold it up.
	if err := v.unlessDialog(ctx, reply.Done()); err != nil {
		return err
	}
	got, err := reply.Wait(ctx)
	if err != nil {
		return err
	}
	v.loader, v.fault, v.file = got.LoaderID, got.ErrorText, got.IsDownload
	v.same = got.LoaderID == "" && got.ErrorText == "" && !got.IsDownload
	if v.fault != "" && !v.aborted() {
		v.awaitErrorPage(ctx)
	}
	return nil
}

// aborted: the browser shows no error page then.
func (v *voyage) aborted() bool { return v.fault == "net::ERR_ABORTED" }

// awaitErrorPage waits for the browser's error page, so that it is not taken
// for what a later navigation led to.
func (v *voyage) awaitErrorPage(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = v.b.await(short, func() bool { return slices.Contains(v.t.nav.arrived, v.loader) || v.t.blockedLocked() != nil })
}

// thereLocked reports whether the navigation's document, or one that came
// after it, is in place.
func (v *voyage) thereLocked() bool {
	nav := &v.t.nav
	if v.loader == "" {
		return nav.commits > v.commits
	}
	return slices.Contains(nav.arrived, v.loader)
}

// unlessDialog waits for done, or until the page shows a dialog, crashes or
// goes.
func (v *voyage) unlessDialog(ctx context.Context, done <-chan struct{}) error {
	for {
		v.b.mu.Lock()
		changed := make(chan struct{})
		v.b.waiters = append(v.b.waiters, changed)
		blocked := v.t.blockedLocked()
		crashed := blocked != nil && blocked.Code == reins.CodePageCrashed // may be from before
		committed := v.t.nav.commits > v.commits && !crashed
		v.b.mu.Unlock()
		switch {
		case blocked != nil && committed:
			return nil
		case blocked != nil && !crashed:
			return blocked
		}
		select {
		case <-done:
			return nil
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// history goes to the neighbouring entry of the tab's history.
func (v *voyage) history(ctx context.Context, s *cdp.Session, way string) error {
	h, err := cdp.Call(ctx, s, page.GetNavigationHistory, none)
	if err != nil {
		return err
	}
	at := int(h.CurrentIndex) - 1
	if way == "forward" {
		at = int(h.CurrentIndex) + 1
	}
	if at < 0 || at >= len(h.Entries) {
		return reins.Errorf(reins.CodeInvalidState, "tab %s has no page to go %s to", v.t.id, way).Recover(reins.RecoverChangeInput)
	}
	return s.Call(ctx, page.NavigateToHistoryEntry.Method, page.NavigateToHistoryEntryParams{EntryID: h.Entries[at].ID}, nil)
}

// arrive waits until the document is as far as was asked for. It reports
// whether it is: a page that is there but goes on loading is a success too.
func (v *voyage) arrive(ctx context.Context) (met bool, err error) {
	if v.file || v.fault != "" || v.same {
		return v.same, nil
	}
	err = v.b.await(ctx, func() bool {
		nav := &v.t.nav
		switch {
		case v.t.blockedLocked() != nil && (!v.t.crashed || v.thereLocked()):
			return true
		case v.thereLocked():
			met = v.t.main.phase >= v.want && v.t.main.doc != nil || nav.unreachable != ""
			return met || v.usableLocked()
		case nav.within > v.within && v.loader == "":
			met = true
			return true
		}
		return v.failedLocked()
	})
	if v.wake != nil {
		v.wake.Stop()
	}
	if err == nil && v.fault != "" && !v.aborted() {
		v.awaitErrorPage(ctx)
	}
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	there := v.thereLocked()
	switch {
	case err == nil && !there && !met:
		if blocked := v.t.blockedLocked(); blocked != nil {
			return false, blocked
		}
		return false, nil
	case errors.Is(err, errNavigationTime) && there:
		return false, nil
	}
	return met, err
}

// keep makes sure that the page before has not taken the tab back: what it began
// while it was being left takes the place of the document that was asked for. To
// tell of that document then would be a lie.
func (v *voyage) keep(ctx context.Context) error {
	if v.loader == "" || v.file || v.fault != "" || v.same {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = v.b.await(short, func() bool {
		return v.t.nav.overtaken == "" || v.t.main.loader != v.loader || v.t.blockedLocked() != nil
	})
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	if !slices.Contains(v.t.nav.lost, v.loader) {
		return nil
	}
	return reins.Errorf(reins.CodeNavigationFailed, "the page that was being left took tab %s to %.200q instead of %.200q; navigate again", v.t.id, bounded(v.t.url), v.given)
}

// arrivesFor is how long a document may go on arriving before a page that shows
// something can be used as it is.
const arrivesFor = 5 * time.Second

// usableLocked reports whether a page that never ends to arrive shows enough to
// be used (NAV-1). Who asked for a wait gets it whole.
func (v *voyage) usableLocked() bool {
	if v.patient || v.t.main.doc == nil {
		return false
	}
	left := arrivesFor - time.Since(v.t.nav.at)
	if left <= 0 {
		return v.t.main.painted
	}
	if v.wake == nil {
		v.wake = time.AfterFunc(left, v.b.wake)
	} else {
		v.wake.Reset(left) // it may have been another document's
	}
	return false
}

// failedLocked learns, for a navigation that the browser answered nothing
// about, that its newest attempt came to nothing or to a download.
func (v *voyage) failedLocked() bool {
	nav := &v.t.nav
	if nav.began <= v.began || len(nav.started) == 0 {
		return false
	}
	loader := nav.started[len(nav.started)-1]
	if i := slices.IndexFunc(nav.failures, func(f failure) bool { return f.loader == loader }); i >= 0 {
		v.loader, v.fault = loader, nav.failures[i].text
		return true
	}
	return false
}

// report says where the navigation ended.
func (v *voyage) report(ctx context.Context, met bool) error {
	if v.file {
		return v.reportDownload(ctx)
	}
	v.b.mu.Lock()
	answer := v.answerLocked()
	fault := v.fault
	if fault == "" && v.thereLocked() && v.t.nav.unreachable != "" {
		fault = v.faultOfErrorPageLocked()
	}
	crashed := v.t.crashed
	v.b.mu.Unlock()
	switch {
	case crashed:
		return errCrashed(v.t)
	case answer.refusal != "":
		return Refusal(hostOf(answer.url), answer.refusal)
	case v.aborted() && answer.status != 0 && answer.status < 400:
		v.x.reply.Result.Notes = append(v.x.reply.Result.Notes,
			fmt.Sprintf("the server answered with status %d and no page, so tab %s still shows the page before", answer.status, v.t.id))
		met = true
	case fault == "net::ERR_INVALID_AUTH_CREDENTIALS" || fault == "net::ERR_HTTP_RESPONSE_CODE_FAILURE" && answer.status != 0:
		met = true // the status tells it
	case fault != "":
		return errNetwork(v.addressOf(), fault)
	}
	if answer.asks != "" {
		v.x.note("the site asks for credentials: %.200q; this browser has none for it", answer.asks)
	}
	result := &reins.NavigationResult{Status: answer.status, Waited: met}
	result.URL, result.Title, result.Loading = v.describe(context.WithoutCancel(ctx))
	v.x.reply.Result.Navigation = result
	if v.x.reply.Result.Changes == nil {
		v.x.reply.Result.Changes = &reins.Changes{}
	}
	v.x.reply.Result.Changes.Settled = met
	return nil
}

// loadsAtOnce is how long a page that is parsed may take to be loaded before it
// is said to be still loading.
const loadsAtOnce = 100 * time.Millisecond

// awaitLoad gives a page that says that it has nothing left to load the moment
// that the browser takes to say so.
func (t *tab) awaitLoad(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, loadsAtOnce)
	defer cancel()
	_ = t.b.await(short, func() bool {
		return t.main.phase >= phaseLoaded && !t.loading || t.nav.unreachable != "" || t.blockedLocked() != nil
	})
}

// describe reads what the tab shows now. The document is asked for its title,
// and whether it is complete, itself, since the browser learns of that late.
func (v *voyage) describe(ctx context.Context) (address, title string, loading bool) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	v.b.mu.Lock()
	failed := v.t.nav.unreachable != ""
	if failed { // the title is the browser's
		v.t.title = ""
	}
	v.b.mu.Unlock()
	if d, err := v.t.document(short); err == nil && !failed {
		var now struct {
			Title    string `json:"title"`
			Complete bool   `json:"complete"`
		}
		if d.eval(short, "() => ({ title: document.title, complete: document.readyState === 'complete' })", &now) == nil {
			v.b.mu.Lock()
			if v.t.main.doc == d && v.t.title != now.Title {
				v.t.title = now.Title
				v.b.updatedLocked(v.t)
			}
			v.b.mu.Unlock()
			if now.Complete {
				v.t.awaitLoad(short)
			}
		}
	}
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	return bounded(v.t.url), bounded(v.t.title), v.t.main.phase < phaseLoaded
}

// answerLocked is how the server answered the document that is there now, or,
// when the navigation failed, the one that was asked for.
func (v *voyage) answerLocked() response {
	loader := v.loader
	if v.fault == "" {
		loader = v.t.main.loader
	}
	for _, r := range slices.Backward(v.t.nav.responses) {
		if r.loader == loader {
			return r
		}
	}
	return response{}
}

// faultOfErrorPageLocked is why the document shown is an error page.
func (v *voyage) faultOfErrorPageLocked() string {
	for _, f := range slices.Backward(v.t.nav.failures) {
		if f.loader == v.t.main.loader {
			return f.text
		}
	}
	if n := len(v.t.nav.failures); n > 0 {
		return v.t.nav.failures[n-1].text
	}
	return "net::ERR_FAILED"
}

// addressOf is what could not be loaded: where a redirect or the history led to,
// if the browser shows its error page for that.
func (v *voyage) addressOf() string {
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	if failed := v.t.nav.unreachable; failed != "" && v.thereLocked() {
		return withoutUser(failed)
	}
	return withoutUser(cmp.Or(v.to, v.t.url))
}

// reportDownload reports a navigation that became a download (NAV-4), once
// the download has ended or the time passed.
func (v *voyage) reportDownload(ctx context.Context) error {
	var d *download
	err := v.b.await(ctx, func() bool {
		if n := len(v.x.fx.downloads); n > 0 {
			d = v.x.fx.downloads[n-1]
		}
		return d != nil && d.state != downloadRunning
	})
	if d == nil && err != nil {
		return reins.Errorf(reins.CodeNavigationFailed, "%.200q is a download that the browser did not begin", v.given).Because(err)
	}
	if err != nil && !errors.Is(err, errNavigationTime) {
		return err
	}
	v.b.mu.Lock()
	shown := d.describe()
	v.b.mu.Unlock()
	address, title, loading := v.describe(context.WithoutCancel(ctx))
	v.x.reply.Result.Navigation = &reins.NavigationResult{URL: address, Title: title, Loading: loading, Waited: err == nil, Download: &shown}
	v.x.reply.Result.Changes = &reins.Changes{Settled: err == nil}
	return nil
}

// explain words why a navigation did not get there.
func (v *voyage) explain(ctx context.Context, limit time.Duration, err error) error {
	var known *reins.Error
	if errors.As(err, &known) || ctx.Err() != nil || !errors.Is(err, errNavigationTime) {
		if refusal, ok := cdp.IsProtocol(err); ok && known == nil {
			return reins.Errorf(reins.CodeNavigationFailed, "the browser did not load %.200q: %.200q", v.given, refusal.Message).Because(err)
		}
		return err
	}
	v.t.pageSession().Send(page.StopLoading.Method, nil)
	v.b.mu.Lock()
	answered := v.thereLocked()
	v.b.mu.Unlock()
	if answered {
		return reins.Errorf(reins.CodeTimeout, "%.200q was loaded but does not answer after %s; its scripts keep it busy", v.given, limit).In(reins.PhaseAction)
	}
	return reins.Errorf(reins.CodeTimeout, "%.200q did not begin to answer within %s; loading it was stopped", v.given, limit).In(reins.PhaseAction)
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// causes words the browser's network errors (NAV-4).
var causes = []struct{ code, words string }{
	{"NAME_NOT_RESOLVED", "no such host: its name cannot be resolved"},
	{"DNS_", "its name cannot be resolved"},
	{"CONNECTION_REFUSED", "the server refused the connection; nothing listens there"},
	{"CONNECTION_TIMED_OUT", "the server did not answer in time"},
	{"TIMED_OUT", "the server did not answer in time"},
	{"CONNECTION_RESET", "the server cut the connection"},
	{"CONNECTION_CLOSED", "the server closed the connection without an answer"},
	{"EMPTY_RESPONSE", "the server closed the connection without an answer"},
	{"TUNNEL_CONNECTION_FAILED", "the network door refused it or could not reach it"},
	{"PROXY_", "the network door does not answer"},
	{"ADDRESS_UNREACHABLE", "the network has no way there"},
	{"INTERNET_DISCONNECTED", "there is no network"},
	{"NETWORK_", "the network changed or has no way there"},
	{"TOO_MANY_REDIRECTS", "it redirects for ever"},
	{"CERT_DATE_INVALID", "TLS: its certificate has expired or is not valid yet"},
	{"CERT_COMMON_NAME_INVALID", "TLS: its certificate is for another name"},
	{"CERT_AUTHORITY_INVALID", "TLS: its certificate is not from a known authority"},
	{"CERT_", "TLS: its certificate is not valid"},
	{"SSL_", "TLS: no secure connection could be made; perhaps it speaks plain http"},
	{"INVALID_RESPONSE", "its answer is not valid HTTP"},
	{"RESPONSE_HEADERS_", "its answer is not valid HTTP"},
	{"INVALID_HTTP_RESPONSE", "its answer is not HTTP"},
	{"UNSAFE_REDIRECT", "it redirects to an address that pages must not lead to"},
	{"UNKNOWN_URL_SCHEME", "it leads to an address of a kind that is not loaded"},
	{"UNSAFE_PORT", "browsers do not connect to that port"},
	{"BLOCKED_BY_RESPONSE", "its answer forbids being shown"},
	{"CONTENT_DECODING_FAILED", "its answer cannot be decoded"},
	{"ABORTED", "loading was stopped before it answered"},
	{"INSUFFICIENT_RESOURCES", "the browser has no resources left for it"},
	{"FILE_NOT_FOUND", "there is no such file"},
	{"INVALID_URL", "it is not a valid address"},
}

// errNetwork words why an address could not be loaded (NAV-4). The browser's
// code goes along as a detail.
func errNetwork(address, fault string) *reins.Error {
	code := strings.TrimPrefix(fault, "net::ERR_")
	if strings.HasPrefix(code, "BLOCKED_BY_ADMINISTRATOR") || strings.HasPrefix(code, "BLOCKED_BY_CLIENT") {
		return errBlockedHost(hostOf(address)).With("error", fault)
	}
	return reins.Errorf(reins.CodeNavigationFailed, "%.200q was not loaded: %s", address, wordsOf(code)).With("error", fault).With("host", hostOf(address))
}

// wordsOf words a network error of the browser, given without its prefix.
func wordsOf(code string) string {
	for _, c := range causes {
		if strings.HasPrefix(code, c.code) {
			return c.words
		}
	}
	return "the browser could not load it"
}
