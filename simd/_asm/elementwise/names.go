package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
)

// writeNames writes the list of names and the lookup of the plain Go kernels.
func writeNames(ks []*kernel) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\npackage simd\n\nimport \"math\"\n", header)
	fmt.Fprintf(&b, "\nvar mapNames = [...]string{\n")
	for _, n := range allNames(ks) {
		fmt.Fprintf(&b, "%q,\n", n)
	}
	fmt.Fprintf(&b, "}\n")
	lookup(&b, ks, "Generic", "")
	basic(&b, ks)
	return gofmt(b.Bytes())
}

// basic writes the lookup of the plain Go kernels that every program links: those that are short and
// those that the module of WebAssembly lacks.
func basic(b *bytes.Buffer, ks []*kernel) {
	fmt.Fprintf(b, "\nfunc mapBasic(name string) MapFunc {\nswitch name {\n")
	for _, k := range ks {
		if k.basic() {
			fmt.Fprintf(b, "case %s:\nreturn map%sGeneric\n", k.quoted(), k.symbol())
		}
	}
	for _, h := range halfKernels {
		fmt.Fprintf(b, "case %q:\nreturn %s%sGeneric\n", h.cast(), strings.ToLower(h.name[:1]), h.name[1:])
	}
	fmt.Fprintf(b, "}\nreturn nil\n}\n")
}

// basic reports whether the kernel copies, fills, shifts, converts, rounds or reduces integers.
func (k *kernel) basic() bool {
	if _, name, ok := strings.Cut(k.name, "32."); ok && k.root.Code != ir.Convert {
		switch name {
		case "add", "mul", "minimum", "maximum", "shift_left", "shift_right":
			return true
		}
	}
	return k.root.Code == ir.Convert || k.name == "copy" || k.name == "fill" || strings.HasPrefix(k.name, "code.round_")
}

// lookup writes the function that finds the kernels of a level: all kernels, or for the variant
// Stream the kernels with non-temporal stores.
func lookup(b *bytes.Buffer, ks []*kernel, level, variant string) {
	fmt.Fprintf(b, "\nfunc map%s%s(name string) MapFunc {\nswitch name {\n", variant, level)
	suffix := variant + level
	for _, k := range ks {
		if level != "Generic" && !k.vector || level == "Generic" && k.basic() {
			continue
		}
		f := "map" + k.symbol() + suffix
		if k.tailed() && level == "AVX512" {
			f = "near" + k.symbol() + variant
		}
		if k.trig() {
			f = "trig" + k.symbol() + suffix
		}
		fmt.Fprintf(b, "case %s:\nreturn %s\n", k.quoted(), f)
	}
	halves := level != "NEON" && level != "Generic" && variant == ""
	if halves {
		for _, h := range halfKernels {
			fmt.Fprintf(b, "case %q:\nreturn %s%s\n", h.cast(), strings.ToLower(h.name[:1])+h.name[1:], level)
		}
	}
	rest := "nil"
	if level == "Generic" {
		rest = "mapBasic(name)"
	}
	fmt.Fprintf(b, "}\nreturn %s\n}\n", rest)
	if halves {
		for _, h := range halfKernels {
			f := strings.ToLower(h.name[:1]) + h.name[1:]
			fmt.Fprintf(b, "\nfunc %s%s(dst, x, y, z *float32, n int, p *float32) {\n%s(map%s%s, %d, dst, x, n)\n}\n", f, level, f, h.name, level, map[string]int{"AVX2": 8, "AVX512": 16}[level])
		}
	}
	for _, k := range ks {
		s := k.symbol()
		if k.tailed() && level == "AVX512" {
			fmt.Fprintf(b, "\nfunc near%s%s(dst, x, y, z *float32, n int, p *float32) {\n", s, variant)
			fmt.Fprintf(b, "nearOr(map%sNear%s, map%sAVX512, %g, dst, x, n)\n}\n", s, suffix, s, -nearLimit)
		}
		if k.trig() {
			fmt.Fprintf(b, "\nfunc trig%s%s(dst, x, y, z *float32, n int, p *float32) {\n", s, suffix)
			fmt.Fprintf(b, "trig(map%s%s, %s, math.%s, dst, x, n)\n}\n", s, suffix, level, s)
		}
	}
}

// quoted returns the names of the kernel as the list of a case.
func (k *kernel) quoted() string {
	var q []string
	for _, n := range k.names {
		q = append(q, strconv.Quote(n))
	}
	return strings.Join(q, ", ")
}
