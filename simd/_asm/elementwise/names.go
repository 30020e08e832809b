package main

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// writeNames writes the list of names and the lookup of the plain Go kernels.
func writeNames(ks []*kernel) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\npackage simd\n\nimport \"math\"\n", header)
	var names []string
	for _, k := range ks {
		names = append(names, k.names...)
	}
	for _, h := range halfKernels {
		names = append(names, h.cast())
	}
	sort.Strings(names)
	fmt.Fprintf(&b, "\nvar mapNames = [...]string{\n")
	for _, n := range names {
		fmt.Fprintf(&b, "%q,\n", n)
	}
	fmt.Fprintf(&b, "}\n")
	lookup(&b, ks, "Generic")
	return gofmt(b.Bytes())
}

// lookup writes the function that finds the kernels of a level.
func lookup(b *bytes.Buffer, ks []*kernel, level string) {
	fmt.Fprintf(b, "\nfunc map%s(name string) MapFunc {\nswitch name {\n", level)
	for _, k := range ks {
		if level != "Generic" && !k.vector {
			continue
		}
		f := "map" + k.symbol() + level
		if k.tailed() && level == "AVX512" {
			f = "near" + k.symbol()
		}
		if k.trig() {
			f = "trig" + k.symbol() + level
		}
		fmt.Fprintf(b, "case %s:\nreturn %s\n", k.quoted(), f)
	}
	if level != "NEON" {
		for _, h := range halfKernels {
			fmt.Fprintf(b, "case %q:\nreturn %s%s\n", h.cast(), strings.ToLower(h.name[:1])+h.name[1:], level)
		}
	}
	fmt.Fprintf(b, "}\nreturn nil\n}\n")
	if level != "NEON" && level != "Generic" {
		for _, h := range halfKernels {
			f := strings.ToLower(h.name[:1]) + h.name[1:]
			fmt.Fprintf(b, "\nfunc %s%s(dst, x, y, z *float32, n int, p *float32) {\n%s(map%s%s, %d, dst, x, n)\n}\n", f, level, f, h.name, level, map[string]int{"AVX2": 8, "AVX512": 16}[level])
		}
	}
	for _, k := range ks {
		s := k.symbol()
		if k.tailed() && level == "AVX512" {
			fmt.Fprintf(b, "\nfunc near%s(dst, x, y, z *float32, n int, p *float32) {\n", s)
			fmt.Fprintf(b, "nearOr(map%sNearAVX512, map%sAVX512, %g, dst, x, n)\n}\n", s, s, -nearLimit)
		}
		if k.trig() {
			fmt.Fprintf(b, "\nfunc trig%s%s(dst, x, y, z *float32, n int, p *float32) {\n", s, level)
			fmt.Fprintf(b, "trig(map%s%s, %s, math.%s, dst, x, n)\n}\n", s, level, level, s)
		}
	}
}

// streamLookup writes the function that finds the kernels that write around
// the caches.
func streamLookup(b *bytes.Buffer, ks []*kernel, level string) {
	fmt.Fprintf(b, "\nfunc mapStream%s(name string) MapFunc {\nswitch name {\n", level)
	for _, k := range ks {
		if k.vector && k.streams() {
			fmt.Fprintf(b, "case %s:\nreturn map%sStream%s\n", k.quoted(), k.symbol(), level)
		}
	}
	fmt.Fprintf(b, "}\nreturn nil\n}\n")
}

// quoted returns the names of the kernel as the list of a case.
func (k *kernel) quoted() string {
	var q []string
	for _, n := range k.names {
		q = append(q, strconv.Quote(n))
	}
	return strings.Join(q, ", ")
}
