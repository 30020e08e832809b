// Package docs_test tests the examples and the numbers in the pages of this folder.
package docs_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestKernels runs the programs of kernels.md: each stands in a block of Go, and
// what it prints in the block that follows. A short run takes some of them: linking each takes long.
func TestKernels(t *testing.T) {
	testutil.Need(t, "go")
	text, err := os.ReadFile("kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	programs, least := 0, rand.IntN(4)
	for i := 1; i+2 < len(blocks); i += 2 {
		src, ok := strings.CutPrefix(blocks[i], "go\n")
		if !ok || !strings.HasPrefix(src, "package main") {
			continue
		}
		if programs++; testing.Short() && programs%4 != least {
			continue
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "run", file)
		cmd.Dir = ".."
		got, err := cmd.CombinedOutput()
		if want := strings.TrimPrefix(blocks[i+2], "\n"); err != nil || string(got) != want {
			t.Errorf("program %d: %v: prints\n%s\nand not\n%s", programs, err, got, want)
		}
	}
	if programs < 4 {
		t.Errorf("%d programs: are the blocks found?", programs)
	}
}
