//go:build unix

package chrome

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// flags of Chromium: without a screen, sandbox, profile and network, and with WebGPU by
// software, also where there is a GPU, so that every machine computes the same.
var flags = []string{
	"--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
	"--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--remote-debugging-pipe",
}

// Browser is a running Chromium.
type Browser struct {
	to *os.File

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	pages   map[string]*Page
	err     error // why it has ended
}

type answer struct {
	result json.RawMessage
	err    error
}

// Start starts Chromium, which ends with the test. More flags may be given.
func Start(t *testing.T, more ...string) *Browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("chromium is not on the path (Debian package chromium)")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(append(flags, more...), "--user-data-dir="+t.TempDir(), "about:blank")...)
	cmd.ExtraFiles = []*os.File{theirs, answers}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	answers.Close()
	b := &Browser{to: to, waiting: map[int]chan answer{}, pages: map[string]*Page{}}
	ended := make(chan struct{})
	go func() {
		b.read(from)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group of this browser alone
		_ = cmd.Wait()
		<-ended
		to.Close()
		from.Close()
	})
	return b
}

// message is what comes over the pipe: an answer, or an event of a page.
type message struct {
	ID        int             `json:"id"`
	Result    json.RawMessage `json:"result"`
	Error     *struct{ Message string }
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	SessionID string          `json:"sessionId"`
}

// read takes messages until the browser ends.
func (b *Browser) read(from *os.File) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.err = errors.New("chromium has ended")
			for id, c := range b.waiting {
				c <- answer{err: b.err}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; c != nil {
			a := answer{result: m.Result}
			if m.Error != nil {
				a.err = errors.New(m.Error.Message)
			}
			c <- a
			delete(b.waiting, m.ID)
		} else if p := b.pages[m.SessionID]; p != nil {
			p.event(m.Method, m.Params)
		}
		b.mu.Unlock()
	}
}

// call calls a method of the protocol.
func (b *Browser) call(ctx context.Context, session, method string, params map[string]any, result any) error {
	c := make(chan answer, 1)
	b.mu.Lock()
	if b.err != nil {
		b.mu.Unlock()
		return b.err
	}
	b.last++
	id := b.last
	m := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	text, err := json.Marshal(m)
	if err == nil {
		b.waiting[id] = c
		_, err = b.to.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-c:
		if a.err != nil {
			return fmt.Errorf("%s: %w", method, a.err)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.result, result)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// Page is a page of a browser. Its methods fail the test where they cannot do what they are for.
type Page struct {
	t       *testing.T
	b       *Browser
	ctx     context.Context
	session string

	requests []string // what the page has asked for, guarded by b.mu
	messages []string // errors of the console and uncaught ones, guarded by b.mu
}

// Page opens a page, in which ctx ends all waiting.
func (b *Browser) Page(ctx context.Context, t *testing.T) *Page {
	t.Helper()
	var target struct{ TargetID string }
	p := &Page{t: t, b: b, ctx: ctx}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		t.Fatal(err)
	}
	var session struct{ SessionID string }
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		t.Fatal(err)
	}
	p.session = session.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.do(domain+".enable", nil, nil)
	}
	return p
}

func (p *Page) do(method string, params map[string]any, result any) {
	p.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	if err := p.b.call(p.ctx, p.session, method, params, result); err != nil {
		p.t.Fatal(err)
	}
}

// event notes requests and errors; b.mu is held.
func (p *Page) event(method string, params json.RawMessage) {
	var e struct {
		Request          struct{ URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry struct{ Level, Text string }
	}
	if json.Unmarshal(params, &e) != nil {
		return
	}
	switch method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.URL)
	case "Runtime.exceptionThrown":
		p.messages = append(p.messages, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if e.Entry.Level == "error" {
			p.messages = append(p.messages, e.Entry.Text)
		}
	}
}

// Requests returns the addresses that the page has asked for, but for those of data and
// of objects of its own.
func (p *Page) Requests() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	var out []string
	for _, u := range p.requests {
		if !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
			out = append(out, u)
		}
	}
	return out
}

// Errors returns what the page has reported: uncaught errors, violations of its policy,
// files that are missing.
func (p *Page) Errors() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return append([]string(nil), p.messages...)
}

// Before has a script run in the page before its own.
func (p *Page) Before(script string) {
	p.t.Helper()
	p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// Look sets the size of the window in CSS pixels, and whether the system is dark.
func (p *Page) Look(width, height int, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Open goes to an address.
func (p *Page) Open(url string) {
	p.t.Helper()
	var r struct{ ErrorText string }
	if p.do("Page.navigate", map[string]any{"url": url}, &r); r.ErrorText != "" {
		p.t.Fatalf("%s: %s", url, r.ErrorText)
	}
}

// Eval stores the value of an expression, or of the promise that it gives, in v.
func (p *Page) Eval(expression string, v any) {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if e := r.ExceptionDetails; e != nil {
		p.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(r.Result.Value, v); err != nil {
		p.t.Fatalf("%s is %s: %v", expression, r.Result.Value, err)
	}
}

// Wait waits until an expression is true.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	// The page may not be there yet, or be about to go.
	for {
		var r struct{ Result struct{ Value any } }
		err := p.b.call(p.ctx, p.session, "Runtime.evaluate", map[string]any{
			"expression":   "new Promise((r) => { const f = () => { let v = false; try { v = Boolean(" + expression + "); } catch {} if (v || Date.now() > end) r(v); else setTimeout(f, 20); }; const end = Date.now() + 2000; f(); })",
			"awaitPromise": true, "returnByValue": true,
		}, &r)
		if r.Result.Value == true {
			return
		}
		if p.ctx.Err() != nil || errors.Is(err, p.b.ended()) {
			p.t.Fatalf("%s has not become true; errors: %q", expression, p.Errors())
		}
	}
}

// ended returns why the browser has ended, or an error that nothing else is.
func (b *Browser) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		return errors.New("runs")
	}
	return b.err
}

// Drag presses the mouse at the first point, moves it over the others, and lets it go. A
// click is a drag of one point. Points are in CSS pixels of the window.
func (p *Page) Drag(points ...[2]float64) {
	p.t.Helper()
	mouse := func(kind string, at [2]float64, buttons int) {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "buttons": buttons, "clickCount": 1}, nil)
	}
	mouse("mousePressed", points[0], 1)
	for _, at := range points[1:] {
		mouse("mouseMoved", at, 1)
	}
	mouse("mouseReleased", points[len(points)-1], 0)
}

// Place scrolls an element into view and returns where its left upper corner is, and its size.
func (p *Page) Place(selector string) (x, y, width, height float64) {
	p.t.Helper()
	var r [4]float64
	p.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()`, selector), &r)
	return r[0], r[1], r[2], r[3]
}

// Click clicks in the middle of an element.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y, w, h := p.Place(selector)
	p.Drag([2]float64{x + w/2, y + h/2})
}

// Key presses a key, such as Tab, Enter, ArrowLeft, or a letter.
func (p *Page) Key(key string) {
	p.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	if key == "Enter" {
		text = "\r"
	}
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": codes[key]}, nil)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// Front brings the page to the front: others of the browser are hidden then.
func (p *Page) Front() {
	p.t.Helper()
	p.do("Page.bringToFront", nil, nil)
}

// Heap collects what the page does not use any more and returns the bytes of JavaScript
// that are left.
func (p *Page) Heap() int {
	p.t.Helper()
	var r struct{ UsedSize float64 }
	p.do("HeapProfiler.collectGarbage", nil, nil)
	p.do("Runtime.getHeapUsage", nil, &r)
	return int(r.UsedSize)
}

// Screenshot returns all of the page as a PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var r struct{ Data string }
	p.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r)
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return png
}
