// Command chromexec runs a js/wasm program in a page of headless Chromium, as go test's
// -exec takes it:
//
//	GOOS=js GOARCH=wasm go test -exec chromexec ./...
//
// It copies the program's output to its own and returns the program's exit code. The page uses
// SwiftShader for WebGPU even if the machine has a GPU, so that every machine computes the same.
// The page has no files. The program sees the environment variables that begin with RAYO_.
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed page.html
var page string

// flags of Chromium: without a screen, sandbox, profile and network, and with WebGPU by
// software.
var flags = []string{
	"--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
	"--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
}

// patience is the longest time that a program may run.
const patience = 15 * time.Minute

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: chromexec PROGRAM.wasm ARGUMENTS...")
		os.Exit(2)
	}
	code, err := run(os.Args[1], os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chromexec:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// browser returns the path of Chromium.
func browser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("chromium is not on the path (Debian package chromium)")
}

// run serves the program to a browser, and returns its exit code.
func run(program string, args []string) (int, error) {
	chromium, err := browser()
	if err != nil {
		return 0, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return 0, fmt.Errorf("go env GOROOT: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	exits := make(chan int, 1)
	server := &http.Server{Handler: handler(program, filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js"), args, exits)}
	go server.Serve(l)
	defer server.Close()

	profile, err := os.MkdirTemp("", "chromexec")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(profile)
	cmd := exec.Command(chromium, append(flags, "--user-data-dir="+profile, "http://"+l.Addr().String()+"/")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // only the process group of the browser
		<-ended
	}()
	select {
	case code := <-exits:
		return code, nil
	case err := <-ended:
		ended <- err
		return 0, fmt.Errorf("%s ended by itself: %v", chromium, err)
	case <-time.After(patience):
		return 0, fmt.Errorf("the program has not ended after %v", patience)
	}
}

// handler serves the page and its files, and receives the program's output.
func handler(program, glue string, args []string, exits chan<- int) http.Handler {
	env := map[string]string{}
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "RAYO_") {
			env[name] = value
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'")
		fmt.Fprint(w, page)
	})
	mux.HandleFunc("GET /wasm_exec.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, glue) })
	mux.HandleFunc("GET /program.wasm", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, program) })
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"argv": args, "env": env})
	})
	mux.HandleFunc("POST /out", func(_ http.ResponseWriter, r *http.Request) {
		var parts []struct {
			File int
			Text string
		}
		if err := json.NewDecoder(r.Body).Decode(&parts); err != nil {
			fmt.Fprintln(os.Stderr, "chromexec:", err)
			return
		}
		for _, p := range parts {
			to := os.Stdout
			if p.File == 2 {
				to = os.Stderr
			}
			fmt.Fprint(to, p.Text)
		}
	})
	mux.HandleFunc("POST /exit", func(_ http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.FormValue("code"))
		if err != nil {
			code = 1
		}
		select {
		case exits <- code:
		default:
		}
	})
	return mux
}
