//go:build wazero && !js

package wazero

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/kernels"
	"github.com/rayo-go/rayo/op"
)

// elementwise is an operation over operands of one type, and its parameters.
type elementwise struct {
	name  string
	o     *op.Operation
	attrs op.Attrs
	types []op.DType
	ps    []float32
}

// operations enters all elementwise operations that have kernels.
func operations(s *kernels.Set) (all []elementwise) {
	for _, d := range []op.DType{op.F32, op.I32, op.U32} {
		for _, o := range op.Catalogue() {
			if o.Class() != op.Elementwise || o == op.Cast {
				continue
			}
			e := elementwise{name: d.String() + "." + o.Name(), o: o, attrs: o.Defaults()}
			n, _ := o.Arity()
			for range n {
				e.types = append(e.types, d)
			}
			if o == op.Where {
				e.types[0] = op.Bool
			}
			root, err := irhook.Expression(o, &e.attrs, e.types)
			if err != nil {
				continue
			}
			x, err := wasm.Lower(root)
			if err != nil {
				continue
			}
			for _, p := range o.Params() {
				e.ps = append(e.ps, p.Default)
			}
			s.Map(e.name, x)
			all = append(all, e)
		}
	}
	return all
}

// special are what is rarely right by chance.
var special = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-40, 3e38, 0.5, 2.5, 88.8, -104}

// value returns operand i of kind d.
func (h *host) value(d op.DType) float64 {
	switch {
	case d == op.Bool:
		return float64(h.random.IntN(2))
	case d == op.I32:
		return float64(int32(h.random.Uint32()))
	case d == op.U32:
		return float64(h.random.Uint32())
	case h.random.IntN(4) == 0:
		return special[h.random.IntN(len(special))]
	case h.random.IntN(4) == 0:
		return float64(float32(math.Ldexp(h.random.Float64()*2-1, h.random.IntN(28)-14)))
	}
	return float64(float32(h.random.Float64()*12 - 6))
}

// far are the operations whose kernels hold up to ir.TrigLimit.
var far = map[*op.Operation]bool{op.Lookup("sin"): true, op.Lookup("cos"): true, op.Lookup("tan"): true}

func TestElementwise(t *testing.T) {
	s := kernels.NewElementwise()
	all := operations(s)
	if len(all) < 100 {
		t.Fatalf("only %d operations have kernels", len(all))
	}
	h := start(t, s)
	for _, e := range all {
		for _, n := range h.lengths() {
			h.forget()
			h.elementwise(e, n)
		}
	}
}

// forget forgets arrays without writing guards where none were written.
func (h *host) forget() {
	for at := uint32(arrays); at < h.top+128; at += 4 {
		h.memory.WriteUint32Le(at, guard)
	}
	h.top = arrays
}

func (h *host) elementwise(e elementwise, n int) {
	use := optest.Use{Op: e.o, Attrs: &e.attrs, Types: e.types}
	c := call{kernel: "map", core: "map." + e.name, ints: []int{n}, floats: e.ps}
	c.pointers = append(c.pointers, 0)
	for _, d := range e.types {
		a := op.NewArray(op.Shape{n})
		for i := range a.Data {
			a.Data[i] = h.value(d)
			if far[e.o] && math.Abs(a.Data[i]) > ir.TrigLimit {
				a.Data[i] = 1 // package simd computes these itself
			}
		}
		use.Values = append(use.Values, a)
		c.pointers = append(c.pointers, h.bytes(optest.Encode(a, d)))
	}
	c.pointers[0] = h.room(n)
	h.do(c)
	h.read(c.pointers[0], n)
	out, _ := h.memory.Read(c.pointers[0], uint32(4*n))
	types, err := e.o.Types(&e.attrs, e.types)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := use.Compare(types, [][]byte{out}); err != nil {
		h.t.Errorf("%s of %d: %v", e.name, n, err)
	}
}

// near reports whether got is want but for so many roundings of the magnitude.
func near(got float32, want, magnitude, roundings float64) bool {
	if want != want {
		return got != got
	}
	return math.Abs(float64(got)-want) <= roundings*0x1p-24*magnitude+1e-37
}

func TestReductions(t *testing.T) {
	h := start(t, kernels.New())
	references := map[string]func(x, y []float32) (v, magnitude float64){
		"sum": func(x, _ []float32) (v, m float64) { return each(x, x, func(a, _ float64) float64 { return a }) },
		"sumabs": func(x, _ []float32) (v, m float64) {
			return each(x, x, func(a, _ float64) float64 { return math.Abs(a) })
		},
		"sumsquares": func(x, _ []float32) (v, m float64) { return each(x, x, func(a, _ float64) float64 { return a * a }) },
		"dot":        func(x, y []float32) (v, m float64) { return each(x, y, func(a, b float64) float64 { return a * b }) },
		"max": func(x, _ []float32) (v, m float64) {
			return extreme(x, func(v, a float64) float64 { return max(v, a) })
		},
		"min": func(x, _ []float32) (v, m float64) {
			return extreme(x, func(v, a float64) float64 { return min(v, a) })
		},
		"maxabs": func(x, _ []float32) (v, m float64) {
			return extreme(append([]float32{0}, x...), func(v, a float64) float64 { return max(v, math.Abs(a)) })
		},
	}
	for name, reference := range references {
		for _, n := range h.lengths() {
			h.forget()
			x, y := h.numbers(n), h.numbers(n)
			if h.random.IntN(4) == 0 {
				x[h.random.IntN(n)] = float32(math.NaN())
			}
			want, magnitude := reference(x, y)
			got := h.do(call{kernel: "reduce." + name, pointers: []uint32{h.floats(x), h.floats(y)}, ints: []int{n}})[0]
			if !near(got, want, magnitude, float64(n+8)) {
				t.Errorf("%s of %d: %v, want %v", name, n, got, want)
			}
			h.rows(name, n, reference)
		}
	}
}

// rows compares the kernel of many rows.
func (h *host) rows(name string, cols int, reference func(x, y []float32) (v, m float64)) {
	const rows = 3
	x, y := h.numbers(rows*cols), h.numbers(rows*cols)
	dst := h.room(rows)
	h.do(call{kernel: "reduce." + name + ".rows", pointers: []uint32{dst, h.floats(x), h.floats(y)}, ints: []int{rows, cols}})
	for r, got := range h.read(dst, rows) {
		want, magnitude := reference(x[r*cols:][:cols], y[r*cols:][:cols])
		if !near(got, want, magnitude, float64(cols+8)) {
			h.t.Errorf("%s, row %d of %d: %v, want %v", name, r, cols, got, want)
		}
	}
}

func each(x, y []float32, f func(a, b float64) float64) (v, m float64) {
	for i := range x {
		e := f(float64(x[i]), float64(y[i]))
		v += e
		m += math.Abs(e)
	}
	return v, m
}

func extreme(x []float32, f func(v, a float64) float64) (v, m float64) {
	v = float64(x[0])
	for _, e := range x {
		v = f(v, float64(e))
	}
	return v, 0
}

func TestIndex(t *testing.T) {
	h := start(t, kernels.New())
	for _, n := range h.lengths() {
		for _, v := range []float32{1.25, float32(math.NaN())} {
			h.forget()
			x := h.numbers(n)
			at := h.random.IntN(n + 1)
			if at < n {
				x[at], x[n-1] = v, v
			}
			got := math.Float32bits(h.do(call{kernel: "reduce.index", pointers: []uint32{h.floats(x)}, ints: []int{n}, floats: []float32{v}})[0])
			if int(got) != at {
				t.Errorf("%v in %d elements: %d, want %d", v, n, got, at)
			}
		}
	}
}

func TestRows(t *testing.T) {
	h := start(t, kernels.New())
	for _, n := range h.lengths() {
		h.forget()
		x := h.numbers(n)
		x[0], x[n-1] = float32(math.Inf(-1)), -300
		dst, at := h.room(n), h.floats(x)
		sum := h.do(call{kernel: "exp.store", pointers: []uint32{dst, at}, ints: []int{n}, floats: []float32{4}})[0]
		total := 0.0
		for i, got := range h.read(dst, n) {
			want := math.Exp(float64(x[i] - 4))
			total += want
			if !near(got, want, want, 3) {
				t.Errorf("exp(%v): %v, want %v", x[i]-4, got, want)
			}
		}
		if !near(sum, total, total, float64(n+8)) {
			t.Errorf("sum of %d: %v, want %v", n, sum, total)
		}
		s := h.do(call{kernel: "exp.sum", pointers: []uint32{0, at}, ints: []int{n}, floats: []float32{4}})[0]
		if s != sum {
			t.Errorf("sum of %d without storing: %v, not %v", n, s, sum)
		}
		h.affine(x, at)
	}
}

func TestSoftmax(t *testing.T) {
	h := start(t, kernels.New())
	const rows = 5
	for _, cols := range h.lengths() {
		h.forget()
		x, inf := h.numbers(rows*cols), float32(math.Inf(1))
		x[h.random.IntN(cols)] = -inf
		x[cols+h.random.IntN(cols)] = float32(math.NaN())
		x[2*cols+h.random.IntN(cols)] = inf
		for i := range cols {
			x[3*cols+i] = -inf
		}
		dst := h.room(rows * cols)
		h.do(call{kernel: "softmax.rows", pointers: []uint32{dst, h.floats(x)}, ints: []int{rows, cols}})
		for i, got := range h.read(dst, rows*cols) {
			row := x[i/cols*cols:][:cols]
			top, _ := extreme(row, func(v, a float64) float64 { return max(v, a) })
			sum := 0.0
			for _, v := range row {
				sum += math.Exp(float64(v) - top)
			}
			want := math.Exp(float64(x[i])-top) / sum
			if !near(got, want, want, float64(cols+16)) {
				t.Fatalf("row %d of %d: element %d is %v, want %v", i/cols, cols, i%cols, got, want)
			}
		}
	}
}

func (h *host) affine(x []float32, at uint32) {
	n := len(x)
	x[0] = 1
	h.memory.WriteFloat32Le(at, 1)
	gamma, beta := h.numbers(n), h.numbers(n)
	weights := [2]uint32{h.floats(gamma), h.floats(beta)}
	for i := range 4 {
		dst := h.room(n)
		p := []uint32{dst, at, weights[0] * uint32(i&1), weights[1] * uint32(i>>1)}
		h.do(call{kernel: "affine", pointers: p, ints: []int{n}, floats: []float32{0.5, 2, -1}})
		for j, got := range h.read(dst, n) {
			want := (float64(x[j])-0.5)*2 - 1
			if i&1 != 0 {
				want *= float64(gamma[j])
			}
			if i&2 != 0 {
				want += float64(beta[j])
			}
			if !near(got, want, 4*(math.Abs(float64(x[j]))+8), 4) {
				h.t.Errorf("affine %d of %v: %v, want %v", i, x[j], got, want)
			}
		}
	}
}

func TestTiles(t *testing.T) {
	h := start(t, kernels.New())
	for rows := 1; rows <= kernels.TileRows; rows++ {
		for _, n := range h.lengths() {
			for _, k := range []int{0, 1, 3, 4, 9} {
				h.forget()
				h.tile(rows, min(n, 40), k)
			}
		}
	}
}

func (h *host) tile(rows, n, k int) {
	panels := (n + kernels.TileCols - 1) / kernels.TileCols
	a, b, c, bias := h.numbers(rows*k), h.numbers(panels*kernels.TileCols*k), h.numbers(rows*n), h.numbers(n)
	add, biased := h.random.IntN(2), h.random.IntN(2)
	pa, pb, pbias := h.floats(a), h.floats(b), h.floats(bias)*uint32(biased)
	dst := h.floats(c)
	h.do(call{kernel: fmt.Sprintf("gemm.tile%d", rows), pointers: []uint32{pa, pb, dst, pbias},
		ints: []int{4 * k, 4 * kernels.TileCols, 4 * kernels.TileCols * k, 4 * n, k, n, add}})
	for i, got := range h.read(dst, rows*n) {
		r, j := i/n, i%n
		want := float64(add)*float64(c[i]) + float64(biased)*float64(bias[j])
		for p := range k {
			want += float64(a[r*k+p]) * float64(b[j/kernels.TileCols*kernels.TileCols*k+p*kernels.TileCols+j%kernels.TileCols])
		}
		if !near(got, want, 16*float64(k+2), float64(k+2)) {
			h.t.Fatalf("%d rows, n %d, k %d, add %d, bias %d: element %d is %v, want %v", rows, n, k, add, biased, i, got, want)
		}
	}
}

func TestQuantized(t *testing.T) {
	h := start(t, kernels.New())
	for name, f := range map[string]block.Format{"q40": block.Q4_0, "q80": block.Q8_0, "q4k": block.Q4_K, "q6k": block.Q6_K} {
		for blocks := 1; blocks <= 3; blocks++ {
			h.clear()
			n := blocks * f.Elements()
			x, numbers := h.numbers(n), make([]float32, n)
			size, err := f.Size(n)
			if err != nil {
				t.Fatal(err)
			}
			src := make([]byte, size)
			for i := range src {
				src[i] = byte(h.random.Uint32())
			}
			for i := range blocks { // scales are numbers
				at := map[block.Format]int{block.Q6_K: 208}[f] + i*f.Bytes()
				binary.LittleEndian.PutUint16(src[at:], 0x2c00|uint16(h.random.Uint32N(1024)))
				if f == block.Q4_K {
					binary.LittleEndian.PutUint16(src[at+2:], 0xa800|uint16(h.random.Uint32N(1024)))
				}
			}
			if err := f.Dequantize(numbers, src); err != nil {
				t.Fatal(err)
			}
			sums := make([]float32, n/32)
			for i, v := range x {
				sums[i/32] += v
			}
			from, dst := h.bytes(src), h.room(n)
			h.do(call{kernel: "dequantize." + name, pointers: []uint32{dst, 0, from}, ints: []int{blocks}})
			for i, got := range h.read(dst, n) {
				if got != numbers[i] {
					t.Fatalf("%s: number %d is %v, want %v", name, i, got, numbers[i])
				}
			}
			got := h.do(call{kernel: "dot." + name, pointers: []uint32{h.floats(x), h.floats(sums), from}, ints: []int{blocks}})[0]
			want, magnitude := each(x, numbers, func(a, b float64) float64 { return a * b })
			if !near(got, want, 8*magnitude+8, float64(n)) {
				t.Errorf("%s: product %v, want %v", name, got, want)
			}
		}
	}
}

// TestList makes many calls at once: what one writes the next one reads.
func TestList(t *testing.T) {
	s := kernels.NewElementwise()
	operations(s)
	h := start(t, s)
	x := h.numbers(37)
	a := h.floats(x)
	largest := h.do(
		call{kernel: "map", core: "map.f32.square", pointers: []uint32{a, a}, ints: []int{len(x)}},
		call{kernel: "map", core: "map.f32.neg", pointers: []uint32{a, a}, ints: []int{len(x)}},
		call{kernel: "reduce.maxabs", pointers: []uint32{a}, ints: []int{len(x)}})[0]
	var want float32
	for _, v := range x {
		want = max(want, float32(v)*float32(v))
	}
	if float32(largest) != want {
		t.Errorf("%v, want %v", largest, want)
	}
}
