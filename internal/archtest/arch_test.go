// Package archtest tests the layers of the packages: a package imports only packages of lower layers.
package archtest

import (
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

const module = "github.com/rayo-go/rayo"

// order lists groups of packages from the highest layer to the lowest. A package may import packages
// of its own group and of every group on a line below; groups on one line must not import each other,
// unless beside allows it.
var order = [][]string{
	{"cmd", "examples", "internal/gen", "docs", "internal/testutil", "internal/tinymodel", "internal/chrome", "wasm/gpu", "wasm/site", "wasm/serve"},
	{"llm/serve"},
	{"llm", "internal/devicetest", "internal/webgpu/hosttest", "internal/opcase"},
	{"internal/onnxtest", "internal/grouptest"},
	{"batch", "imgconv", "wasm/bridge"},
	{"device"},
	{"internal/devicehook"},
	{"internal/engine"},
	{"internal/graph", "internal/driver"},
	{"internal/ptxkernels"},
	{"internal/ptxgen"},
	{"simd", "wasm", "cuda", "ptx", "wgsl", "internal/webgpu", "internal/memory", "internal/workers", "internal/roofline", "internal/measured"},
	{"internal/dl", "internal/measured", "internal/wasm"},
	{"internal/portable"},
	{"kernel"},
	{"internal/interp", "internal/optest"},
	{"op", "gguf/convert"},
	{"internal/irhook"},
	{"internal/ir", "gguf", "safetensors"},
	{"gguf/block", "internal/blockdecode", "internal/errtree", "internal/genfile", "internal/jscall", "internal/jsmemory"},
	{"internal/ascii", "internal/env", "internal/fmt"},
	{"internal/incomparable"},
}

// beside lists the imports that are allowed although they are not in a lower layer.
var beside = map[string][]string{
	"internal/webgpu/hosttest": {"internal/testutil"},
	"examples":                 {"internal/testutil", "internal/chrome"},
	"internal/tinymodel":       {"internal/testutil"},
	"wasm/site":                {"examples"},
	"wasm/serve":               {"wasm/site", "internal/chrome"},
	"internal/driver":          {"internal/graph"},
	"cuda":                     {"internal/workers"},
	"internal/webgpu":          {"wgsl", "internal/workers"},
	"simd":                     {"internal/memory", "internal/workers"},
	"internal/roofline":        {"simd", "internal/memory"},
}

// outside lists the modules that each group may import in addition to the standard library and
// golang.org/x/sys.
var outside = map[string][]string{
	"cmd":               {"github.com/alecthomas/kong", "github.com/schollz/progressbar/v3", "golang.org/x/term"},
	"simd":              {"github.com/klauspost/cpuid/v2"},
	"internal/driver":   {"github.com/klauspost/cpuid/v2"},
	"internal/dl":       {"github.com/go-webgpu/goffi"},
	"internal/webgpu":   {"github.com/oliverbestmann/webgpu", "github.com/gogpu/naga", "github.com/gogpu/wgpu"},
	"internal/memory":   {"github.com/klauspost/cpuid/v2"},
	"llm/serve":         {"github.com/prometheus/client_golang"},
	"op":                {"github.com/x448/float16"},
	"llm":               {"golang.org/x/text"},
	"internal/wasm":     {"github.com/tetratelabs/wazero"},
	"internal/testutil": {"github.com/klauspost/cpuid/v2"},
	"internal/chrome":   {"github.com/chromedp"},
}

// notInBrowsers lists packages that device must not import under GOOS=js, not even indirectly, because
// every page that uses rayo would have to load them.
var notInBrowsers = []string{"net/http", "encoding/json", "text/template", "regexp", "os/exec"}

// notInSmallest lists more packages, which no page without batches may import. Use internal/fmt and internal/env.
var notInSmallest = []string{"fmt", "os"}

// room returns the longest entry of order that contains the package, and its line.
func room(pkg string) (name string, line int) {
	line = -1
	for i, rooms := range order {
		for _, r := range rooms {
			if (pkg == r || strings.HasPrefix(pkg, r+"/")) && len(r) > len(name) {
				name, line = r, i
			}
		}
	}
	return name, line
}

// list runs go list in the root of the module and returns one line for each package.
func list(t *testing.T, env []string, args ...string) [][]string {
	t.Helper()
	testutil.Need(t, "go")
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	var lines [][]string
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		lines = append(lines, strings.Fields(l))
	}
	return lines
}

func TestImportsPointDown(t *testing.T) {
	for _, l := range list(t, nil, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		pkg := strings.TrimPrefix(l[0], module+"/")
		if pkg == module || pkg == "internal/archtest" {
			continue
		}
		from, line := room(pkg)
		if from == "" {
			t.Errorf("%s stands in no room: add it to order", pkg)
			continue
		}
		for _, imp := range l[1:] {
			if !strings.Contains(strings.Split(imp, "/")[0], ".") {
				continue // the standard library
			}
			imp, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				if !slices.ContainsFunc(append(outside[from], "golang.org/x/sys"), func(m string) bool {
					return imp == m || strings.HasPrefix(imp, m+"/")
				}) {
					t.Errorf("%s imports %s, which %s may not", pkg, imp, from)
				}
				continue
			}
			to, toLine := room(imp)
			if from == to || toLine > line || slices.Contains(beside[from], to) {
				continue
			}
			t.Errorf("%s imports %s: imports point down", pkg, imp)
		}
	}
}

func TestBrowserImports(t *testing.T) {
	env := []string{"GOOS=js", "GOARCH=wasm"}
	for _, l := range list(t, env, "-deps", "-f", "{{.ImportPath}}", "./device", "./batch") {
		if slices.Contains(notInBrowsers, l[0]) {
			t.Errorf("device brings %s, which every page would have to load", l[0])
		}
	}
	for _, tags := range []string{"", "nowebgpu"} {
		for _, l := range list(t, env, "-deps", "-tags", tags, "-f", "{{.ImportPath}}", "./device") {
			if slices.Contains(notInSmallest, l[0]) {
				t.Errorf("device brings %s with the tags %q, which every page would have to load", l[0], tags)
			}
		}
	}
}

// TestNoNetwork requires that only servers, and the command that has one, import net/http, which
// brings all of TLS. Other packages need no network, and builds would take a fifth longer.
func TestNoNetwork(t *testing.T) {
	var quiet []string
	for _, l := range list(t, nil, "./...") {
		if pkg := strings.TrimPrefix(l[0], module+"/"); pkg != "llm/serve" && pkg != "cmd/rayo" && pkg != "wasm/serve" {
			quiet = append(quiet, l[0])
		}
	}
	for _, l := range list(t, nil, append([]string{"-deps", "-f", "{{.ImportPath}}"}, quiet...)...) {
		if l[0] == "net/http" {
			t.Error("a package brings net/http; go list -deps -f '{{.ImportPath}} {{.Imports}}' ./... says which")
		}
	}
}

// TestOneLibrary requires that a build links the WebGPU library of its own system only, and none
// without cgo or with the tag nowebgpu.
func TestOneLibrary(t *testing.T) {
	const libraries = "github.com/oliverbestmann/webgpu/libs-"
	for _, c := range []struct{ os, cgo, tags, want string }{
		{"linux", "1", "", "linux"},
		{"darwin", "1", "", "darwin"},
		{"windows", "1", "", "windows"},
		{"linux", "0", "", ""},
		{"linux", "1", "nowebgpu", ""},
		{"freebsd", "1", "", ""},
	} {
		env := []string{"GOOS=" + c.os, "GOARCH=amd64", "CGO_ENABLED=" + c.cgo}
		var got []string
		for _, l := range list(t, env, "-deps", "-tags", c.tags, "-f", "{{.ImportPath}}", "./device") {
			if name, found := strings.CutPrefix(l[0], libraries); found {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v brings %q", c, got)
		}
	}
}

// TestSkips requires that tests are skipped only by internal/testutil, which checks the requirement by
// a name that RAYO_REQUIRE accepts.
func TestSkips(t *testing.T) {
	skip := regexp.MustCompile(`\.Skip(f|Now)?\(`)
	files := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || path == "internal/testutil/need.go" || path == "internal/archtest/arch_test.go" {
			return nil
		}
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if skip.MatchString(line) {
				t.Errorf("%s:%d:%s", path, i+1, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d files of Go were found", files)
	}
}
