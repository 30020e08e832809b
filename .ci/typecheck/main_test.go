package main

import (
	"fmt"
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

// TestFormats checks which operands formats reports.
func TestFormats(t *testing.T) {
	const text = `package p

import "example.com/p/internal/fmt"

type rank int

type level int

func (level) String() string { return "" }

type levels []level

func (levels) String() string { return "" }

type point struct {
	X    int
	l    level
	Next *point
}

func wrap(format string, args ...any) { fmt.Print(format, args...) }

var _ = point{}.l

func f() {
	fmt.Print("%v", OPERAND)
	wrap("%v", OPERAND)
}
`
	for operand, want := range map[string]bool{
		"level(1)": false, "levels{1}": false, "[]int{1}": false, "[]byte{1}": false, "any(1)": false, "nil": false, "rank(1)": false,
		"[]level{1}": true, "[2]int{}": true, "map[string]int{}": true, "point{}": true, "&point{}": true, "[]error{nil}": true, "[]any{1}": true,
	} {
		t.Chdir(t.TempDir()) // files are parsed once
		if err := os.MkdirAll("internal/fmt", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"go.mod":              "module example.com/p\n\ngo 1.26\n",
			"internal/fmt/fmt.go": "package fmt\n\nfunc Print(format string, args ...any) {}\n",
			"p.go":                strings.ReplaceAll(text, "OPERAND", operand),
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := newTarget("js/wasm").check()
		if n := strings.Count(fmt.Sprint(err), "pages print only"); (n == 2) != want || !want && err != nil {
			t.Errorf("%s: %v, expected an error: %v", operand, err, want)
		}
	}
}
