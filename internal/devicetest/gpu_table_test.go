//go:build !js

package devicetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// cell is one operation over arrays that stay on a GPU.
type cell struct {
	name   string
	typ    op.DType // of operands and result
	tf32   bool     // products may round their operands to TF32
	shapes [][]int  // of operands
	out    []int
	bytes  float64 // that have to move, or 0
	flops  float64 // or 0
	build  func(r *batch.Batch, x []batch.Value) batch.Value
	peer   string // the same in PyTorch, over x[0], x[1] ...; "" if PyTorch has no such operation
}

// weights are a quantised matrix of a cell, its last operand.
type weights struct {
	typ  op.DType
	rows int
	cols int
}

func elements(s []int) float64 {
	n := 1.0
	for _, d := range s {
		n *= float64(d)
	}
	return n
}

// moves returns a cell that reads its operands once and writes its result once.
func moves(name string, t op.DType, shapes [][]int, out []int, peer string, build func(r *batch.Batch, x []batch.Value) batch.Value) cell {
	n := elements(out)
	for _, s := range shapes {
		n += elements(s)
	}
	return cell{name: fmt.Sprintf("%s/%v", name, t), typ: t, shapes: shapes, out: out, bytes: n * float64(t.Size()), build: build, peer: peer}
}

// chain is forty operations of arithmetic and four functions.
func chain(r *batch.Batch, x []batch.Value) batch.Value {
	v := x[0]
	for i := range 4 {
		for range 5 {
			v = r.AddScalar(r.Scale(v, 0.75), 0.25)
		}
		v = [4]func(batch.Value) batch.Value{r.Tanh, r.Exp, r.Sqrt, r.Sigmoid}[i](v)
		if i == 1 {
			v = r.Abs(v)
		}
	}
	return v
}

// mixed is forty operations of arithmetic and four functions over two arrays, of
// which half cannot become multiply-adds.
func mixed(r *batch.Batch, x []batch.Value) batch.Value {
	v := x[0]
	for i := range 4 {
		for j := range 2 {
			v = r.AddScalar(r.Mul(v, x[1]), 0.5-float32(j))
			v = r.Maximum(r.Sub(v, x[1]), r.Neg(x[0]))
		}
		v = r.Clip(r.Scale(v, 0.875), -4, 4)
		v = [4]func(batch.Value) batch.Value{r.Sigmoid, r.Exp, r.Silu, r.Tanh}[i](v)
	}
	return v
}

// copyCell is the reference for the other cells.
func copyCell() cell { return flatCell("copy", 64<<20) }

// flats are operations over arrays of float32 without rows, by name.
var flats = map[string]struct {
	operands int
	peer     string
	sums     bool // gives one element
	build    func(r *batch.Batch, x []batch.Value) batch.Value
}{
	"copy":              {1, "x[0].clone()", false, func(_ *batch.Batch, x []batch.Value) batch.Value { return x[0] }},
	"relu":              {1, "torch.relu(x[0])", false, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Relu(x[0]) }},
	"tanh":              {1, "torch.tanh(x[0])", false, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Tanh(x[0]) }},
	"exp":               {1, "torch.exp(x[0])", false, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Exp(x[0]) }},
	"gelu":              {1, "F.gelu(x[0])", false, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Gelu(x[0]) }},
	"add":               {2, "x[0]+x[1]", false, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Add(x[0], x[1]) }},
	"chain of 44":       {1, "", false, chain},
	"mixed chain of 52": {2, "", false, mixed},
	"sum":               {1, "torch.sum(x[0])", true, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Sum(x[0]) }},
	"dot":               {2, "torch.dot(x[0],x[1])", true, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Dot(x[0], x[1]) }},
	"max":               {1, "torch.max(x[0])", true, func(r *batch.Batch, x []batch.Value) batch.Value { return r.Max(x[0]) }},
}

// flatCell returns the cell of one of flats over n elements.
func flatCell(name string, n int) cell {
	size, f := fmt.Sprint(n), flats[name]
	if n%(1<<20) == 0 {
		size = fmt.Sprintf("%dM", n>>20)
	}
	shapes, out := make([][]int, f.operands), []int{n}
	for i := range shapes {
		shapes[i] = []int{n}
	}
	if f.sums {
		out = nil
	}
	return moves(name+"/"+size, op.F32, shapes, out, f.peer, f.build)
}

// rowCell returns the cell of an operation on rows of a length, with weights if it
// takes them.
func rowCell(o *op.Operation, t op.DType, cols int) cell {
	type value = batch.Value
	type rec = batch.Batch
	rows, weights := []int{64 << 20 / cols, cols}, []int{cols}
	name := fmt.Sprintf("%s/%d", o.Name(), cols)
	switch o {
	case op.Softmax:
		return moves(name, t, [][]int{rows}, rows, "torch.softmax(x[0],1)", func(r *rec, x []value) value { return r.Softmax(x[0]) })
	case op.LogSoftmax:
		return moves(name, t, [][]int{rows}, rows, "torch.log_softmax(x[0],1)", func(r *rec, x []value) value { return r.LogSoftmax(x[0]) })
	case op.LayerNorm:
		return moves(name, t, [][]int{rows, weights, weights}, rows, "F.layer_norm(x[0],x[1].shape,x[1],x[2])",
			func(r *rec, x []value) value { return r.LayerNorm(x[0], x[1], x[2]) })
	case op.RMSNorm:
		return moves(name, t, [][]int{rows, weights}, rows, "F.rms_norm(x[0],x[1].shape,x[1])",
			func(r *rec, x []value) value { return r.RMSNorm(x[0], x[1]) })
	}
	panic("no operation on rows: " + o.Name())
}

// cells returns the rows of the table in docs/measurements/gpu.md.
func cells() []cell {
	type value = batch.Value
	type rec = batch.Batch
	const n = 64 << 20
	var all []cell
	for _, name := range []string{"copy", "relu", "tanh", "exp", "gelu", "add", "chain of 44"} {
		all = append(all, flatCell(name, n))
	}
	all = append(all, flatCell("relu", n-1), flatCell("chain of 44", n-1), flatCell("mixed chain of 52", n), flatCell("relu", 1<<20),
		flatCell("sum", n), flatCell("dot", n), flatCell("max", n), flatCell("sum", 1<<20))
	for _, cols := range []int{128, 1000, 1024, 4096, 4097, 5000, 8192, 12345, 14001, 16384, 20000, 20011, 30000, 32768, 50000, 50001, 65536} {
		all = append(all, rowCell(op.Softmax, op.F32, cols))
	}
	for _, cols := range []int{128, 1000, 1023, 4096, 4097, 5000, 12345, 14001, 16384, 20000, 20011, 30000, 32768, 50000, 50001, 65536} {
		all = append(all, rowCell(op.LayerNorm, op.F32, cols), rowCell(op.RMSNorm, op.F32, cols))
	}
	const side = 8192
	square, rows, heads := []int{side, side}, []int{n / 1024, 1024}, []int{n / (64 * 128), 64, 128}
	all = append(all,
		moves(fmt.Sprintf("transpose/%d", side), op.F32, [][]int{square}, square, "x[0].t().contiguous()", func(r *rec, x []value) value { return r.Transpose(x[0]) }),
		moves("sum of rows/1024", op.F32, [][]int{rows}, rows[:1], "torch.sum(x[0],1)", func(r *rec, x []value) value { return r.Sum(x[0], op.Axes(-1)) }),
		moves("variance of rows/1024", op.F32, [][]int{rows}, rows[:1], "torch.var(x[0],1,correction=0)", func(r *rec, x []value) value { return r.Var(x[0], op.VarOpts{Along: op.Axes(-1)}) }),
		moves("rope/64x128", op.F32, [][]int{heads}, heads, "", func(r *rec, x []value) value { return r.Rope(x[0], batch.RopeInputs{}) }))
	product := func(t op.DType, m, k, n int) *cell {
		all = append(all, cell{name: fmt.Sprintf("matmul/%dx%dx%d/%v", m, k, n, t), typ: t, shapes: [][]int{{m, k}, {k, n}}, out: []int{m, n},
			flops: 2 * float64(m) * float64(k) * float64(n), peer: "torch.matmul(x[0],x[1])", build: func(r *rec, x []value) value { return r.MatMul(x[0], x[1], batch.None) }})
		return &all[len(all)-1]
	}
	for _, s := range [][3]int{{1000, 1000, 1000}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
		{4095, 1023, 2049}, {777, 3333, 1555}, {8192, 64, 8192}, {3001, 3001, 3001}, {511, 8191, 1021}} {
		product(op.F32, s[0], s[1], s[2])
	}
	for _, s := range [][3]int{{1000, 1000, 1000}, {4096, 4096, 4096}, {8192, 8192, 8192}, {777, 3333, 1555}} {
		c := product(op.F32, s[0], s[1], s[2])
		c.name, c.tf32 = c.name+"/tf32", true
		c.build = func(r *rec, x []value) value { return r.MatMul(x[0], x[1], batch.None, op.MatMulOpts{TF32: true}) }
	}
	for _, t := range []op.DType{op.BF16, op.F16} {
		for _, s := range [][3]int{{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {5000, 5000, 5000}, {1000, 1000, 1000}, {4097, 4097, 4097}, {777, 3333, 1555}} {
			product(t, s[0], s[1], s[2])
		}
	}
	all = append(all, moves("matvec/16384x4096", op.F32, [][]int{{16384, 4096}, {4096}}, []int{16384}, "torch.mv(x[0],x[1])",
		func(r *rec, x []value) value { return r.MatVec(x[0], x[1]) }))
	for _, d := range []int{64, 128} {
		for _, length := range []int{2048, 4096, 8192, 16384} {
			for _, causal := range []bool{true, false} {
				s := []int{4, 32, length, d}
				o := op.AttentionOpts{Causal: causal}
				a := o.Attrs()
				name, flag := "full", "False"
				if causal {
					name, flag = "causal", "True"
				}
				all = append(all, cell{name: fmt.Sprintf("attention/%dx%d/%s/%v", length, d, name, op.F16), typ: op.F16, shapes: [][]int{s, s, s}, out: s,
					flops: op.Attention.Flops(&a, []op.Shape{s, s, s}, []op.Shape{s}),
					peer:  "F.scaled_dot_product_attention(x[0],x[1],x[2],is_causal=" + flag + ")",
					build: func(r *rec, x []value) value { return r.Attention(x[0], x[1], x[2], batch.AttentionInputs{}, o) }})
			}
		}
	}
	return all
}

// typedBuffer returns an array of random numbers on the device.
func typedBuffer(b *testing.B, dev *device.Device, t op.DType, shape []int, rnd *rand.Rand) *device.Buffer {
	b.Helper()
	ctx := context.Background()
	buf, err := dev.NewBuffer(ctx, t, shape...)
	if err != nil {
		b.Fatal(err)
	}
	n := int(elements(shape))
	a := newArray(t, n)
	block := a.data[:min(n, 1<<20-3)*t.Size()]
	for i := range len(block) / t.Size() {
		t.PutFloat64(block, i, rnd.NormFloat64())
	}
	for i := len(block); i < len(a.data); i += len(block) {
		copy(a.data[i:], block)
	}
	switch t {
	case op.F32:
		err = device.Write(ctx, buf, view[float32](a))
	case op.F16:
		err = device.Write(ctx, buf, view[op.Float16](a))
	case op.BF16:
		err = device.Write(ctx, buf, view[op.BFloat16](a))
	case op.U8:
		err = device.Write(ctx, buf, a.data)
	}
	if err != nil {
		b.Fatal(err)
	}
	return buf
}

// onDevice returns the median time of a recording that leaves its result on the
// device, by the device's clock, in seconds.
func onDevice(b *testing.B, dev *device.Device, t op.DType, out []int, r *batch.Batch, v batch.Value) float64 {
	b.Helper()
	ctx := context.Background()
	to, err := dev.NewBuffer(ctx, t, out...)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	r.Store(to, 0, v)
	p, err := r.Profile(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return p.Total.P50.Seconds()
}

// secondsOf returns the time of a cell over random operands.
func secondsOf(b *testing.B, dev *device.Device, c *cell, rnd *rand.Rand) float64 {
	b.Helper()
	r := batch.New(dev)
	var in []batch.Value
	for _, s := range c.shapes {
		buf := typedBuffer(b, dev, c.typ, s, rnd)
		defer buf.Close()
		in = append(in, r.Use(buf))
	}
	return onDevice(b, dev, c.typ, c.out, r, c.build(r, in))
}

func report(b *testing.B, seconds, bytes, flops, peer float64) {
	b.ReportMetric(0, "ns/op") // it has been measured
	b.ReportMetric(seconds*1e6, "µs")
	if bytes > 0 {
		b.ReportMetric(bytes/seconds/1e9, "GB/s")
	}
	if flops > 0 {
		b.ReportMetric(flops/seconds/1e12, "TFLOP/s")
	}
	if peer > 0 {
		b.ReportMetric(peer, "peer-µs")
		b.ReportMetric(peer/(seconds*1e6), "peer/ours")
	}
}

// measured is the result of a cell: its time and that of a peer, if there was one, in seconds.
type measured struct {
	name                         string
	seconds, bytes, flops, peers float64
}

// timeCell measures a cell, beside the peer if there is one.
func timeCell(b *testing.B, dev *device.Device, peer *peer, c *cell, rnd *rand.Rand) measured {
	theirs := 0.0
	if peer != nil && c.peer != "" {
		var err error
		if theirs, err = peer.time(c); err != nil {
			b.Logf("peer: %v", err)
		}
	}
	seconds := secondsOf(b, dev, c, rnd)
	report(b, seconds, c.bytes, c.flops, theirs)
	return measured{c.name, seconds, c.bytes, c.flops, theirs / 1e6}
}

// onTheDevice measures operations over arrays that stay on a GPU, each beside PyTorch
// where RAYO_PEER says how to start that. Run it once: each time is the median of
// thirty.
func onTheDevice(b *testing.B, dev *device.Device) (all []measured) {
	peer := startPeer(b)
	if peer != nil {
		defer peer.stop()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range cells() {
		b.Run(c.name, func(b *testing.B) { all = append(all, timeCell(b, dev, peer, &c, rnd)) })
	}
	for _, w := range []weights{{op.Q4_K, 65536, 8192}, {op.Q6_K, 32768, 8192}, {op.Q8_0, 32768, 8192}, {op.Q4_0, 65536, 8192}, {op.Q5_K, 65536, 8192}} {
		all = append(all, timeQuantised(b, dev, w, rnd, 1, 4, 512)...)
	}
	return all
}

// timeQuantised measures products of one or more rows with quantised weights, which are 256
// copies of random blocks.
func timeQuantised(b *testing.B, dev *device.Device, w weights, rnd *rand.Rand, rows ...int) (all []measured) {
	for _, m := range rows {
		name := fmt.Sprintf("matmul_q/%v/%dx%dx%d", w.typ, m, w.cols, w.rows)
		b.Run(name, func(b *testing.B) {
			tensor := newGenerator(7).quantised(w.typ, op.Shape{w.rows / 256, w.cols})
			raw := bytes.Repeat(tensor.Blocks, 256)
			buf, err := device.UploadBlocks(b.Context(), dev, raw, w.typ, w.rows, w.cols)
			if err != nil {
				b.Fatal(err)
			}
			defer buf.Close()
			x := typedBuffer(b, dev, op.F32, []int{m, w.cols}, rnd)
			defer x.Close()
			r := batch.New(dev)
			seconds := onDevice(b, dev, op.F32, []int{m, w.rows}, r, r.MatMulQ(r.Use(x), r.Use(buf), batch.None))
			read, flops := float64(len(raw)), 2*float64(m)*float64(w.rows)*float64(w.cols)
			if m > 8 {
				read = 0
			} else {
				flops = 0
			}
			report(b, seconds, read, flops, 0)
			all = append(all, measured{name, seconds, read, flops, 0})
		})
	}
	return all
}

// timeFormats measures matrix-vector products with weights of every block format, rows of 8,192
// numbers and 256 MB in all, beside a copy.
func timeFormats(b *testing.B, dev *device.Device) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, c := range cells() {
		if c.name == "copy/64M/f32" {
			b.Run(c.name, func(b *testing.B) { timeCell(b, dev, nil, &c, rnd) })
		}
	}
	for _, typ := range op.QuantTypes() {
		row, err := typ.Bytes(op.Shape{1, 8192})
		if err != nil {
			b.Fatal(err)
		}
		timeQuantised(b, dev, weights{typ, (1 << 28) / row / 256 * 256, 8192}, rnd, 1)
	}
}
