package wgsl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

// TestGrids checks that a folded grid is not allowed for a text that does not support it.
func TestGrids(t *testing.T) {
	text := `@group(0) @binding(0) var<storage, read_write> x: f32; @compute @workgroup_size(1) fn main(%s) { x = 1; }`
	for builtin, folds := range map[string]bool{"": false, "@builtin(num_workgroups) n: vec3u": true} {
		l := Source{Text: fmt.Sprintf(text, builtin)}.Kernel()
		if err := l.CheckGrid(kernel.GridOf(65535)); err != nil {
			t.Error(err)
		}
		if err := l.CheckGrid(kernel.GridOf(65536)); (err == nil) != folds || err != nil && !errors.Is(err, kernel.ErrGrid) {
			t.Errorf("%q: %v", builtin, err)
		}
		if err := l.CheckGrid(kernel.GridFor(64, 64)); !errors.Is(err, kernel.ErrGrid) {
			t.Errorf("a grid for workgroups of 64: %v", err)
		}
		if err := l.CheckGrid(kernel.Grid(0)); !errors.Is(err, kernel.ErrGrid) {
			t.Error(err)
		}
	}
}

// TestLayouts compares the layouts of random structures with those of naga.
func TestLayouts(t *testing.T) {
	testutil.Need(t, "naga")
	rnd := rand.New(rand.NewPCG(1, 2))
	var text, body strings.Builder
	type member struct {
		structure string
		index     int
	}
	want := map[member]uint64{}
	names := []string{"f32", "i32", "u32", "vec2f", "vec3f", "vec4f", "vec2u", "vec3i", "mat2x2f", "mat3x2f", "mat2x3f", "mat4x4f", "mat3x3f", "atomic<u32>"}
	const structs = 60
	for s := range structs {
		raised := s%2 == 1 // such a structure must not be in another type
		fmt.Fprintf(&text, "struct S%d {\n", s)
		for m := range 1 + rnd.IntN(6) {
			typ := names[rnd.IntN(len(names))]
			switch rnd.IntN(4) {
			case 0:
				typ = fmt.Sprintf("array<%s, %d>", typ, 1+rnd.IntN(5))
			case 1:
				if s > 0 {
					typ = fmt.Sprintf("S%d", 2*rnd.IntN((s+1)/2))
				}
			}
			attr := ""
			switch rnd.IntN(6) {
			case 0:
				if raised {
					attr = "@align(256) "
				}
			case 1:
				if typ[0] == 'S' {
					break
				}
				attr = fmt.Sprintf("@size(%d) ", 100000+4*rnd.IntN(9))
			}
			fmt.Fprintf(&text, "  %sm%d: %s,\n", attr, m, typ)
		}
		typ, first := fmt.Sprintf("array<S%d>", s), "[1].m0"
		if raised {
			typ, first = fmt.Sprintf("S%d", s), ".m0"
		}
		fmt.Fprintf(&text, "}\n@group(0) @binding(%d) var<storage, read_write> x%d: %s;\n", s, s, typ)
		fmt.Fprintf(&body, "  let p%d = &x%d%s;\n", s, s, first)
	}
	text.WriteString("@compute @workgroup_size(1) fn main() {\n")
	text.WriteString(body.String() + "}\n")
	i, err := Source{Text: text.String()}.Interface()
	if err != nil {
		t.Fatal(err)
	}
	strides := map[uint64]bool{}
	for _, b := range i.Buffers {
		typ := b.Type
		if typ.Kind == ArrayType {
			strides[typ.Stride] = true
			typ = typ.Elem
		}
		for n, f := range typ.Fields {
			want[member{typ.Name, n}] = f.Offset
		}
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "x.wgsl"), filepath.Join(dir, "x.spv")
	if err := os.WriteFile(in, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("naga", in, out, "-g").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, len(data)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	called, offsets, found := map[uint32]string{}, map[[2]uint32]uint32{}, map[uint64]bool{}
	for i := 5; i < len(words); i += int(words[i] >> 16) {
		switch words[i] & 0xffff {
		case 5: // OpName
			var b []byte
			for _, w := range words[i+2 : i+int(words[i]>>16)] {
				b = binary.LittleEndian.AppendUint32(b, w)
			}
			called[words[i+1]], _, _ = strings.Cut(string(b), "\x00")
		case 71: // OpDecorate
			if words[i+2] == 6 { // ArrayStride
				found[uint64(words[i+3])] = true
			}
		case 72: // OpMemberDecorate
			if words[i+3] == 35 { // Offset
				offsets[[2]uint32{words[i+1], words[i+2]}] = words[i+4]
			}
		}
	}
	seen := 0
	for id, at := range offsets {
		m := member{called[id[0]], int(id[1])}
		w, ok := want[m]
		if !ok {
			continue
		}
		seen++
		if w != uint64(at) {
			t.Errorf("member %d of %s is at %d for naga, and at %d for us", m.index, m.structure, at, w)
		}
	}
	if seen != len(want) {
		t.Errorf("%d members of %d are in naga's text", seen, len(want))
	}
	for s := range strides {
		if !found[s] {
			t.Errorf("naga has no array of stride %d", s)
		}
	}
}
