package main

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/rayo-go/rayo/internal/wasm"
	module "github.com/rayo-go/rayo/internal/wasm/kernels"
)

// writeSIMD128 returns the module of kernels for WebAssembly, including those that are not
// elementwise, and the Go file that finds them in its table. Every page loads this file, so it has
// only the sorted names and numbers.
func writeSIMD128(ks []*kernel) (code, table []byte) {
	s := module.New()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n//go:build (js || wazero) && !noasm\n\npackage simd\n", header)
	fmt.Fprintf(&b, "\n// The indices of the kernels in the table of functions of the module.\nconst (\n")
	for i, n := range s.Names() {
		fmt.Fprintf(&b, "place%s = %d\n", camel(n), i)
	}
	fmt.Fprintf(&b, ")\n\n// mapPlaces has, for each of mapNames, 4 times the index of the elementwise loop in the table, plus the number of parameters. 0 means that there is no loop.\nvar mapPlaces = [len(mapNames)]uint16{\n")
	places := map[string]int{}
	for _, k := range ks {
		e, err := wasm.Lower(k.root)
		if err != nil || k.integerScalar() {
			continue // plain Go
		}
		place := len(s.Names())
		s.Map(k.name, e)
		for _, n := range k.names {
			places[n] = place<<2 | e.Params()
		}
	}
	for i, n := range allNames(ks) {
		if places[n] > 0 {
			fmt.Fprintf(&b, "%d: %d, // %s\n", i, places[n], n)
		}
	}
	fmt.Fprintf(&b, "}\n")
	return s.Bytes(), gofmt(b.Bytes())
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
