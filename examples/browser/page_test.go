//go:build unix && browser

// The example in headless Chromium, as serve.go serves it. make test-browser runs this.
package browser

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/chrome"
)

// serve starts serve.go, and returns the address of the page.
func serve(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "run", "serve.go", "-addr", "127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group of this program alone
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := strings.Index(lines.Text(), "http://"); at >= 0 {
			return lines.Text()[at:]
		}
	}
	t.Fatalf("serve.go said no address: %s", complaints.String())
	return ""
}

func TestPage(t *testing.T) {
	url := serve(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p := chrome.Start(t).Page(ctx, t)
	p.Look(700, 900, false)
	p.Open(url + "?device=cpu")
	p.Wait(`document.getElementById("status").textContent.includes("256000 pixels")`)
	p.Wait(`document.getElementById("device").textContent.startsWith("cpu:0")`)
	sum := `(() => { const c = document.getElementById("picture"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let s = 0; for (let i = 0; i < d.length; i += 4) s += d[i] + d[i + 1] + d[i + 2]; return s / d.length; })()`
	var before, brighter, grey float64
	p.Eval(sum, &before)
	set := func(id, value string) {
		t.Helper()
		p.Eval(`(() => { document.getElementById("status").textContent = ""; const e = document.getElementById("`+id+`"); e.value = `+value+`; e.dispatchEvent(new Event("input")); })()`, nil)
		p.Wait(`document.getElementById("status").textContent.includes("256000 pixels")`)
	}
	set("exposure", "0.2")
	if p.Eval(sum, &brighter); brighter <= before {
		t.Errorf("more exposure has made the picture no brighter: %v, then %v", before, brighter)
	}
	set("saturation", "0")
	p.Eval(`(() => { const d = document.getElementById("picture").getContext("2d").getImageData(0, 0, 640, 400).data; let n = 0; for (let i = 0; i < d.length; i += 4) n = Math.max(n, Math.abs(d[i] - d[i + 1]), Math.abs(d[i] - d[i + 2])); return n; })()`, &grey)
	if grey > 1 {
		t.Errorf("without saturation colours differ by %v", grey)
	}
	p.Click("#product")
	p.Wait(`/GFLOP\/s/.test(document.getElementById("speed").textContent)`)
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page reported %q", e)
	}
}
