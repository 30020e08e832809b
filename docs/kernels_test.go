// Package docs_test tests the examples and the numbers in the pages of this folder.
package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestKernels runs the programs of kernels.md: each stands in a block of Go, and its output in the block that follows.
// All of them are linked into one program, because linking takes much longer than compiling or running them.
func TestKernels(t *testing.T) {
	testutil.Need(t, "go")
	text, err := os.ReadFile("kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := map[string]string{} // files that the compiler sees in the module, and where they are
	add := func(name, src string) {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, "docs", "programs", name)] = file
	}
	var want []string
	var imports, cases strings.Builder
	blocks := strings.Split(string(text), "```")
	for i := 1; i+2 < len(blocks); i += 2 {
		src, ok := strings.CutPrefix(blocks[i], "go\npackage main\n")
		if !ok {
			continue
		}
		n := len(want)
		add(fmt.Sprintf("p%d/main.go", n), fmt.Sprintf("package p%d\n", n)+strings.Replace(src, "func main()", "func Main()", 1))
		fmt.Fprintf(&imports, "import \"github.com/rayo-go/rayo/docs/programs/p%d\"\n", n)
		fmt.Fprintf(&cases, "case \"%d\":\np%[1]d.Main()\n", n)
		want = append(want, strings.TrimPrefix(blocks[i+2], "\n"))
	}
	if len(want) < 4 {
		t.Fatalf("%d programs: are the blocks found?", len(want))
	}
	add("main.go", fmt.Sprintf("package main\nimport \"os\"\n%sfunc main() {\nswitch os.Args[1] {\n%s}\n}\n", &imports, &cases))
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	replace, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "programs")
	if err := os.WriteFile(replace, list, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", replace, "-o", program, "./docs/programs")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, want := range want {
		cmd := exec.Command(program, strconv.Itoa(i))
		cmd.Dir = root
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("program %d: %v: prints\n%s\nand not\n%s", i, err, got, want)
		}
	}
}
