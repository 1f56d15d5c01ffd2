package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins/internal/bench/chromium"
)

// vnc is the way of noVNC: a headful Chromium on Xvnc, a relay from WebSocket to
// its socket, and the client of noVNC in the viewer's page.
type vnc struct {
	server  *exec.Cmd
	socket  string
	dir     string
	browser *chromium.Browser
	bytes   atomic.Int64 // that went to viewers
}

func startVNC(ctx context.Context, o options, s *site) (_ *vnc, err error) {
	v := &vnc{}
	if v.dir, err = os.MkdirTemp("", "reins-bench-vnc-"); err != nil {
		return nil, err
	}
	v.socket = filepath.Join(v.dir, "rfb")
	display := ":" + strconv.Itoa(90+os.Getpid()%900)
	v.server = exec.Command(o.xvnc, display, "-geometry", "1280x800", "-depth", "24", "-rfbport", "-1", "-rfbunixpath", v.socket,
		"-SecurityTypes", "None", "-nolisten", "tcp", "-AlwaysShared", "-FrameRate", "60")
	v.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := v.server.Start(); err != nil {
		os.RemoveAll(v.dir)
		return nil, err
	}
	for { // Xvnc does not say when it listens
		if c, err := net.Dial("unix", v.socket); err == nil {
			c.Close()
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			v.Close()
			return nil, ctx.Err()
		}
	}
	v.browser, err = chromium.Start(ctx, chromium.Options{Program: o.chromium,
		Arguments: []string{"--kiosk", "--window-position=0,0"}, Env: []string{"DISPLAY=" + display}})
	if err != nil {
		v.Close()
		return nil, fmt.Errorf("chromium on Xvnc: %w", err)
	}
	s.mux.HandleFunc("GET /vnc", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, vncPage)
	})
	s.mux.Handle("GET /novnc/", http.StripPrefix("/novnc/", http.FileServer(http.Dir(o.novnc))))
	s.mux.HandleFunc("GET /rfb", v.relay)
	return v, nil
}

const vncPage = `<!doctype html><html lang="en"><title>noVNC</title><style>html,body,#screen{margin:0;width:1280px;height:800px}</style>
<div id="screen"></div><script type="module">
import RFB from '/novnc/core/rfb.js';
const rfb = new RFB(document.getElementById('screen'), 'ws://' + location.host + '/rfb');
rfb.qualityLevel = 7;
rfb.addEventListener('connect', () => { document.title = 'connected'; });
</script>`

// relay carries bytes both ways and counts those to the viewer.
func (v *vnc) relay(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"binary"}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer ws.CloseNow() //nolint:errcheck // it is over
	conn, err := net.Dial("unix", v.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	near := websocket.NetConn(r.Context(), ws, websocket.MessageBinary)
	go func() {
		defer conn.Close()
		io.Copy(conn, near) //nolint:errcheck // ends with either side
	}()
	io.Copy(counting{near, &v.bytes}, conn) //nolint:errcheck // ends with either side
}

// counting counts what is written.
type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func (v *vnc) name() string { return "noVNC" }

func (v *vnc) page(s *site) string { return "http://" + s.addr + "/vnc" }

func (v *vnc) canvas() string { return `document.querySelector('#screen canvas')` }

func (v *vnc) show(ctx context.Context, url string) error {
	return v.browser.Page.Call(ctx, "Page.navigate", map[string]any{"url": url}, nil)
}

func (v *vnc) sent() int64 { return v.bytes.Load() }

// cpu is what server and browser together used.
func (v *vnc) cpu() (own, browser time.Duration) {
	return chromium.CPU(v.server.Process.Pid), chromium.CPU(v.browser.Pid())
}

func (v *vnc) Close() {
	if v.browser != nil {
		v.browser.Close()
	}
	syscall.Kill(-v.server.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone
	v.server.Wait()                                      //nolint:errcheck // killed
	os.RemoveAll(v.dir)
}
