//go:build unix && browser

package chrome

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// flags of Chromium: no screen, no sandbox, no network, and WebGPU in software even if there is a GPU,
// so that every machine computes the same.
var flags = map[string]any{
	"headless": true, "no-sandbox": true, "disable-quic": true, "disable-background-networking": true,
	"disable-component-update": true, "disable-dev-shm-usage": true, "hide-scrollbars": true,
	"enable-unsafe-webgpu": true, "use-webgpu-adapter": "swiftshader",
}

// Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Start starts Chromium, which ends with the test. More flags may be given, as "--name" or
// "--name=value".
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
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.WSURLReadTimeout(time.Minute)}
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	for _, flag := range more {
		name, value, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if ok {
			options = append(options, chromedp.Flag(name, value))
		} else {
			options = append(options, chromedp.Flag(name, true))
		}
	}
	// The allocator makes a folder for the profile, and removes it when processes of the browser have ended.
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	// The library logs errors for events of newer browsers.
	ctx, closeBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		closeBrowser()
		stop()
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return &Browser{ctx}
}

// Page is a page of a browser. Its methods fail the test if an action fails.
type Page struct {
	t     *testing.T
	ctx   context.Context // its end ends all waits
	tab   context.Context
	mu    sync.Mutex
	asked []string // addresses that the page has requested
	wrong []string // errors in the console and uncaught errors
}

// Page opens a page. All waits in it end when ctx ends.
func (b *Browser) Page(ctx context.Context, t *testing.T) *Page {
	t.Helper()
	tab, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	p := &Page{t: t, ctx: ctx, tab: tab}
	chromedp.ListenTarget(tab, p.event)
	// The first actions run in the tab's own context, whose end closes the tab.
	if err := chromedp.Run(tab, network.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	return p
}

// run performs actions. It returns early if the page's context ends.
func (p *Page) run(actions ...chromedp.Action) error {
	ctx, cancel := context.WithCancel(p.tab)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	return chromedp.Run(ctx, actions...)
}

func (p *Page) do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := p.run(actions...); err != nil {
		p.t.Fatal(err)
	}
}

// event records requests and errors.
func (p *Page) event(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			p.wrong = append(p.wrong, e.Entry.Text)
		}
	}
}

// Requests returns the addresses that the page has requested, except data and blob addresses.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, u := range p.asked {
		if !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
			out = append(out, u)
		}
	}
	return out
}

// Errors returns the messages that the page has reported: uncaught errors, violations of its policy,
// files that are missing.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.wrong...)
}

// Before adds a script that runs in the page before its own scripts.
func (p *Page) Before(script string) {
	p.t.Helper()
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// Look sets the size of the window in CSS pixels, and whether the system uses a dark theme.
func (p *Page) Look(width, height int, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// Open navigates to an address, without waiting for the page's files.
func (p *Page) Open(url string) {
	p.t.Helper()
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, failure, _, err := page.Navigate(url).Do(ctx)
		if err == nil && failure != "" {
			err = fmt.Errorf("%s: %s", url, failure)
		}
		return err
	}))
}

// evaluate stores the value of an expression in v. If the value is a promise, it stores the value of the promise.
func (p *Page) evaluate(expression string, v *json.RawMessage) error {
	return p.run(chromedp.Evaluate(expression, (*[]byte)(v), func(q *runtime.EvaluateParams) *runtime.EvaluateParams {
		return q.WithAwaitPromise(true).WithReturnByValue(true)
	}))
}

// Eval stores the value of an expression in v. If the value is a promise, it stores the value of the promise.
func (p *Page) Eval(expression string, v any) {
	p.t.Helper()
	var text json.RawMessage
	if err := p.evaluate(expression, &text); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(text, v); err != nil {
		p.t.Fatalf("%s is %s: %v", expression, text, err)
	}
}

// Wait waits until an expression is true.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	poll := "new Promise((r) => { const f = () => { let v = false; try { v = Boolean(" + expression + "); } catch {} if (v || Date.now() > end) r(v); else setTimeout(f, 20); }; const end = Date.now() + 2000; f(); })"
	for {
		// Evaluate fails while the page loads or is replaced by another: try again.
		var value json.RawMessage
		if err := p.evaluate(poll, &value); err == nil && string(value) == "true" {
			return
		}
		if p.ctx.Err() != nil || p.tab.Err() != nil {
			p.t.Fatalf("%s has not become true; errors: %q", expression, p.Errors())
		}
	}
}

// Drag presses the mouse at the first point, moves it over the others, and lets it go. A
// click is a drag of one point. Points are in CSS pixels of the window.
func (p *Page) Drag(points ...[2]float64) {
	p.t.Helper()
	mouse := func(kind input.MouseType, at [2]float64, buttons int64) {
		p.do(input.DispatchMouseEvent(kind, at[0], at[1]).WithButton(input.Left).WithButtons(buttons).WithClickCount(1))
	}
	mouse(input.MousePressed, points[0], 1)
	for _, at := range points[1:] {
		mouse(input.MouseMoved, at, 1)
	}
	mouse(input.MouseReleased, points[len(points)-1], 0)
}

// Place scrolls an element into view and returns the position of its upper left corner and its size.
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

// Key presses a key, such as Tab, Enter, Escape, ArrowLeft, or a letter, or the letters of a text.
func (p *Page) Key(key string) {
	p.t.Helper()
	if k, ok := map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "ArrowLeft": kb.ArrowLeft, "ArrowUp": kb.ArrowUp, "ArrowRight": kb.ArrowRight, "ArrowDown": kb.ArrowDown}[key]; ok {
		key = k
	}
	p.do(chromedp.KeyEvent(key))
}

// Front brings the page to the front and hides the other pages of the browser.
func (p *Page) Front() {
	p.t.Helper()
	p.do(page.BringToFront())
}

// Heap runs the garbage collector of the page and returns the size of its JavaScript heap in bytes.
func (p *Page) Heap() int {
	p.t.Helper()
	var used float64
	p.do(heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
		return err
	}))
	return int(used)
}

// Screenshot returns all of the page as a PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var png []byte
	p.do(chromedp.FullScreenshot(&png, 100))
	return png
}
