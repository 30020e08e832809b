//go:build wazero && !js

package wazero

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestModule looks into the modules that pages load: they import a memory and nothing
// else, and have no data, no globals and no memory of their own.
func TestModule(t *testing.T) {
	for _, name := range []string{"simd128_elements.wasm", "simd128_arrays.wasm"} {
		t.Run(name, func(t *testing.T) { checkModule(t, name) })
	}
}

func checkModule(t *testing.T, name string) {
	code, err := os.ReadFile("../../../simd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	m, err := r.CompileModule(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.ImportedFunctions()); n != 0 {
		t.Errorf("it imports %d functions", n)
	}
	if n := len(m.ExportedFunctions()); n != 1 {
		t.Errorf("it exports %d functions", n)
	}
	if n := len(m.ImportedMemories()); n != 1 {
		t.Errorf("it imports %d memories", n)
	}
	// Sections are a number, a length and contents.
	const types, imports, functions, table, exports, elements, body = 1, 2, 3, 4, 7, 9, 10
	allowed := map[byte]bool{types: true, imports: true, functions: true, table: true, exports: true, elements: true, body: true}
	for at := 8; at < len(code); {
		id := code[at]
		if !allowed[id] {
			t.Errorf("it has a section %d", id)
		}
		at++
		size, shift := 0, 0
		for {
			b := code[at]
			at++
			size |= int(b&0x7f) << shift
			if shift += 7; b < 0x80 {
				break
			}
		}
		at += size
	}
}
