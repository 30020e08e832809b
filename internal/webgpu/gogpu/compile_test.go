//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// TestDeep: no text is nested so deep, or so long, that the compiler ends the process.
func TestDeep(t *testing.T) {
	const head = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n@compute @workgroup_size(1) fn main() {\n"
	n := maxText/8 - 1000
	for name, body := range map[string]string{
		"sum":      "a[0] = a[1]" + strings.Repeat("+a[2]", n) + ";",
		"brackets": "a[0] = " + strings.Repeat("(", n) + "1u" + strings.Repeat(")", n) + ";",
		"indices":  "a[0] = " + strings.Repeat("a[", n) + "1u" + strings.Repeat("]", n) + ";",
		"not":      "a[0] = " + strings.Repeat("~", 4*n) + "a[1];",
		"minus":    "a[0] = " + strings.Repeat("- ", 2*n) + "a[1];",
		"address":  "a[0] = " + strings.Repeat("*&", 2*n) + "a[1];",
		"blocks":   strings.Repeat("{", n) + strings.Repeat("}", n),
		"else":     "if (a[0] == 1u) {}" + strings.Repeat(" else if (a[0] == 1u) {}", maxText/40) + "",
		"loops":    strings.Repeat("loop {", n) + strings.Repeat("}", n),
		"types":    "var x: " + strings.Repeat("array<", n) + "u32" + strings.Repeat(",2>", n/2) + ";",
		"comments": strings.Repeat("/*", n) + strings.Repeat("*/", n),
		"calls":    "a[0] = " + strings.Repeat("min(1u,", n/2) + "1u" + strings.Repeat(")", n/2) + ";",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := compile(&webgpu.Shader{Label: name, Text: head + body + "\n}\n", Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadWrite}})
			var mistake *webgpu.CompileError
			if name != "comments" && name != "else" && err == nil {
				t.Error("it compiles")
			}
			if err != nil && !errors.As(err, &mistake) {
				t.Errorf("%v", err)
			}
			t.Logf("%v: %.100v", time.Since(start), err)
		})
	}
}
