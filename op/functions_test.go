package op

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// TestFunctionsAreUsed checks that what makes nodes of composite codes says so to the linker: a page would otherwise
// not have their expansions.
func TestFunctionsAreUsed(t *testing.T) {
	codes := map[string]bool{}
	for c := ir.None; c < 255; c++ {
		if c.Composite() {
			codes[c.String()] = true
		}
	}
	used := regexp.MustCompile(`ir\.([A-Z]\w*)`)
	for _, file := range []string{"expr.go", "../kernel/values_gen.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, f := range strings.Split(string(text), "\nfunc ")[1:] {
			f, _, _ = strings.Cut(f, "\n}\n")
			for _, m := range used.FindAllStringSubmatch(f, -1) {
				name := strings.ToLower(m[1])
				if !codes[name] {
					continue
				}
				found[name] = true
				if !strings.Contains(f, "ir.UseFunctions()") && !strings.Contains(f, "x.function(") {
					t.Errorf("%s: this function does not call ir.UseFunctions: %s", file, f)
				}
			}
		}
		if len(found) < 16 {
			t.Errorf("%s: found only %v", file, found)
		}
	}
}
