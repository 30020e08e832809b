package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanted checks modules with one mistake each, which only the named target has.
func TestPlanted(t *testing.T) {
	for _, c := range []struct {
		name, file, text, target, want string
	}{
		{"none", "a.go", "package p\n\nfunc F() int { return 1 }\n", "linux/amd64", ""},
		{"type", "a_windows.go", "package p\n\nvar x int = \"1\"\n", "windows/amd64", "cannot use"},
		{"syntax under a tag", "a.go", "//go:build special\n\npackage p\n\nfunc F( {\n", "linux/amd64,special", "expected"},
		{"constant beyond int", "a.go", "package p\n\nvar x int = 1 << 40\n", "linux/386", "overflow"},
		{"function without a body", "a_arm64.go", "package p\n\nfunc F()\n", "linux/arm64", "F"},
		{"import", "a_js.go", "package p\n\nimport _ \"example.com/none\"\n", "js/wasm", "example.com/none"},
		{"architecture", "a.go", "package p\n", "linux/none", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "p.go": "package p\n", c.file: c.text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			err := newTarget(c.target).check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error that contains %q", err, c.want)
			}
			if c.want == "" || c.target == "linux/none" {
				return
			}
			if err := newTarget("linux/riscv64").check(); err != nil {
				t.Errorf("on a target without the mistake: %v", err)
			}
		})
	}
}
