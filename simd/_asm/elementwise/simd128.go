package main

import (
	"bytes"
	"fmt"

	"github.com/rayo-go/rayo/internal/wasm"
	module "github.com/rayo-go/rayo/internal/wasm/kernels"
)

// writeSIMD128 returns the module of kernels for WebAssembly, those that are not
// elementwise too, and the Go file that finds them in its table.
func writeSIMD128(ks []*kernel) (code, table []byte) {
	s := module.New()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n//go:build js && wasm && !noasm\n\npackage simd\n\nimport \"math\"\n", header)
	fmt.Fprintf(&b, "\n// The places of the kernels in the table of the module.\nconst (\n")
	for i, n := range s.Names() {
		fmt.Fprintf(&b, "place%s = %d\n", camel(n), i)
	}
	fmt.Fprintf(&b, ")\n\nfunc mapSIMD128(name string) MapFunc {\nswitch name {\n")
	for _, k := range ks {
		e, err := wasm.Lower(k.root)
		if err != nil {
			continue // plain Go
		}
		place := len(s.Names())
		s.Map(k.name, e)
		if k.trig() {
			fmt.Fprintf(&b, "case %s:\nkernel := mapAtPlace(%d, %d)\n", k.quoted(), place, e.Params())
			fmt.Fprintf(&b, "return func(dst, x, y, z *float32, n int, p *float32) { trig(kernel, SIMD128, math.%s, dst, x, n) }\n", k.symbol())
			continue
		}
		fmt.Fprintf(&b, "case %s:\nreturn mapAtPlace(%d, %d)\n", k.quoted(), place, e.Params())
	}
	fmt.Fprintf(&b, "}\nreturn nil\n}\n")
	return s.Bytes(), gofmt(b.Bytes())
}
