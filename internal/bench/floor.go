package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/reins-browser/reins/internal/bench/chromium"
	"github.com/reins-browser/reins/internal/cdp"
)

// floor drives a plain Chromium by the least DevTools calls.
type floor struct {
	browser *chromium.Browser
	page    *cdp.Session

	mu     sync.Mutex
	loaded chan struct{} // closed at the next DOMContentLoaded of loader
	loader string
	seen   map[string]bool

	button, field point
}

// point is where something is, in CSS pixels.
type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

func startFloor(ctx context.Context, o options) (_ *floor, err error) {
	f := &floor{seen: map[string]bool{}}
	f.browser, err = chromium.Start(ctx, chromium.Options{Program: o.chromium, Arguments: []string{"--headless=new"}, Event: f.event})
	if err != nil {
		return nil, err
	}
	f.page = f.browser.Page
	for _, p := range f.page.SendAll(
		cdp.Request{Method: "Page.enable"},
		cdp.Request{Method: "Page.setLifecycleEventsEnabled", Params: map[string]any{"enabled": true}},
		cdp.Request{Method: "Emulation.setDeviceMetricsOverride", Params: map[string]any{"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false}},
	) {
		if err := p.Wait(ctx, nil); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (f *floor) event(e cdp.Event) {
	if e.Method != "Page.lifecycleEvent" {
		return
	}
	var life struct{ Name, LoaderID string } // encoding/json takes any case
	if json.Unmarshal(e.Params, &life) != nil || life.Name != "DOMContentLoaded" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[life.LoaderID] = true
	if f.loaded != nil && (life.LoaderID == f.loader || f.loader == "") {
		close(f.loaded)
		f.loaded = nil
	}
}

func (f *floor) navigate(ctx context.Context, url string) error {
	var nav struct {
		LoaderID  string `json:"loaderId"`
		ErrorText string `json:"errorText"`
	}
	if err := f.page.Call(ctx, "Page.navigate", map[string]any{"url": url}, &nav); err != nil {
		return err
	}
	if nav.ErrorText != "" {
		return errors.New(nav.ErrorText)
	}
	f.mu.Lock()
	if f.seen[nav.LoaderID] {
		f.mu.Unlock()
		return f.where(ctx)
	}
	wait := make(chan struct{})
	f.loaded, f.loader = wait, nav.LoaderID
	f.mu.Unlock()
	select {
	case <-wait:
		return f.where(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// where reads the positions that the raw click and fill use, once a page; it
// is the one call of a navigation that tells final address and title.
func (f *floor) where(ctx context.Context) error {
	var out struct {
		Result struct {
			Value struct {
				B point `json:"b"`
				N point `json:"n"`
			} `json:"value"`
		} `json:"result"`
	}
	err := f.page.Call(ctx, "Runtime.evaluate", map[string]any{"returnByValue": true, "expression": `(()=>{
		const at=e=>{if(!e)return{x:0,y:0};const r=e.getBoundingClientRect();return{x:r.x+r.width/2,y:r.y+r.height/2}};
		return{url:location.href,title:document.title,b:at(document.querySelector('main > button')),n:at(document.getElementById('name'))}})()`}, &out)
	f.button, f.field = out.Result.Value.B, out.Result.Value.N
	return err
}

// plainWalk is a walk as one would write it by hand: of each element it reads
// whether it is rendered, its role, its name (label, alternative text, title, or
// its content where the role is named by it), its states, its value or address,
// and its text, by the calls that are the fastest for it: one style object, one
// pass for all labels. It knows nothing of shadow trees that are closed, owned
// elements, references, generated text, modal dialogs, layout tables, frames,
// numbers of elements, or what only a pointer can act on.
const plainWalk = `(()=>{
	const roles={a:'link',button:'button',h1:'heading',h2:'heading',h3:'heading',h4:'heading',h5:'heading',h6:'heading',
		input:'textbox',textarea:'textbox',select:'combobox',ul:'list',ol:'list',li:'listitem',img:'img',p:'paragraph',
		nav:'navigation',main:'main',table:'table',tr:'row',td:'cell',th:'columnheader',iframe:'iframe'};
	const byContent=new Set(['link','button','heading','cell','columnheader','option','tab','menuitem']);
	const labels=new Map();
	for(const l of document.querySelectorAll('label'))if(l.control)labels.set(l.control,l.textContent.trim());
	const out=[];
	const walk=(n,d)=>{for(let c=n.firstChild;c;c=c.nextSibling){
		if(c.nodeType===3){const t=c.data.trim();if(t)out.push(' '.repeat(d)+'- text: '+t);continue}
		if(c.nodeType!==1)continue;
		const tag=c.localName;
		if(tag==='script'||tag==='style'||c.getAttribute('aria-hidden')==='true')continue;
		const s=getComputedStyle(c);
		if(s.display==='none'||s.visibility!=='visible')continue;
		const role=c.getAttribute('role')||(tag==='input'&&(c.type==='checkbox'||c.type==='radio')?c.type:roles[tag])||'generic';
		const name=c.getAttribute('aria-label')||c.getAttribute('alt')||labels.get(c)||
			(byContent.has(role)?c.textContent.trim():'')||c.getAttribute('title')||'';
		let line=' '.repeat(d)+'- '+role+' "'+name+'"';
		if(c.disabled)line+=' [disabled]';
		if(c.checked)line+=' [checked]';
		const x=c.getAttribute('aria-expanded');
		if(x)line+=' [expanded='+x+']';
		if(role==='heading')line+=' [level='+tag[1]+']';
		if(role==='textbox'&&c.value)line+=': '+c.value;
		out.push(line);
		if(role==='link')out.push(' '.repeat(d+1)+'- /url: '+c.href);
		walk(c.shadowRoot||c,d+1)}};
	walk(document.body,0);return out.join('\n')})()`

func (f *floor) walk(ctx context.Context) error {
	return f.eval(ctx, plainWalk)
}

// walkFrames is a plain walk of the page and of each of its frames, which are
// of the same process here, in one call once all are there.
func (f *floor) walkFrames(ctx context.Context) error {
	loaded := `document.readyState==='complete'||new Promise(ok=>addEventListener('load',ok))`
	if err := f.page.Call(ctx, "Runtime.evaluate", map[string]any{"expression": loaded, "awaitPromise": true}, nil); err != nil {
		return err
	}
	return f.eval(ctx, `[`+plainWalk+`,...Array.from(frames,f=>f.eval(`+strconv.Quote(plainWalk)+`))].join('\n')`)
}

func (f *floor) click(ctx context.Context) error {
	if err := f.push(ctx); err != nil {
		return err
	}
	return f.eval(ctx, `document.getElementById('out').textContent`)
}

// fetch clicks and waits until what the page fetched then is there.
func (f *floor) fetch(ctx context.Context) error {
	if err := f.push(ctx); err != nil {
		return err
	}
	return f.page.Call(ctx, "Runtime.evaluate", map[string]any{"expression": `answer.then(()=>out.textContent)`, "awaitPromise": true, "returnByValue": true}, nil)
}

// leave clicks, waits until the next page is parsed, and reads it.
func (f *floor) leave(ctx context.Context) error {
	f.mu.Lock()
	next := make(chan struct{})
	f.loaded, f.loader = next, ""
	f.mu.Unlock()
	if err := f.push(ctx); err != nil {
		return err
	}
	select {
	case <-next:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := f.where(ctx); err != nil {
		return err
	}
	return f.walk(ctx)
}

// push clicks the button by its place.
func (f *floor) push(ctx context.Context) error {
	mouse := func(kind string, buttons, count int) cdp.Request {
		return cdp.Request{Method: "Input.dispatchMouseEvent", Params: map[string]any{
			"type": kind, "x": f.button.X, "y": f.button.Y, "button": "left", "buttons": buttons, "clickCount": count}}
	}
	calls := f.page.SendAll(mouse("mouseMoved", 0, 0), mouse("mousePressed", 1, 1), mouse("mouseReleased", 0, 1))
	return calls[2].Wait(ctx, nil)
}

func (f *floor) eval(ctx context.Context, expression string) error {
	var out struct {
		Exception *struct{ Text string } `json:"exceptionDetails"`
	}
	err := f.page.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out)
	if err == nil && out.Exception != nil {
		err = errors.New(out.Exception.Text)
	}
	return err
}

func (f *floor) fill(ctx context.Context, text string) error {
	if err := f.eval(ctx, `(e=>{e.focus();e.select()})(document.getElementById('name'))`); err != nil {
		return err
	}
	return f.page.Call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

func (f *floor) press(ctx context.Context) error {
	key := func(kind string) cdp.Request {
		p := map[string]any{"type": kind, "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65}
		if kind == "keyDown" {
			p["text"] = "a"
		}
		return cdp.Request{Method: "Input.dispatchKeyEvent", Params: p}
	}
	if err := f.eval(ctx, `document.getElementById('name').focus()`); err != nil {
		return err
	}
	return f.page.SendAll(key("keyDown"), key("keyUp"))[1].Wait(ctx, nil)
}

func (f *floor) screenshot(ctx context.Context) error {
	var out struct {
		Data []byte `json:"data"`
	}
	if err := f.page.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &out); err != nil {
		return err
	}
	if len(out.Data) == 0 {
		return fmt.Errorf("the picture is empty")
	}
	return nil
}

func (f *floor) Close() { f.browser.Close() }
