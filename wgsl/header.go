package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// header appends everything before the body of the entry point.
func (w *printer) header(b []byte) []byte {
	p := w.p
	if w.t.has(Half) && usesHalf(p) != "" {
		w.needs |= Half
	}
	if w.needs&Half != 0 {
		b = append(b, "enable f16;\n"...)
	}
	if w.needs&Subgroups != 0 && w.t.Consumer == Tint {
		// The compiler's analysis of uniform control flow rejects values that it cannot follow.
		// Programs have subgroup operations only in uniform control flow, so the check is not
		// needed.
		b = append(b, "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n"...)
	}
	if len(p.Uniforms) > 0 {
		b = w.paramBlock(b)
	}
	for i := range p.Bindings {
		x := &p.Bindings[i]
		b = append(b, "@group(0) @binding("...)
		b = appendUint(b, uint32(i))
		if x.Access == ir.ReadOnly {
			b = append(b, ") var<storage, read> "...)
		} else {
			b = append(b, ") var<storage, read_write> "...)
		}
		b = append(b, w.buffers[i]...)
		b = append(b, ": array<"...)
		b = appendElement(b, x.Type, x.Width, x.Access == ir.Atomic)
		b = append(b, ">;\n"...)
	}
	for i := range p.Shared {
		x := &p.Shared[i]
		b = append(b, "var<workgroup> "...)
		b = append(b, w.arrays[i]...)
		b = append(b, ": array<"...)
		b = appendElement(b, x.Type, x.Width, x.Atomic)
		b = append(b, ", "...)
		b = appendUint(b, x.Len)
		b = append(b, ">;\n"...)
	}
	return w.entryPoint(w.functions(b))
}

// entryPoint appends the head of the entry point.
func (w *printer) entryPoint(b []byte) []byte {
	p := w.p
	b = append(b, "@compute @workgroup_size("...)
	b = appendUint(b, p.Local[0])
	if p.Local[1] > 1 || p.Local[2] > 1 {
		b = appendUint(append(b, ", "...), p.Local[1])
	}
	if p.Local[2] > 1 {
		b = appendUint(append(b, ", "...), p.Local[2])
	}
	b = append(b, ")\nfn "...)
	b = append(b, w.entry...)
	b = append(b, '(')
	first := true
	for i, words := range builtInWords {
		if w.builtIns>>i&1 == 0 {
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b = append(b, "@builtin("...)
		b = append(b, words[1]...)
		b = append(b, ") "...)
		b = append(b, words[0]...)
		b = append(b, ": "...)
		b = append(b, words[2]...)
	}
	return append(b, ") {\n"...)
}

// paramBlock appends the parameters as a structure in uniform memory. Unused members fill the gaps
// between the offsets.
func (w *printer) paramBlock(b []byte) []byte {
	p := w.p
	b = append(b, "struct Params {\n"...)
	end := uint32(0)
	for i := range p.Uniforms {
		u := &p.Uniforms[i]
		if u.Offset > end && i == 0 {
			b = append(b, "  @size("...)
			b = appendUint(b, u.Offset)
			b = append(b, ") unused: u32,\n"...)
		}
		end = u.Offset + 4
		b = append(b, "  "...)
		if i+1 < len(p.Uniforms) && p.Uniforms[i+1].Offset > end {
			b = append(b, "@size("...)
			b = appendUint(b, p.Uniforms[i+1].Offset-u.Offset)
			b = append(b, ") "...)
		}
		b = append(b, w.uniform[i]...)
		b = append(b, ": "...)
		b = append(b, typeName(u.Type, 1)...)
		b = append(b, ",\n"...)
	}
	b = append(b, "}\n@group(0) @binding("...)
	b = appendUint(b, uint32(len(p.Bindings)))
	return append(b, ") var<uniform> "+wordParams+": Params;\n"...)
}

func appendElement(b []byte, t ir.Type, width uint8, atomic bool) []byte {
	if atomic {
		b = append(b, "atomic<"...)
	}
	b = append(b, typeName(t, width)...)
	if atomic {
		b = append(b, '>')
	}
	return b
}

// functions appends the functions that the body calls.
func (w *printer) functions(b []byte) []byte {
	called := func(visit func(k *composition, width int)) {
		for _, c := range composedList() {
			if w.composed[c] == 0 {
				continue
			}
			for i, k := range compositions(c, w.t) {
				for n := range widthSuffix {
					if w.composed[c]>>(len(widthSuffix)*i+n)&1 != 0 {
						visit(k, n)
					}
				}
			}
		}
	}
	for _, c := range []ir.Code{ir.Sin, ir.Cos} {
		if w.composed[c] != 0 {
			w.composed[c] |= 1 // vector versions call the scalar version
		}
	}
	called(func(k *composition, width int) {
		for f, bits := range k.fns[width] {
			w.fns[f] |= bits
		}
	})
	for f := range w.fns {
		for n := range widthSuffix {
			if w.fns[f]>>n&1 != 0 {
				b = append(b, library()[f][n]...)
				b = append(b, '\n')
			}
		}
	}
	called(func(k *composition, width int) {
		b = append(b, k.text[width]...)
		b = append(b, '\n')
	})
	for i := range w.exchanges {
		b = w.exchangeFunction(b, &w.exchanges[i])
	}
	return b
}

// exchangeFunction appends a compare-and-exchange that does not fail spuriously if the element
// equals the expected value.
func (w *printer) exchangeFunction(b []byte, e *exchange) []byte {
	var t, name string
	if e.shared {
		t, name = typeName(w.p.Shared[e.index].Type, 1), w.arrays[e.index]
	} else {
		t, name = typeName(w.p.Bindings[e.index].Type, 1), w.buffers[e.index]
	}
	b = append(b, "fn "...)
	b = append(b, e.name...)
	b = append(b, "(index: u32, expected: "...)
	b = append(b, t...)
	b = append(b, ", desired: "...)
	b = append(b, t...)
	b = append(b, ") -> "...)
	b = append(b, t...)
	b = append(b, ` {
  var old = expected;
  loop {
    let result = atomicCompareExchangeWeak(&`...)
	b = append(b, name...)
	return append(b, `[index], expected, desired);
    old = result.old_value;
    if result.exchanged || (old != expected) { break; }
  }
  return old;
}
`...)
}
