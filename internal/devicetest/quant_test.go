package devicetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// quantised returns a random tensor of a quantised type. Half of the tensors hold quantised random weights. The
// others have random bytes with finite scales, so that all levels, signs and small scales occur.
func (g *generator) quantised(d op.DType, s op.Shape) Tensor {
	f := d.Block()
	n, err := s.Size()
	if err != nil {
		panic(err) // the shapes of cases are written in this package
	}
	t := Tensor{Type: d, Shape: s, Data: make([]float64, n), Blocks: make([]byte, n/f.Elements()*f.Bytes())}
	if g.IntN(2) == 0 && !f.Layout().Weighted {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(g.NormFloat64())
		}
		if err := f.Quantize(t.Blocks, x); err != nil {
			panic(err)
		}
	} else {
		for i := 0; i < len(t.Blocks); i += f.Bytes() {
			b := t.Blocks[i:][:f.Bytes()]
			for again := true; again; again = f.Check(b) != nil {
				for j := range b {
					b[j] = byte(g.Uint32())
				}
				if scale := f.Layout().Scale; scale.Encoding == block.E8M0 {
					b[scale.Number[0].At/8] = byte(118 + g.IntN(20)) // sums of more terms are not finite
				}
			}
		}
	}
	return t
}

// damage gives the first block of row i a scale that is not finite, if the scales of the format are numbers of two
// bytes.
func (t *Tensor) damage(i int) {
	f := t.Type.Block()
	scale := f.Layout().Scale
	if scale.Encoding != block.Binary16 || len(scale.Number) != 1 {
		return
	}
	b := t.Blocks[i*t.Shape[1]/f.Elements()*f.Bytes():][scale.Number[0].At/8:]
	b[0], b[1] = 1, 0x7e
}

// native reports whether devices have specific kernels for blocks of a type. The kernels of other types share a
// decoder that is generated from the layouts of the blocks, so they need fewer cases.
func native(w op.DType) bool { return w <= op.Q6_K }

// matMulQ multiplies by every quantised type.
func (g *generator) matMulQ(d op.DType, short bool) []Case {
	if !d.Float() {
		return nil
	}
	var cases []Case
	put := func(a op.Shape, w Tensor, bias bool, act int) *Case {
		o := activations[act%len(activations)]
		c := Case{Op: op.MatMulQ, Options: op.MatMulQOpts{Int8: len(cases)%3 == 1, Act: o.o, ActParams: o.params}, In: []Tensor{g.tensor(d, a, g.tame), w}}
		if bias {
			c.In = append(c.In, g.tensor(d, op.Shape{w.Shape[0]}, g.tame))
		}
		cases = append(cases, c)
		return &cases[len(cases)-1]
	}
	// Rows, blocks in a row, columns.
	sizes := [][3]int{{1, 1, 1}, {2, 3, 5}, {1, 5, 33}, {5, 2, 40}, {17, 1, 67}, {3, 0, 4}, {0, 1, 3}, {2, 1, 0}, {1, 2, 257}, {33, 3, 16}}
	if !short {
		sizes = append(sizes, [3]int{70, 5, 131}, [3]int{1, 9, 700}, [3]int{9, 17, 40})
	}
	for k, w := range op.QuantTypes() {
		e := w.Block().Elements()
		for i, s := range sizes {
			if d != op.F32 && i%3 != k%3 || !native(w) && i%5 != k%5 {
				continue
			}
			put(op.Shape{s[0], s[1] * e}, g.quantised(w, op.Shape{s[2], s[1] * e}), (i+k)%2 == 0, i+k)
		}
		if e == 32 && d == op.F32 && native(w) {
			// Rows that are not multiples of the vectors of kernels.
			put(op.Shape{3, 32 * 33}, g.quantised(w, op.Shape{19, 32 * 33}), true, 0)
		}
		put(op.Shape{2, 3, e}, g.quantised(w, op.Shape{7, e}), k%2 == 0, 0)
		if !native(w) {
			continue
		}
		// NaN and infinities must affect only their own row or column.
		for _, v := range []float64{math.NaN(), math.Inf(-1)} {
			c := put(op.Shape{3, 2 * e}, g.quantised(w, op.Shape{35, 2 * e}), false, 0)
			c.In[0].Data[2*e+e-1] = v
		}
		c := put(op.Shape{2, 2 * e}, g.quantised(w, op.Shape{35, 2 * e}), false, 0)
		c.In[1].damage(33)
		if d == op.F32 {
			// Rows of equal numbers, and rows whose numbers differ so much that rounding to 8 bits makes the small ones 0.
			c = put(op.Shape{3, 2 * e}, g.quantised(w, op.Shape{20, 2 * e}), true, 0)
			for i := range c.In[0].Data {
				c.In[0].Data[i] = []float64{1, -3, float64(op.F32.Round(math.Exp(float64(i % 13))))}[i/(2*e)]
			}
			c.Options = op.MatMulQOpts{Int8: true}
		}
	}
	return cases
}

// gatherQ gathers rows of quantised tables.
func (g *generator) gatherQ() []Case {
	var cases []Case
	for _, d := range op.QuantTypes() {
		e := d.Block().Elements()
		for _, table := range []op.Shape{{1, e}, {33, 3 * e}, {0, e}, {3, 0}} {
			for _, ids := range []op.Shape{{}, {9}, {0}, {2, 65}} {
				if !native(d) && len(ids) != 1 {
					continue
				}
				cases = append(cases, Case{Op: op.Gather, In: []Tensor{g.quantised(d, table), g.ids(ids, table[0])}})
			}
		}
	}
	return cases
}

// blocks checks that quantised arrays are unchanged after a copy to the device and back, that batches and plans
// accept them, and that operations without support for them return errors.
func blocks(t *testing.T, open Open) {
	dev := start(t, open)
	ctx := t.Context()
	before := dev.Stats()
	g := newGenerator(testutil.Seed(t))
	for _, d := range op.QuantTypes() {
		e := d.Block().Elements()
		for _, s := range []op.Shape{{3, e}, {5, 3 * e}, {0, e}, {2, 0}, {e}, {2, 2, e}} {
			w := g.quantised(d, s)
			// Bytes may begin anywhere.
			raw := append(make([]byte, 1, 1+len(w.Blocks)), w.Blocks...)[1:]
			buf, err := device.UploadBlocks(ctx, dev, raw, d, s...)
			if err != nil {
				t.Fatalf("%v %v: %v", d, s, err)
			}
			back := bytes.Repeat([]byte{0xa5}, len(raw)+3)
			if err := device.ReadBlocks(ctx, back[1:len(raw)+1], buf); err != nil || !bytes.Equal(back[1:len(raw)+1], raw) {
				t.Errorf("%v %v came back different, %v", d, s, err)
			}
			if back[0] != 0xa5 || back[len(raw)+1] != 0xa5 {
				t.Errorf("%v %v: ReadBlocks wrote beyond its slice", d, s)
			}
			if buf.Type() != d || !buf.Shape().Equal(s) {
				t.Errorf("a buffer of %v %v, want %v %v", buf.Type(), buf.Shape(), d, s)
			}
			buf.Close()
		}
		resident(t, dev, g, d)
		zeros, err := dev.NewBuffer(ctx, d, 3, e)
		if err != nil {
			t.Fatal(err)
		}
		b := batch.New(dev)
		x := b.Upload(make([]float32, e), 1, e)
		y := b.MatMulQ(b.AddScalar(x, 1), b.Use(zeros), batch.None)
		if err := b.Execute(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := batch.Read[float32](ctx, b, y); err != nil || !slices.Equal(got, []float32{0, 0, 0}) {
			t.Errorf("%v: a new buffer gives %v, %v", d, got, err)
		}
		refusals(t, dev, zeros)
		zeros.Close()
	}
	if after := dev.Stats(); after.Buffers != before.Buffers || after.BufferBytes != before.BufferBytes {
		t.Errorf("%d buffers of %d bytes, before %d of %d", after.Buffers, after.BufferBytes, before.Buffers, before.BufferBytes)
	}
}

// resident multiplies by weights that stay on the device, in a plan that runs several times.
func resident(t *testing.T, dev *device.Device, g *generator, d op.DType) {
	t.Helper()
	ctx := t.Context()
	k := 2 * d.Block().Elements()
	w := g.quantised(d, op.Shape{37, k})
	buf, err := device.UploadBlocks(ctx, dev, w.Blocks, d, w.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	b := batch.New(dev)
	in := make([]float32, 3*k)
	x := b.Upload(in, 3, k)
	// The operations after the product may be fused into it.
	y := b.Scale(b.Relu(b.MatMulQ(x, b.Use(buf), batch.None)), 2)
	plan, err := b.Compile(ctx, y)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c := Case{Op: op.MatMulQ, In: []Tensor{g.tensor(op.F32, op.Shape{3, k}, g.tame), w}}
		for i, v := range c.In[0].Data {
			in[i] = float32(v)
		}
		want, _, err := c.Reference()
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float32, 3*37)
		if err := plan.Run(ctx, batch.BindInput(x, in), batch.BindOutput(y, out)); err != nil {
			t.Fatal(err)
		}
		for i, v := range want[0].Data {
			if err := op.MatMulQ.Check(float64(out[i]), 2*max(v, 0), 2*want[0].Mag[i], op.F32); err != nil {
				t.Errorf("%v: element %d of a plan: %v", d, i, err)
				break
			}
		}
	}
}

// refusals checks that mistakes with quantised arrays return errors. buf holds three blocks.
func refusals(t *testing.T, dev *device.Device, buf *device.Buffer) {
	t.Helper()
	ctx := t.Context()
	d, raw := buf.Type(), make([]byte, 3*buf.Type().Block().Bytes())
	e := d.Block().Elements()
	up := func(raw []byte, d op.DType, s ...int) error {
		b, err := device.UploadBlocks(ctx, dev, raw, d, s...)
		if b != nil {
			b.Close()
		}
		return err
	}
	record := func(f func(b *batch.Batch) batch.Value) error {
		b := batch.New(dev)
		return b.Execute(ctx, f(b))
	}
	row := make([]float32, e)
	for what, c := range map[string]struct{ got, want error }{
		"too few bytes":     {up(raw[1:], d, 3, e), device.ErrShape},
		"too many bytes":    {up(raw, d, 2, e), device.ErrShape},
		"parts of blocks":   {up(raw, d, 3*e, 1), device.ErrShape},
		"no shape":          {up(raw, d), device.ErrShape},
		"negative":          {up(raw, d, -3, -e), device.ErrShape},
		"overflow":          {up(raw, d, math.MaxInt, e), device.ErrShape},
		"not quantised":     {up(raw, op.F32, 3, e), device.ErrUnsupported},
		"no type":           {up(raw, op.DType(99), 3, e), device.ErrUnsupported},
		"floats":            {device.Read(ctx, row, buf), device.ErrUnsupported},
		"written as floats": {device.Write(ctx, buf, row), device.ErrUnsupported},
		"read too few":      {device.ReadBlocks(ctx, raw[1:], buf), device.ErrShape},
		"read nil":          {device.ReadBlocks(ctx, raw, nil), device.ErrForeign},
		"a buffer of parts": {second(dev.NewBuffer(ctx, d, 3, e+1)), device.ErrShape},
		"batch, few bytes":  {record(func(b *batch.Batch) batch.Value { return b.UploadBlocks(raw[1:], d, 3, e) }), device.ErrShape},
		"batch, floats":     {record(func(b *batch.Batch) batch.Value { return b.UploadBlocks(raw, op.F32, 3, e) }), device.ErrUnsupported},
		"arithmetic":        {record(func(b *batch.Batch) batch.Value { return b.Relu(b.Use(buf)) }), device.ErrUnsupported},
		"an ordinary matrix": {record(func(b *batch.Batch) batch.Value {
			return b.MatMul(b.Upload(row, 1, e), b.Use(buf), batch.None, op.MatMulOpts{TransB: true})
		}), device.ErrUnsupported},
		"another length": {record(func(b *batch.Batch) batch.Value { return b.MatMulQ(b.Upload(row, 2, e/2), b.Use(buf), batch.None) }), device.ErrShape},
		"as a result":    {record(func(b *batch.Batch) batch.Value { return b.Use(buf) }), device.ErrUnsupported},
		"stored": {func() error {
			b := batch.New(dev)
			b.Store(buf, 0, b.Upload(row))
			return b.Execute(ctx)
		}(), device.ErrUnsupported},
		"stored blocks": {func() error {
			b := batch.New(dev)
			b.Store(buf, 0, b.UploadBlocks(raw, d, 3, e))
			return b.Execute(ctx)
		}(), device.ErrUnsupported},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%v, %s: %v, want %v", d, what, c.got, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if b, err := device.UploadBlocks(cancelled, dev, raw, d, 3, e); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: upload with a cancelled context: %v, %v", d, b, err)
	}
}
