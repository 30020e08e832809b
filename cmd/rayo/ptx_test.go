package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/samples"
)

// ptxFile writes the PTX of a name to a file.
func ptxFile(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := rayo(t, append([]string{"ptx", "show"}, args...)...)
	if code != 0 {
		t.Fatalf("show %v: code %d, %s", args, code, errs)
	}
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPTXListsWhatItShows(t *testing.T) {
	code, out, errs := rayo(t, "ptx", "list")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	var names []string
	for _, s := range samples.All() {
		names = append(names, "sample/"+s.Name)
	}
	for _, o := range op.Catalogue() {
		if o != op.Cast && (!o.View() || o == op.Transpose) && (o.Class() == op.Elementwise || portable.Has(o)) { // views move nothing alone
			names = append(names, o.Name())
		}
	}
	names = append(names, "mul+add+gelu", "matmul+relu", "less+where")
	for i, n := range names {
		if !strings.Contains(n, "+") && !regexp.MustCompile(`(?m)^ .*\b`+n+`\b`).MatchString(out) {
			t.Errorf("%s is not listed", n)
		}
		if testing.Short() && i%3 != 0 {
			continue
		}
		if code, text, errs := rayo(t, "ptx", "show", n); code != 0 || !strings.Contains(text, ".visible .entry ") {
			t.Errorf("show %s: code %d, %s", n, code, errs)
		}
	}
	if _, old, _ := rayo(t, "ptx", "list", "--target", "sm_70"); strings.Contains(old, "gemm_tensor") || strings.Contains(old, "wgmma") {
		t.Errorf("sm_70 has no such kernels:\n%s", old)
	}
}

func TestPTXCommandLines(t *testing.T) {
	softmax := ptxFile(t, "sample/softmax", "--target=sm_70")
	naive := ptxFile(t, "sample/gemm_naive")
	t.Setenv("PATH", "") // no ptxas
	broken := filepath.Join(t.TempDir(), "broken.ptx")
	text, err := os.ReadFile(softmax)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), "bra $L0", "bra $L77", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "binary.ptx")
	if err := os.WriteFile(binary, []byte("\x7fELF\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) []string { return append([]string{"run"}, args...) }
	for _, c := range []struct {
		name        string
		args        []string
		code        int
		out, errors string
	}{
		{"show for a target", []string{"show", "sample/softmax", "--target=sm_75"}, 0, `(?s)^// sample/softmax: .*\.target sm_75\n`, `^$`},
		{"show a stage of several", []string{"show", "sum", "--portable"}, 0, `(?s)entry sum_1\(.*entry sum_2\(`, `^$`},
		{"show for sizes", []string{"show", "softmax", "--sizes=7x100", "--portable", "--variant=team32"}, 0, `softmax of f32\[7 100\], portable, variant team32`, `^$`},
		{"show a type", []string{"show", "relu", "--type=f16"}, 0, `ld\.global(\.nc)?(\.v\d)?\.[bu]\d\d`, `^$`},
		{"no such target", []string{"show", "relu", "--target=sm_35"}, 1, `^$`, `unknown target "sm_35".*sm_90a`},
		{"no such sample", []string{"show", "sample/x"}, 1, `^$`, `unknown sample "x"`},
		{"no such operation", []string{"show", "relu+conv"}, 1, `^$`, `unknown operation "conv" \(is it conv2d\?\)`},
		{"wrong order", []string{"show", "relu+softmax"}, 1, `^$`, `softmax is not elementwise`},
		{"no such variant", []string{"show", "softmax", "--variant=x"}, 1, `^$`, `variants: `},
		{"wrong sizes", []string{"show", "matmul", "--sizes=3x4,5x6"}, 1, `^$`, `shape mismatch`},
		{"no sizes", []string{"show", "matmul", "--sizes=3xq"}, 1, `^$`, `"3xq" is not a size`},
		{"no such type", []string{"show", "relu", "--type=f17"}, 1, `^$`, `"f17"`},
		{"target without the instruction", []string{"show", "sample/gemm_tensor", "--target=sm_70"}, 1, `^$`, `tensor\.go:\d+.*sm_80`},
		{"check a file", []string{"check", softmax}, 0, `(?s)emulator  softmax, \d+ instructions.*ptxas     is not installed`, `^$`},
		{"check a kernel", []string{"check", "layer_norm"}, 0, `verify    nothing found`, `^$`},
		{"check a broken file", []string{"check", broken}, 1, `emulator  emu: kernel softmax: line \d+: `, `there are mistakes`},
		{"check no file", []string{"check", "nowhere.ptx"}, 1, `^$`, `nowhere\.ptx`},
		{"check what is not text", []string{"check", binary}, 1, `^$`, `is not text`},
		{"run", run(softmax, "softmax", "f32[64]=0", "f32[64]", "32", "--grid=2"), 0,
			`(?s)argument 2 +f32\[64\] +0\.03125 0\.03125.*instructions +\d+ of threads.*loads +4 requests.*0 of them bank conflicts`, `^$`},
		{"run with a file of data", run(naive, "gemm_naive", "f32[]=@"+data, "f32[2]=3,4", "f32[1]", "1", "1", "2", "--block=16,16", "--lines"), 0,
			`(?s)argument 3 +f32\[1\] +11\n.*sectors.*fma\.rn\.f32`, `^$`},
		{"run in another order", run(naive, "gemm_naive", "f32[4]=iota", "f32[4]=1", "f32[4]", "2", "2", "2", "--block=2,2", "--order=shuffled", "--first=3"), 0, `f32\[4\] +1 1 5 \.\.\.`, `^$`},
		{"run out of bounds", run(softmax, "softmax", "f32[63]=0", "f32[64]", "32", "--grid=2"), 1, `out of bounds: argument 1, f32\[63\]\+252.*line \d+ of the PTX: ld\.global`, `there are mistakes`},
		{"run on what nobody wrote", run(softmax, "softmax", "f32[32]", "f32[32]", "32"), 1, `uninitialised`, `there are mistakes`},
		{"run without end", run(naive, "gemm_naive", "f32[1]=0", "f32[1]=0", "f32[1]", "1", "1", "1000000000", "--block=1", "--steps=1000"), 1, `step budget|out of bounds`, `mistakes`},
		{"run with too few arguments", run(softmax, "softmax", "3"), 1, `^$`, `1 parameters, but kernel softmax has 3`},
		{"run another kernel", run(softmax, "relu"), 1, `^$`, `no kernel "relu"; the kernels are: softmax`},
		{"run with a wrong grid", run(softmax, "softmax", "--grid=1,2,3,4"), 1, `^$`, `--grid "1,2,3,4": write up to three sizes`},
		{"run with a wrong block", run(softmax, "softmax", "f32[32]=0", "f32[32]", "32", "--block=2048"), 1, `^$`, `block|threads`},
		{"run a broken file", run(broken, "softmax"), 1, `^$`, `line \d+: bra: no label`},
		{"run with a wrong order", run(softmax, "softmax", "--order=x"), 2, `^$`, `ascending`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := rayo(t, append([]string{"ptx"}, c.args...)...)
			if code != c.code || !regexp.MustCompile(c.out).MatchString(out) || !regexp.MustCompile(c.errors).MatchString(errs) {
				t.Errorf("code %d, want %d\noutput %q\nerrors %q", code, c.code, out, errs)
			}
		})
	}
}

// TestPTXTruncated checks and runs every prefix of a file. Each must give an error or a kernel, and never a panic.
func TestPTXTruncated(t *testing.T) {
	t.Setenv("PATH", "")
	file := ptxFile(t, "sample/softmax")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(text); n += 1 + n%13 {
		if err := os.WriteFile(file, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := rayo(t, "ptx", "check", file); code != 0 && !strings.Contains(out, "line ") {
			t.Fatalf("%d bytes: code %d\n%s%s", n, code, out, errs)
		}
		if code, _, errs := rayo(t, "ptx", "run", file, "softmax", "f32[32]=0", "f32[32]", "32"); code == 0 || errs == "" {
			t.Fatalf("%d bytes: code %d, %q", n, code, errs)
		}
	}
}

func TestPTXArguments(t *testing.T) {
	for text, want := range map[string]string{
		"f32[3]=1,-2.5,1e9": "1 -2.5 1e+09", "f16[2]=0.5,70000": "0.5 +Inf", "bf16[1]=3": "3", "f64[1]=0.1": "0.1",
		"u32[4]=iota": "0 1 2 3", "f32[3]=iota": "0 1 2", "s8[2]=-1,127": "-1 127", "u8[2]=255": "255 255", "s16[1]=-3": "-3",
		"s64[1]=-5": "-5", "s32[1]=-2147483648": "-2147483648", "u64[1]=18446744073709551615": "18446744073709551615", "u16[]=1,2": "1 2", "b32[1]=0xff": "0x000000ff",
	} {
		a, err := parseArgument(text, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		var s []string
		for i := range a.n {
			s = append(s, a.element(a.data, i))
		}
		if got := strings.Join(s, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]any{"7": uint32(7), "-1": uint32(0xffffffff), "0.5": uint32(0x3f000000), "u64:7": uint64(7), "f64:1": uint64(0x3ff0000000000000), "s32:-2": uint32(0xfffffffe)} {
		if a, err := parseArgument(text, 1); err != nil || a.value() != want {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
	for _, text := range []string{"", "x", "f32", "f32[", "f32[]", "f32[-1]", "f32[0]", "f32[9999999999999]", "f32[2]=1,2,3", "f32[2]=x", "f32[2]x", "g32[2]", "u8[1]=256", "u32:-1", "f16:1", "u64[99999999]", "f32[1]=@nowhere", "f32[]=5"} {
		if a, err := parseArgument(text, 1); err == nil {
			t.Errorf("%q is %+v", text, a)
		}
	}
}

// TestPTXBareNumbers checks that a number without a type gets the type of its parameter or gives an error.
func TestPTXBareNumbers(t *testing.T) {
	for _, c := range []struct {
		text, typ string
		want      any // nil: refused
	}{
		{"2", "f32", uint32(0x40000000)}, {"-3", "f32", uint32(0xc0400000)}, {"1e3", "f32", uint32(0x447a0000)},
		{"2", "f64", uint64(0x4000000000000000)}, {"0.5", "b32", uint32(0x3f000000)}, {"7", "b32", uint32(7)},
		{"7", "u64", uint64(7)}, {"-1", "u32", uint32(0xffffffff)}, {"-1", "s64", uint64(math.MaxUint64)},
		{"18446744073709551615", "u64", uint64(math.MaxUint64)}, {"f32:2", "u32", uint32(0x40000000)}, {"7", "u16", uint32(7)},
		{"4.0", "u32", nil}, {"1e3", "s32", nil}, {"4294967296", "u32", nil}, {"99999999999999999999", "u64", nil},
	} {
		a, err := parseArgument(c.text, 1)
		if err == nil {
			err = a.as(c.typ)
		}
		switch {
		case c.want == nil && err == nil:
			t.Errorf("%s for a parameter of type %s is %v", c.text, c.typ, a.value())
		case c.want != nil && (err != nil || a.value() != c.want):
			t.Errorf("%s for a parameter of type %s: %+v, %v", c.text, c.typ, a, err)
		}
	}
	file := filepath.Join(t.TempDir(), "put.ptx")
	const text = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry put(.param .u64 y, .param .f32 v)\n" +
		"{\n\t.reg .b64 %rd1;\n\t.reg .f32 %f1;\n\tld.param.u64 %rd1, [y];\n\tld.param.f32 %f1, [v];\n\tst.global.f32 [%rd1], %f1;\n\tret;\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := rayo(t, "ptx", "run", "--block", "1", file, "put", "f32[1]", "2"); code != 0 || !strings.Contains(out, " 2\n") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := rayo(t, "ptx", "run", "--block", "1", file, "put", "f32[1]", "x:2"); code == 0 || errs == "" {
		t.Errorf("code %d", code)
	}
}

func FuzzPTXArgument(f *testing.F) {
	for _, s := range []string{"7", "-0.5", "f32[4]=1,2,3,4", "u8[3]=random", "f16[]=1,2", "s64:-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "@") || strings.Contains(s, "0000") { // files and large arrays
			return
		}
		if a, err := parseArgument(s, 1); err == nil && a.array && a.data != nil && len(a.data) != a.n*elementSizes[a.typ] {
			t.Errorf("%q: %d bytes for %d elements", s, len(a.data), a.n)
		}
	})
}
