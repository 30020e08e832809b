package main

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/rayo-go/rayo/internal/wasm"
	module "github.com/rayo-go/rayo/internal/wasm/kernels"
)

// writeSIMD128 returns the two modules of kernels for WebAssembly, and the Go file that finds the kernels in their
// tables. Every page loads the first module and this file, so it has only the sorted names and numbers.
func writeSIMD128(ks []*kernel) (elements, arrays, table []byte) {
	s, others := module.NewElementwise(), module.New()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n//go:build (js || wazero) && !noasm\n\npackage simd\n", header)
	places := func(prefix string, s *module.Set) {
		for i, n := range s.Names() {
			fmt.Fprintf(&b, "%s%s = %d\n", prefix, camel(n), i)
		}
		fmt.Fprintf(&b, ")\n")
	}
	fmt.Fprintf(&b, "\n// The indices of the kernels in the table of functions of the elementwise module.\nconst (\n")
	places("element", s)
	fmt.Fprintf(&b, "\n// The indices of the kernels in the table of functions of the other module.\nconst (\n")
	places("place", others)
	fmt.Fprintf(&b, "\n// mapPlaces has, for each of mapNames, 4 times the index of the elementwise loop in the table, plus the number of parameters. 0 means that there is no loop.\nvar mapPlaces = [len(mapNames)]uint16{\n")
	loops := map[string]int{}
	for _, k := range ks {
		e, err := wasm.Lower(k.root)
		if err != nil || k.integerScalar() {
			continue // plain Go
		}
		place := len(s.Names())
		s.Map(k.name, e)
		for _, n := range k.names {
			loops[n] = place<<2 | e.Params()
		}
	}
	for i, n := range allNames(ks) {
		if loops[n] > 0 {
			fmt.Fprintf(&b, "%d: %d, // %s\n", i, loops[n], n)
		}
	}
	fmt.Fprintf(&b, "}\n")
	return s.Bytes(), others.Bytes(), gofmt(b.Bytes())
}

// allNames returns the names of the kernels, sorted.
func allNames(ks []*kernel) (names []string) {
	for _, k := range ks {
		names = append(names, k.names...)
	}
	for _, h := range halfKernels {
		names = append(names, h.cast())
	}
	sort.Strings(names)
	return names
}
