//go:build !js

package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// snippets are the pages whose blocks of Go are parts of functions, and what a
// reader has to think of before the first line. A page is read from above to below:
// a block may use what one before it has declared.
var snippets = []struct {
	page, before string
	blocks       int
	excerpts     []string // blocks that begin so are parts of rayo itself
}{
	{"../README.md", "var ctx context.Context; var dst, x, w, bias []float32", 1, nil},
	{"ARCHITECTURE.md", "var ctx context.Context; var dev *device.Device; var x []float32; var w, bias *device.Buffer", 2, []string{"Softsign = elementwise("}},
	{"arrays.md", "var ctx context.Context; var dev *device.Device; var x, y []float32", 1, nil},
	{"ptx.md", "var ctx context.Context; var x, y []float32; const n, blocks = 200, 4", 3, nil},
	{"gguf.md", "var ctx context.Context; var dev *device.Device", 5, nil},
	{"llm.md", "var ctx context.Context; var prompt []int32", 5, nil},
	{"backends/cuda.md", "", 1, nil},
	{"backends/webgpu.md", "var ctx context.Context; var dev *device.Device; var x, y []float32", 2, nil},
}

// imports are those that snippets need, by the name of the package.
var imports = map[string]string{
	"context": "context", "fmt": "fmt", "device": "device", "batch": "batch", "kernel": "kernel", "wgsl": "wgsl", "ptx": "ptx", "gguf": "gguf", "block": "gguf/block", "llm": "llm", "assistant": "llm/assistant", "safetensors": "safetensors", "op": "op", "emu": "ptx/emu", "cuda": "cuda",
}

// function finds what has to be a literal inside another function.
var function = regexp.MustCompile(`(?m)^func (\w+)\(`)

// TestSnippets compiles the blocks of Go that are no whole programs. That nothing
// is made of a result, and that an error is not looked at, is no mistake there.
func TestSnippets(t *testing.T) {
	testutil.Need(t, "go")
	var files []string
	dir := t.TempDir()
	for i, s := range snippets {
		text, err := os.ReadFile(s.page)
		if err != nil {
			t.Fatal(err)
		}
		found, open := 0, 0
		var code strings.Builder
		for _, block := range strings.Split(string(text), "```go\n")[1:] {
			block, _, ok := strings.Cut(block, "```")
			if !ok {
				t.Fatalf("%s: a block without an end", s.page)
			}
			found++
			excerpt := false
			for _, e := range s.excerpts {
				excerpt = excerpt || strings.HasPrefix(block, e)
			}
			if !excerpt {
				block = function.ReplaceAllString(block, "$1 := func(")
				fmt.Fprintf(&code, "{\n%s", block)
				open++
			}
		}
		if found != s.blocks {
			t.Errorf("%s has %d blocks of Go, not %d", s.page, found, s.blocks)
		}
		var b strings.Builder
		fmt.Fprint(&b, "package snippets\n\n")
		for name, path := range imports {
			if regexp.MustCompile(`\b` + name + `\.`).MatchString(s.before + code.String()) {
				if path != "context" && path != "fmt" {
					path = "github.com/rayo-go/rayo/" + path
				}
				fmt.Fprintf(&b, "import %q\n", path)
			}
		}
		fmt.Fprintf(&b, "\nfunc _() error {\n\t%s\n%s%sreturn nil\n}\n", s.before, &code, strings.Repeat("}\n", open))
		file := filepath.Join(dir, fmt.Sprintf("page%d.go", i))
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	cmd := exec.Command("go", append([]string{"build", "-gcflags=-e", "-o", os.DevNull}, files...)...)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	for _, l := range strings.Split(string(out), "\n") {
		if l != "" && !strings.HasPrefix(l, "# ") && !strings.Contains(l, "declared and not used") {
			t.Error(l)
		}
	}
	if err != nil && !strings.Contains(string(out), "declared and not used") {
		t.Errorf("%v\n%s", err, out)
	}
}
