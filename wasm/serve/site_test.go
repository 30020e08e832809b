//go:build unix && browser

// These tests run the demo site in headless Chromium and compare its results with the native CPU.
// make test-browser runs this; RAYO_SCREENSHOTS names a folder for pictures of the pages.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/chrome"
	"github.com/rayo-go/rayo/wasm/site/compute"
)

// site is a server of the demo site, and the reference results.
type site struct {
	ctx context.Context
	url string
	b   *chrome.Browser
	cpu *device.Device
}

// newSite builds the site, with a model if one is given.
func newSite(t *testing.T, model string) *site {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	build := exec.Command("bash", "../site/build.sh", dir)
	build.Env = append(os.Environ(), "MODEL="+model)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v: %s", err, out)
	}
	server := httptest.NewServer(Handler(dir, false))
	t.Cleanup(server.Close)
	cpu, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cpu.Close() })
	return &site{ctx, server.URL, chrome.Start(t, "--host-resolver-rules=MAP rayo.test 127.0.0.1"), cpu}
}

// page opens a page of the site in a window. The given scripts run before the page's own. The test fails if the
// page requests files of other sites or reports errors.
func (s *site) page(t *testing.T, base, name string, before ...string) *chrome.Page {
	t.Helper()
	p := s.b.Page(s.ctx, t)
	p.Look(1100, 900, false)
	for _, script := range before {
		p.Before(script)
	}
	p.Open(base + "/" + name)
	t.Cleanup(func() {
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("the page reported %q", e)
		}
		for _, u := range p.Requests() {
			if !strings.HasPrefix(u, base+"/") {
				t.Errorf("the page has asked for %s", u)
			}
		}
	})
	return p
}

// open opens the demos and waits until they have drawn.
func (s *site) open(t *testing.T, query string, before ...string) *chrome.Page {
	t.Helper()
	p := s.page(t, s.url, query, before...)
	p.Wait(`document.body.dataset.state === "drawn"`)
	return p
}

// pixels returns the pixels of a canvas.
func pixels(t *testing.T, p *chrome.Page, id string) (rgba []byte, width, height int) {
	t.Helper()
	var r struct {
		Data          string
		Width, Height int
	}
	p.Eval(fmt.Sprintf(`(() => {
		const c = document.getElementById(%q), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let s = "";
		for (let i = 0; i < d.length; i += 8192) s += String.fromCharCode(...d.subarray(i, i + 8192));
		return { Data: btoa(s), Width: c.width, Height: c.height };
	})()`, id), &r)
	rgba, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil || len(rgba) != 4*r.Width*r.Height {
		t.Fatalf("%d bytes of %d×%d: %v", len(rgba), r.Width, r.Height, err)
	}
	return rgba, r.Width, r.Height
}

// filtered chooses a filter and its strength, and returns the picture.
func filtered(t *testing.T, p *chrome.Page, name string, by float64) (rgba []byte, width, height int) {
	t.Helper()
	p.Eval(fmt.Sprintf(`(() => {
		const $ = (id) => document.getElementById(id);
		$("filter-note").textContent = "";
		$("filter").value = %q;
		$("strength").value = %v;
		$("filter").dispatchEvent(new Event("change"));
	})()`, name, by), nil)
	p.Wait(`document.getElementById("filter-note").textContent !== ""`)
	return pixels(t, p, "picture")
}

// filters compares pictures of the page with those of the native CPU.
func (s *site) filters(t *testing.T, p *chrome.Page, names ...string) {
	t.Helper()
	original, w, h := filtered(t, p, "invert", 0)
	for _, name := range names {
		got, _, _ := filtered(t, p, name, 0.8)
		f, err := compute.NewFilter(s.ctx, s.cpu, name, w, h)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(original)
		if err := f.Run(s.ctx, want, 0.8); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if slices.Equal(want, original) {
			t.Errorf("%s changes nothing", name)
		}
		for i := range want {
			// Another order of additions may change the rounding of a byte.
			if d := int(got[i]) - int(want[i]); d < -1 || d > 1 {
				t.Errorf("%s: byte %d is %d, but %d on the native CPU", name, i, got[i], want[i])
				break
			}
		}
	}
}

// mandelbrot compares the picture of the set with that of the native CPU.
func (s *site) mandelbrot(t *testing.T, p *chrome.Page) {
	t.Helper()
	got, w, h := pixels(t, p, "mandelbrot")
	want := make([]byte, len(got))
	if err := compute.Mandelbrot(s.ctx, s.cpu, want, w, h, -0.6, 0, 3.2, 100); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i := 0; i < len(got); i += 4 {
		if !slices.Equal(got[i:i+4], want[i:i+4]) {
			wrong++
		}
	}
	// Devices that fuse products with additions count other steps for points near the edge of the set.
	if wrong > w*h/50 {
		t.Errorf("%d of %d points have other colours than on the native CPU", wrong, w*h)
	}
}

func TestSite(t *testing.T) {
	s := newSite(t, "")
	t.Run("cpu", func(t *testing.T) {
		p := s.open(t, "?device=cpu")
		s.filters(t, p, compute.Filters...)
		s.mandelbrot(t, p)
		s.zoom(t, p)
		s.digits(t, p)
		p.Click("#bench")
		p.Wait(`document.getElementById("bench-note").textContent.startsWith("Against plain Go")`)
		accessible(t, p, "skip", "chat", "device", "filter", "strength", "photo", "webcam", "mandelbrot", "zoom-in", "sample", "bench")
		s.looks(t, p, "")
	})
	t.Run("webgpu", func(t *testing.T) {
		p := s.open(t, "?device=webgpu:software")
		p.Wait(`document.getElementById("path").textContent.startsWith("WebGPU")`)
		s.filters(t, p, "edges", "saturation")
		s.mandelbrot(t, p)
		s.digits(t, p)
		// Open another device in the same page.
		p.Eval(`(() => { const d = document.getElementById("device"); d.value = "cpu"; d.dispatchEvent(new Event("change")); })()`, nil)
		p.Wait(`document.getElementById("path").textContent.startsWith("CPU") && document.body.dataset.state === "drawn"`)
		s.filters(t, p, "blur")
	})
	t.Run("no model", func(t *testing.T) {
		p := s.page(t, s.url, "chat.html")
		p.Wait(`document.body.dataset.state === "missing" && document.getElementById("missing").textContent.includes("make site MODEL=")`)
		shoot(t, p, "chat-no-model")
	})
	// If navigator.gpu is missing or the adapter is software, the page uses the CPU and says why.
	for name, before := range map[string][]string{"no WebGPU": {`Object.defineProperty(navigator, "gpu", { value: undefined })`}, "software only": nil} {
		t.Run(name, func(t *testing.T) {
			p := s.open(t, "", before...)
			p.Wait(`document.getElementById("path").textContent.startsWith("CPU")`)
			p.Wait(`document.getElementById("why").textContent.startsWith("Not WebGPU: ")`)
			s.filters(t, p, "blur")
			shoot(t, p, strings.ReplaceAll(name, " ", "-"))
		})
	}
}

// zoom uses the keyboard and the mouse on the Mandelbrot set.
func (s *site) zoom(t *testing.T, p *chrome.Page) {
	t.Helper()
	p.Eval(`document.getElementById("mandelbrot").focus()`, nil)
	p.Key("+")
	p.Wait(`document.getElementById("mandelbrot-note").textContent.startsWith("Enlarged 2 ×")`)
	p.Key("ArrowLeft")
	p.Click("#mandelbrot")
	p.Wait(`document.getElementById("mandelbrot-note").textContent.startsWith("Enlarged 4 ×")`)
	p.Key("0")
	p.Wait(`document.getElementById("mandelbrot-note").textContent.startsWith("Enlarged 1 ×")`)
}

// digits draws digits with the mouse, and checks the page's answers.
func (s *site) digits(t *testing.T, p *chrome.Page) {
	t.Helper()
	p.Click("#sample")
	p.Wait(`/^A \d: read as \d/.test(document.getElementById("digits-note").textContent)`)
	p.Click("#clear")
	x, y, w, h := p.Place("#drawing")
	at := func(u, v float64) [2]float64 { return [2]float64{x + u*w, y + v*h} }
	p.Drag(at(0.3, 0.2), at(0.5, 0.2), at(0.7, 0.2), at(0.6, 0.5), at(0.45, 0.8)) // a seven
	p.Wait(`document.getElementById("digits-note").textContent.startsWith("Your drawing: read as ")`)
	rgba, width, height := pixels(t, p, "drawing")
	ink := make([]byte, width*height)
	for i := range ink {
		ink[i] = 255 - rgba[4*i]
	}
	reduced, err := compute.Reduce(ink, width, height)
	if err != nil {
		t.Fatal(err)
	}
	d, err := compute.NewDigits(s.ctx, s.cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	chances, err := d.Read(s.ctx, reduced)
	if err != nil {
		t.Fatal(err)
	}
	best := slices.Index(chances, slices.Max(chances))
	p.Wait(fmt.Sprintf(`document.getElementById("digits-note").textContent.startsWith("Your drawing: read as %d,")`, best))
	if best != 7 {
		t.Errorf("a drawn 7 is read as %d: %v", best, chances)
	}
}

// accessible checks that every interactive element has a name, and that the keyboard reaches
// the elements with the given ids.
func accessible(t *testing.T, p *chrome.Page, ids ...string) {
	t.Helper()
	var nameless []string
	p.Eval(`[...document.querySelectorAll("button, select, input, textarea, progress, canvas, section")].filter((e) => {
		const by = e.getAttribute("aria-labelledby");
		const name = (by && document.getElementById(by)?.textContent) || e.getAttribute("aria-label") || e.labels?.[0]?.textContent || (e.tagName === "BUTTON" && e.textContent);
		return !name;
	}).map((e) => e.outerHTML.slice(0, 80))`, &nameless)
	if len(nameless) > 0 {
		t.Errorf("elements without a name: %q", nameless)
	}
	p.Eval(`document.activeElement.blur(); scrollTo(0, 0)`, nil)
	seen := map[string]bool{}
	for range 25 {
		p.Key("Tab")
		var id string
		p.Eval(`document.activeElement.id || document.activeElement.className`, &id)
		seen[id] = true
	}
	for _, id := range ids {
		if !seen[id] {
			t.Errorf("Tab does not reach %s, only %v", id, seen)
		}
	}
}

// looks takes screenshots, whose names begin with prefix: wide and narrow, light and dark.
func (s *site) looks(t *testing.T, p *chrome.Page, prefix string) {
	t.Helper()
	for _, c := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"light", 1100, 900, false}, {"dark", 1100, 900, true}, {"phone", 360, 740, false}, {"phone-dark", 360, 740, true}} {
		p.Look(c.width, c.height, c.dark)
		var over int
		p.Eval(`document.documentElement.scrollWidth - innerWidth`, &over)
		if over > 0 {
			t.Errorf("%s: the page is %d pixels wider than the window", c.name, over)
		}
		img := shoot(t, p, prefix+c.name)
		// The background shows whether the page follows the colour scheme.
		r, _, _, _ := img.At(2, 2).RGBA()
		if (r < 0x8000) != c.dark {
			t.Errorf("%s: the background is %#x", c.name, r)
		}
	}
}

// shoot takes a screenshot and writes it to the folder that RAYO_SCREENSHOTS names.
func shoot(t *testing.T, p *chrome.Page, name string) image.Image {
	t.Helper()
	shot := p.Screenshot()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("RAYO_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o666); err != nil {
			t.Error(err)
		}
	}
	return img
}
