package wgsl

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// A compiler validates many texts in few processes.
type validator struct {
	need string
	// args returns the arguments of a process for the files; one takes all of
	// them, or each on its own.
	args func(files []string) []string
	each bool
}

var validators = map[Consumer]validator{
	Naga: {need: "naga", args: func(files []string) []string { return append([]string{"--bulk-validate"}, files...) }},
	Tint: {need: "tint", each: true, args: func(files []string) []string {
		return []string{"--format", "wgsl", "-o", os.DevNull, files[0]}
	}},
}

// validate has the compiler that a text was printed for judge it: a name for
// each text, and the text.
func validate(t *testing.T, c Consumer, texts map[string]string) {
	t.Helper()
	v := validators[c]
	testutil.Need(t, v.need)
	for name, message := range judge(t, c, texts) {
		t.Errorf("%v rejects %s: %s\n%s", c, name, message, withNumbers(texts[name]))
	}
}

// judge returns what the compiler says of the texts that it rejects.
func judge(t *testing.T, c Consumer, texts map[string]string) map[string]string {
	t.Helper()
	v := validators[c]
	dir := t.TempDir()
	rejected := make(map[string]string)
	var files []string
	names := make(map[string]string)
	for name, text := range texts {
		f := filepath.Join(dir, fmt.Sprintf("%d.wgsl", len(files)))
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files, names[f] = append(files, f), name
	}
	run := func(files []string) (string, bool) {
		out, err := exec.Command(v.need, v.args(files)...).CombinedOutput()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Error(err)
		}
		return string(bytes.TrimSpace(out)), err == nil
	}
	if !v.each {
		if _, ok := run(files); ok || len(files) == 0 {
			return rejected
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := next.Add(1) - 1; i < int64(len(files)); i = next.Add(1) - 1 {
				if out, ok := run(files[i : i+1]); !ok {
					mu.Lock()
					rejected[names[files[i]]] = out
					mu.Unlock()
				}
			}
		}()
	}
	group.Wait()
	return rejected
}

func withNumbers(text string) string {
	var b strings.Builder
	for i, l := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+1, l)
	}
	return b.String()
}

// TestValidate has both compilers reject what is no WGSL: otherwise their
// consent would mean nothing.
func TestValidate(t *testing.T) {
	for c, v := range validators {
		t.Run(c.String(), func(t *testing.T) {
			testutil.Need(t, v.need)
			good := "@compute @workgroup_size(1) fn main() {}"
			bad := map[string]string{
				"no WGSL":    "fn main( {}",
				"wrong type": "@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }",
				"unknown":    "@compute @workgroup_size(1) fn main() { let x = y; }",
			}
			for name, text := range bad {
				if len(judge(t, c, map[string]string{"good": good, name: text})) != 1 {
					t.Errorf("%s is accepted", name)
				}
			}
			validate(t, c, map[string]string{"good": good})
		})
	}
}
