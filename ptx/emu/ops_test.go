package emu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// lacking lists the instructions of the builder that the emulator does not support.
var lacking = []string{}

// TestSupports checks that the emulator supports every other instruction of the builder.
func TestSupports(t *testing.T) {
	for _, in := range ptx.Instructions() {
		name := in.Text
		if in.Memory {
			name += ".f32"
		}
		name = strings.Replace(name, "$n", "64", 1)
		if got, want := Supports(name), !slices.Contains(lacking, in.Text); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"", "add", "add.f33", "ld.global", "bra.x.y", "mma.sync", "nothing.at.all", "ld.elsewhere.f32", "shfl.sync.bfly.b64"} {
		if name != "bra.x.y" && Supports(name) {
			t.Errorf("%q is supported", name)
		}
	}
}

// special values of the types, as bits.
var specialValues = func() map[string][]uint64 {
	ints := []uint64{0, 1, 2, 7, 31, 32, 33, 255, 0x8000, 0xffff, 0x12345678, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffff9, 0xffffffff}
	long := append(slices.Clone(ints), 63, 64, 65, 1<<32, 1<<53+1, 1<<63-1, 1<<63, 1<<63+1, 0xfedcba9876543210, math.MaxUint64)
	var f32s, f64s []uint64
	for _, v := range []float64{0, 1, 1.5, 0.1, 2.5, 3.5, 0.3, 1e10, 0x1p31, 0x1p32, 0x1p63, 0x1p64, 1 + 0x1p-23, 0x1p-126, 0x1p-149, 0x1.fffffcp-127, math.MaxFloat32, 0x1p126, 0x1p127, math.Inf(1), math.Pi, 1023.75} {
		for _, s := range []float64{v, -v} {
			f32s = append(f32s, uint64(math.Float32bits(float32(s))))
			f64s = append(f64s, math.Float64bits(s))
		}
	}
	f32s = append(f32s, 0x7fc00000, 0xffc00001)
	f64s = append(f64s, math.Float64bits(math.NaN()), 1, 1<<52, 1<<52-1, math.Float64bits(math.MaxFloat64), math.Float64bits(-0x1p-1074))
	f16s := []uint64{0, 0x8000, 0x3c00, 0xbc00, 0x3e00, 0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x3555, 0x4248, 0xc500, 0x1400, 0x6400}
	bf16s := []uint64{0, 0x8000, 0x3f80, 0xbf80, 0x3fc0, 0x7f80, 0xff80, 0x7fc0, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x3eaa, 0x4049, 0xc0a0, 0x3c00, 0x4b80}
	pairs := func(v []uint64) (p []uint64) {
		for i, x := range v {
			p = append(p, x|v[(i*7+3)%len(v)]<<16)
		}
		return p
	}
	return map[string][]uint64{
		"U32": ints, "S32": ints, "B32": ints, "U64": long, "S64": long, "F32": f32s, "F64": f64s,
		"F16": f16s, "BF16": bf16s, "F16x2": pairs(f16s), "BF16x2": pairs(bf16s), "Pred": {0, 1},
	}
}()

func typeBits(typ string) (reg, class string, bytes int) {
	switch typ {
	case "Pred":
		return "%p", "pred", 0
	case "F16", "BF16":
		return "%h", "b16", 2
	case "U64", "S64":
		return "%d", "b64", 8
	case "F64":
		return "%g", "f64", 8
	case "F32":
		return "%f", "f32", 4
	}
	return "%r", "b32", 4
}

// oneInstruction is a kernel that applies an instruction to elements of arrays,
// each in 8 bytes.
func oneInstruction(in ptx.Instruction) string {
	var b strings.Builder
	b.WriteString(`.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 n)
{
	.reg .pred %p<9>; .reg .pred %out; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>;
	.reg .b64 %x<9>; .reg .b32 %i<9>;
	mov.u32 %i0, %ctaid.x;
	mov.u32 %i1, %ntid.x;
	mov.u32 %i2, %tid.x;
	mad.lo.u32 %i3, %i0, %i1, %i2;
	ld.param.u32 %i4, [n];
	setp.ge.u32 %out, %i3, %i4;
	@%out ret;
`)
	var operands []string
	for i, typ := range in.Types {
		if typ == "" {
			continue
		}
		reg, class, _ := typeBits(typ)
		fmt.Fprintf(&b, "\tld.param.u64 %%x%d, [p%c];\n\tmad.wide.u32 %%x%d, %%i3, 8, %%x%d;\n", i, "dabc"[i], i, i)
		if i > 0 {
			if typ == "Pred" {
				fmt.Fprintf(&b, "\tld.global.u32 %%i5, [%%x%d];\n\tsetp.ne.u32 %%p%d, %%i5, 0;\n", i, i)
			} else {
				fmt.Fprintf(&b, "\tld.global.%s %s%d, [%%x%d];\n", class, reg, i, i)
			}
		}
		operands = append(operands, fmt.Sprint(reg, i))
	}
	switch {
	case strings.HasPrefix(in.Text, "lop3"):
		operands = append(operands, "0xe8")
	case in.Text == "mov.b32" && in.Types[2] == "F16", in.Text == "mov.b32" && in.Types[2] == "BF16", in.Text == "mov.b64" && in.Types[2] == "U32":
		if in.Types[1] == in.Types[2] { // pack
			operands = []string{operands[0], "{" + operands[1] + ", " + operands[2] + "}"}
		} else { // unpack has a second result
			operands = []string{"{" + operands[0] + ", " + operands[2] + "}", operands[1]}
		}
	}
	fmt.Fprintf(&b, "\t%s %s;\n", in.Text, strings.Join(operands, ", "))
	reg, class, _ := typeBits(in.Types[0])
	if class == "pred" {
		b.WriteString("\tselp.b32 %i6, 1, 0, %p0;\n\tst.global.b32 [%x0], %i6;\n")
	} else {
		fmt.Fprintf(&b, "\tst.global.%s [%%x0], %s0;\n", class, reg)
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

// TestInstructions runs every instruction of the builder that computes a value from values, on special values.
func TestInstructions(t *testing.T) {
	ran, seen := 0, map[string]bool{}
	for _, in := range ptx.Instructions() {
		key := fmt.Sprint(in.Text, in.Types)
		if in.Memory || in.Types[0] == "" || in.Types[1] == "" || seen[key] || elsewhere(in.Text) {
			continue
		}
		seen[key] = true
		ran++
		m, err := Parse(oneInstruction(in))
		if err == nil {
			err = m.Err()
		}
		if err != nil {
			t.Errorf("%s: %v", in.Text, err)
			continue
		}
		var args [3][]uint64
		n := 0
		unpack := strings.HasPrefix(in.Text, "mov.b") && in.Types[2] != "" && in.Types[1] != in.Types[2]
		for i, typ := range in.Types[1:] {
			if typ != "" && !(unpack && i == 1) {
				n++
				args[i] = specialValues[typ]
			} else {
				args[i] = []uint64{0}
			}
		}
		if n == 3 { // a sample of all combinations
			for i := range args {
				if len(args[i]) > 24 {
					args[i] = args[i][:24:24]
				}
			}
			args[0] = append(slices.Clone(args[0]), specialValues[in.Types[1]][len(args[0]):]...)
		}
		var flat [3][]uint32
		var rows [][3]uint64
		for _, x := range args[0] {
			for _, y := range args[1] {
				for _, z := range args[2] {
					row := [3]uint64{x, y, z}
					rows = append(rows, row)
					for i, v := range row {
						flat[i] = append(flat[i], uint32(v), uint32(v>>32))
					}
				}
			}
		}
		d := newDevice(t, Config{Unchecked: true})
		k, _ := m.Kernel("one")
		out := d.words("d", make([]uint32, 2*len(rows)))
		params := []any{out}
		for i, v := range flat {
			params = append(params, d.words(string("abc"[i]), v))
		}
		d.launch(k, Dim{X: ceil(len(rows), 256)}, Dim{X: 256}, 0, append(params, uint32(len(rows)))...)
		got, _ := d.ReadWords(out, 2*len(rows))
		bad := 0
		for i, row := range rows {
			v := uint64(got[2*i]) | uint64(got[2*i+1])<<32
			want, ok := reference(in, row)
			if !ok {
				t.Errorf("%s %v: no reference", in.Text, in.Types)
				break
			}
			if !want(v) {
				if bad++; bad < 4 {
					t.Errorf("%s of %#x gives %#x", in.Text, row[:n], v)
				}
			}
		}
	}
	if ran < 200 {
		t.Errorf("only %d instructions ran", ran)
	}
}

// elsewhere reports whether the result of an instruction does not only depend on the thread's values, so that other
// tests check it.
func elsewhere(name string) bool {
	for _, s := range []string{"atom.", "red.", "shfl.", "vote.", "match.", "redux.", "mma.", "bar.", "cp.", "wgmma.", "mbarrier.", "ldmatrix", "stmatrix", "elect", "mapa", "cvta", "activemask", "prefetch", "setmaxnreg"} {
		if strings.HasPrefix(name, s) {
			return true
		}
	}
	return false
}

func exactly(want uint64) matcher { return func(got uint64) bool { return got == want } }
