package emu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const textHead = ".version 8.0\n.target sm_80\n.address_size 64\n"

// parsed returns kernel k of a text.
func parsed(t *testing.T, body string) *Kernel {
	t.Helper()
	m, err := Parse(textHead + body)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Err(); err != nil {
		t.Fatal(err)
	}
	return k
}

// perThread returns a kernel in which thread i computes %r1 from %r0 = i and stores %r1.
func perThread(declarations, body string) string {
	return declarations + `
.entry k(.param .u64 y) {
	.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<9>; .reg .f64 %g<9>;
	ld.param.u64 %d0, [y];
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %d0, %r0, 4, %d0;
` + body + `
	st.global.u32 [%d0], %r1;
	ret;
}`
}

// run32 runs such a kernel with 32 threads.
func run32(t *testing.T, declarations, body string) ([]uint32, error) {
	t.Helper()
	d := newDevice(t, Config{})
	y := d.empty("y", 128)
	err := d.Launch(t.Context(), parsed(t, perThread(declarations, body)), Dim{}, Dim{X: 32}, 0, y)
	v, e := d.ReadWords(y, 32)
	if e != nil {
		t.Fatal(e)
	}
	return v, err
}

func wantAll(t *testing.T, declarations, body string, want func(i uint32) uint32) {
	t.Helper()
	v, err := run32(t, declarations, body)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range v {
		if w := want(uint32(i)); got != w {
			t.Fatalf("thread %d has %#x, not %#x", i, got, w)
		}
	}
}

func wantFinding(t *testing.T, kind Kind, declarations, body string) {
	t.Helper()
	_, err := run32(t, declarations, body)
	var found Findings
	if !errors.As(err, &found) || found[0].Kind != kind {
		t.Errorf("%v instead of %v", err, kind)
	}
}

const twice = `
.func (.param .b32 r) twice(.param .b32 a) {
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [a];
	add.u32 %r1, %r1, %r1;
	st.param.b32 [r], %r1;
	ret;
}
`

// callTexts has texts with functions, stacks, tables and arrays of a module.
var callTexts = []string{
	perThread(twice, "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r0; call (r), twice, (a); ld.param.b32 %r1, [r]; }"),
	perThread(".func f(.param .b64 p) { .reg .b64 %d; .local .b32 a[4]; mov.u64 %d, a; { .param .b64 q; st.param.b64 [q], %d; call f, (q); } ret; } .global .u64 g[2] = {f, g};",
		"mov.u64 %d1, g; ld.u64 %d1, [%d1]; { .param .b64 a; st.param.b64 [a], %d0; P: .callprototype _ (.param .b64 _); call %d1, (a), P; } mov.u32 %r1, 0;"),
	perThread(".const .u32 c[] = {1, 2};", "L: .branchtargets A, B; brx.idx %r0, L; A: ld.const.u32 %r1, [c]; B: ret; add.cc.u32 %r1, %r1, %r1; addc.u32 %r1, %r1, 0; cvta.shared.u64 %d1, 1024; st.u32 [%d1], %r1;"),
}

func TestCallTexts(t *testing.T) {
	for _, text := range callTexts {
		parsed(t, text)
		runAll(t, textHead+text)
	}
}

func TestJumpTable(t *testing.T) {
	body := `
	mov.u32 %r1, 100;
	rem.u32 %r2, %r0, 4;
	brx.idx %r2, L;
L: .branchtargets A, B, C, A;
A:	add.u32 %r1, %r1, 1; bra.uni C;
B:	add.u32 %r1, %r1, 10;
C:	add.u32 %r1, %r1, %r0;
	bar.warp.sync -1;`
	wantAll(t, "", body, func(i uint32) uint32 { return 100 + i + []uint32{1, 10, 0, 1}[i%4] })
	wantFinding(t, BadOperand, "", strings.Replace(body, "rem.u32 %r2, %r0, 4", "rem.u32 %r2, %r0, 5", 1))
}

// TestCallSome checks that lanes that do not call a function wait for the lanes that do.
func TestCallSome(t *testing.T) {
	wantAll(t, twice, `
	mov.u32 %r1, %r0;
	setp.lt.u32 %p1, %r0, 7;
	@%p1 bra DONE;
	{ .param .b32 a; .param .b32 r;
	st.param.b32 [a], %r0;
	call (r), twice, (a);
	ld.param.b32 %r1, [r]; }
DONE:
	bar.warp.sync -1;`, func(i uint32) uint32 {
		if i < 7 {
			return i
		}
		return 2 * i
	})
}

// TestIndirectCalls calls functions by address, with a different address in each thread.
func TestIndirectCalls(t *testing.T) {
	functions := twice + `
.func (.param .b32 r) more(.param .b32 a) {
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [a];
	add.u32 %r1, %r1, 1000;
	st.param.b32 [r], %r1;
	ret;
}
.func other(.param .b64 a) { ret; }
.global .u64 table[3] = { twice, more, other };
`
	call := `
	mov.u64 %d1, table;
	and.b32 %r2, %r0, 1;
	mad.wide.u32 %d1, %r2, 8, %d1;
	ld.global.u64 %d2, [%d1];
	{ .param .b32 a; .param .b32 r;
	st.param.b32 [a], %r0;
P: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r), %d2, (a), P;
	ld.param.b32 %r1, [r]; }`
	wantAll(t, functions, call, func(i uint32) uint32 { return []uint32{2 * i, 1000 + i}[i&1] })
	wantFinding(t, BadOperand, functions, strings.Replace(call, "[%d1]", "[%d1+8]", 1))
	wantFinding(t, BadOperand, functions, strings.Replace(call, "ld.global.u64 %d2, [%d1]", "mov.u64 %d2, 77", 1))
}

// TestStack checks the findings of endless recursion and of addresses of local variables
// whose function has returned.
func TestStack(t *testing.T) {
	wantFinding(t, StackOverflow, ".func f() { call f; ret; }", "mov.u32 %r1, 0; call f;")
	wantFinding(t, StackOverflow, ".func g(); .func f() { .local .b8 a[5000]; call g; ret; } .func g() { call f; ret; }", "mov.u32 %r1, 0; call f;")
	wantFinding(t, OutOfBounds, ".func (.param .b64 r) f() { .reg .b64 %d; .local .b32 a; mov.u64 %d, a; cvta.local.u64 %d, %d; st.param.b64 [r], %d; ret; }",
		"{ .param .b64 r; call (r), f; ld.param.b64 %d1, [r]; } ld.u32 %r1, [%d1];")
	local := ".local .align 16 .b8 a[40]; mov.u64 %d1, a; st.local.u32 [%d1+8], %r0; "
	wantAll(t, "", local+"cvta.local.u64 %d2, %d1; st.u32 [%d2+12], 5; ld.local.v2.u32 {%r1, %r2}, [%d1+8]; add.u32 %r1, %r1, %r2;", func(i uint32) uint32 { return i + 5 })
	for _, bad := range []string{"40", "-4", "100", "4000"} {
		wantFinding(t, OutOfBounds, "", local+"ld.local.u32 %r1, [%d1+"+bad+"];")
		wantFinding(t, OutOfBounds, "", local+"mov.u32 %r1, 0; st.u32 [%d1+"+bad+"], %r1;")
	}
	wantFinding(t, Misaligned, "", local+"ld.local.u32 %r1, [%d1+2];")
	wantFinding(t, Uninitialised, "", local+"ld.local.u32 %r1, [%d1+16];") // when it is stored
}

// TestModuleArrays checks arrays of a module: their initial contents, the permission to write, and their maximum size.
func TestModuleArrays(t *testing.T) {
	wantAll(t, `
.const .align 4 .u16 c[2][3] = {{1, 2, 3}, {4, -5, 6}};
.global .u32 g[] = {10, 20, 30};
.global .u64 p = g+4;
.global .align 8 .b8 q[8] = {0xFF(g), 0xFF00(g), 0xFF0000(g), 0xFF000000(g), 0xFF00000000(g), 0xFF0000000000(g), 0xFF000000000000(g), 0xFF00000000000000(g)};
`, `
	mov.u64 %d1, c; ld.const.u16 %h1, [%d1+8]; cvt.s32.s16 %r1, %h1;
	mov.u64 %d2, p; ld.global.u64 %d3, [%d2]; ld.u32 %r2, [%d3]; add.u32 %r1, %r1, %r2;
	ld.global.u64 %d4, [q]; ld.global.u32 %r3, [%d4+8]; add.u32 %r1, %r1, %r3;
	add.u32 %r1, %r1, %r0;`, func(i uint32) uint32 { return i + 45 })
	wantFinding(t, BadOperand, ".const .u32 c;", "mov.u32 %r1, 0; mov.u64 %d1, c; st.global.u32 [%d1], %r1;")
	wantFinding(t, BadOperand, ".const .u32 c;", "mov.u64 %d1, c; atom.add.u32 %r1, [%d1], 1;")

	k := parsed(t, perThread(".global .b8 a[1000000]; .global .b8 b[1000000];", "ld.global.u32 %r1, [a]; ld.global.u32 %r1, [b];"))
	d := newDevice(t, Config{Memory: 1<<20 + 500000})
	y := d.empty("y", 128)
	for range 2 {
		if err := d.Launch(t.Context(), k, Dim{}, Dim{}, 0, y); !errors.Is(err, ErrLimit) {
			t.Errorf("%v", err)
		}
	}
	if _, _, err := d.Variable(k.module, "nothing"); !errors.Is(err, ErrMemory) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{".global .u32 a = b;", ".global .u64 a = b;", ".global .u64 a = s; .shared .u32 s;"} {
		m, err := Parse(textHead + perThread(bad, "ld.global.u32 %r1, [a];"))
		if err != nil {
			continue
		}
		if err := d.Launch(t.Context(), m.Kernels()[0], Dim{}, Dim{}, 0, y); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestGeneric uses generic addresses of all kinds of memory.
func TestGeneric(t *testing.T) {
	wantAll(t, ".shared .u32 s[32];", `
	mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 4, %r2; cvt.u64.u32 %d1, %r2;
	cvta.shared.u64 %d2, %d1;
	and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0;
	selp.b64 %d3, %d2, %d0, %p1;
	mov.u32 %r4, 7; st.u32 [%d3], %r4;
	atom.add.u32 %r5, [%d3], %r0;
	ld.u32 %r1, [%d3];
	isspacep.shared %p2, %d3; selp.u32 %r6, 100, 0, %p2; add.u32 %r1, %r1, %r6;
	cvta.to.shared.u64 %d4, %d2; sub.u64 %d4, %d4, %d1; cvt.u32.u64 %r7, %d4; add.u32 %r1, %r1, %r7;`,
		func(i uint32) uint32 { return 7 + i + 100*(1-i&1) })
}

// TestNotShared converts a generic address outside of shared memory to an address in shared memory. The access must be
// out of bounds.
func TestNotShared(t *testing.T) {
	body := "mov.u32 %r2, s; st.shared.u32 [%r2], 1; cvta.to.shared.u64 %d1, %d0; ld.shared.u32 %r1, [%d1+800];"
	wantFinding(t, OutOfBounds, ".shared .u32 s[100];", body)
}

// TestMoreInstructions tests instructions that compilers use and the builder does not have.
func TestMoreInstructions(t *testing.T) {
	half := func(x float64) uint32 { return uint32(toHalf(x)) }
	for _, c := range []struct {
		body string
		want func(i uint32) uint32
	}{
		{"set.lt.u32.u32 %r1, %r0, 5;", func(i uint32) uint32 { return -b2u(i < 5) }},
		{"set.lt.f32.s32 %f1, %r0, 5; mov.b32 %r1, %f1;", func(i uint32) uint32 { return 0x3f800000 * b2u(i < 5) }},
		{fmt.Sprintf("mov.b32 %%r2, %#x; mov.b32 %%r3, %#x; set.gt.f16x2.f16x2 %%r1, %%r2, %%r3;", half(1)|half(3)<<16, half(2)|half(2)<<16), func(uint32) uint32 { return half(1) << 16 }},
		{"cvt.rn.f32.u32 %f1, %r0; testp.normal.f32 %p1, %f1; selp.u32 %r1, 1, 0, %p1;", func(i uint32) uint32 { return b2u(i > 0) }},
		{"cnot.b32 %r1, %r0;", func(i uint32) uint32 { return b2u(i == 0) }},
		{"add.sat.s32 %r1, %r0, 0x7ffffff0;", func(i uint32) uint32 { return min(i+0x7ffffff0, 0x7fffffff) }},
		{"sub.u32 %r2, 5, %r0; cvt.u16.u32 %h1, %r2; mul.hi.s16 %h1, %h1, 0x4000; cvt.s32.s16 %r1, %h1;", func(i uint32) uint32 { return uint32((5 - int32(i)) >> 2) }},
		{"cvt.u16.u32 %h1, %r0; mad.wide.s16 %r1, %h1, -3, %r0;", func(i uint32) uint32 { return -(2 * i) }},
		{"sub.u32 %r2, 3, %r0; cvt.s8.s32 %h1, %r2; cvt.s32.s16 %r1, %h1;", func(i uint32) uint32 { return 3 - i }},
		{"sub.u32 %r2, 3, %r0; cvt.u8.u32 %h1, %r2; cvt.u32.u16 %r1, %h1;", func(i uint32) uint32 { return (3 - i) & 0xff }},
		{"sub.u32 %r2, 3, %r0; sad.s32 %r1, %r2, 1, %r0;", func(i uint32) uint32 { return i + max(2, i) - min(2, i) }},
		{"bfind.shiftamt.u32 %r1, %r0;", func(i uint32) uint32 {
			if i == 0 {
				return 0xffffffff
			}
			n := uint32(0)
			for i < 1<<31 {
				i, n = i<<1, n+1
			}
			return n
		}},
		{"cvt.rn.f32.u32 %f1, %r0; mul.f32 %f1, %f1, 0f3e000000; sub.f32 %f1, %f1, 0f3f800000; cvt.sat.f32.f32 %f1, %f1; mul.f32 %f1, %f1, 0f41000000; cvt.rzi.u32.f32 %r1, %f1;", func(i uint32) uint32 {
			return min(max(i, 8)-8, 8)
		}},
		{"cvt.rn.f64.u32 %g1, %r0; add.f64 %g1, %g1, 0d3FF0000000000000; rcp.approx.ftz.f64 %g2, %g1; mul.f64 %g2, %g2, %g1; cvt.rni.u32.f64 %r1, %g2;", func(uint32) uint32 { return 1 }},
		{"mov.u64 %d1, %clock64; mov.u32 %r2, %clock; mov.u64 %d2, %globaltimer; sub.u64 %d2, %d2, %d1; cvt.u32.u64 %r1, %d2;", func(uint32) uint32 { return 2 }},
		{"mov.b32 %r2, 0x04030201; cvt.u16.u32 %h1, %r0; mov.b64 %d1, {%h1, 2, 3, 4}; mov.b64 {%h2, %h3, _, %h4}, %d1; add.u16 %h2, %h2, %h4; cvt.u32.u16 %r1, %h2;", func(i uint32) uint32 { return i + 4 }},
	} {
		t.Run(c.body, func(t *testing.T) { wantAll(t, "", c.body, c.want) })
	}
}

// TestRefused checks that only the kernel with an unsupported or wrong construct has an error.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ declarations, body, why string }{
		"texture":    {".global .texref tex;", "mov.u64 %d1, tex;", "texref"},
		"extern":     {".extern .func f();", "call f;", "function f is not in the module"},
		"extern var": {".extern .global .u32 v;", "ld.global.u32 %r1, [v];", "other modules"},
		"arguments":  {twice, "{ .param .b32 a; call twice, (a); }", "1 parameters and 1 results"},
		"sizes":      {twice, "{ .param .b32 a; .param .b64 r; call (r), twice, (a); }", "has 4 bytes, but"},
		"function":   {".func f() { frobnicate; ret; }", "call f;", "function f: line 4: frobnicate"},
		"of others":  {".func f() { frobnicate; ret; } .func g() { call f; ret; }", "call g;", "function f: line 4: frobnicate"},
		"unknown":    {"", "call f;", "no function is called f"},
		"directive":  {"", ".strange;", ".strange"},
		"header":     {".entry other(.param .u32 a[0]) { ret; }", "mov.u32 %r1, 0;", ""},
	} {
		m, err := Parse(textHead + perThread(c.declarations, c.body) + "\n.entry fine() { ret; }")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		k, err := m.Kernel("k")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := k.Err(); c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "kernel k: ")) {
			t.Errorf("%s: %v, which does not say %q", name, err, c.why)
		}
		if k, err = m.Kernel("fine"); err == nil {
			err = NewMachine(Config{}).Launch(t.Context(), k, Dim{}, Dim{}, 0)
		}
		if err != nil {
			t.Errorf("%s: another kernel: %v", name, err)
		}
	}
}

// TestManyNames parses a text with many names. If the parser searched lists instead of maps, the test would take
// minutes.
func TestManyNames(t *testing.T) {
	const n = 20000
	many := func(f string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(f, "#", "%[1]d")+"\n", i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"kernels":          many(".entry k#(.param .u64 p) { ret; }"),
		"arrays":           many(".shared .u32 s#; .global .u32 g#; .entry k#() { .reg .b32 %%r; mov.u32 %%r, s#; ret; }"),
		"arrays of one":    ".entry k() {\n" + many(".shared .u32 s#;") + ".reg .b32 %r;" + many("mov.u32 %%r, s#;") + " ret; }",
		"functions":        many(".func f#() { ret; } .entry k#() { call f#; ret; }"),
		"all of all":       many(".func f#() { ret; } .entry k#() { .reg .b64 %%d; call %%d; ret; }"),
		"chain":            strings.ReplaceAll(many(".global .u64 c# = d#;"), "d", "c1") + ".entry k() { .reg .b64 %d; mov.u64 %d, c0; ret; }",
		"variables":        ".entry k() {\n" + many(".local .u32 l#; .param .b32 p#; st.param.b32 [p#], 1;") + " ret; }",
		"broken functions": many(".entry k#() { frobnicate; }"),
		"labels":           ".entry k() { .reg .b32 %r; " + many("L#:") + many("bra L#;") + "}",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse(textHead + text)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range m.Kernels() {
				if found, err := m.Kernel(k.Name()); err != nil || found != k {
					t.Fatal(k.Name(), err)
				}
				if err := k.Err(); (err != nil) != (name == "broken functions") && !(name == "all of all" && i > 5) {
					t.Fatal(k.Name(), err)
				}
				if i == 0 && k.Err() == nil && len(k.params) == 0 {
					_ = NewMachine(Config{Steps: 10}).Launch(t.Context(), k, Dim{}, Dim{}, 0)
				}
			}
		})
	}
}
