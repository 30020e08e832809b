package devicetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// axesOn compares reductions and row operations along random axes with the references over rows that are
// gathered element by element. It also tests products whose leading extents broadcast.
func axesOn(t *testing.T, open Open) {
	dev := open(t)
	defer dev.Close()
	g := newGenerator(testutil.Seed(t))
	os := []*op.Operation{op.Softmax, op.LogSoftmax}
	for _, o := range op.Catalogue() {
		if o.Class() == op.Reduction || o.Scans() {
			os = append(os, o)
		}
	}
	trials := 100
	if short() {
		trials = 15
	}
	for range trials {
		o := os[g.IntN(len(os))]
		s := make(op.Shape, 1+g.IntN(4))
		for i := range s {
			s[i] = []int{1, 2, 3, 5, 7, 16}[g.IntN(6)]
		}
		if g.IntN(4) == 0 {
			s[g.IntN(len(s))] = 200 + g.IntN(2000)
			s = s[:min(len(s), 3)]
		}
		var axes []int
		for i := range s {
			if g.IntN(2) == 0 || i == len(s)-1 && len(axes) == 0 {
				axes = append(axes, i)
			}
		}
		along, keep := op.Axes(axes...), g.IntN(2) == 0
		if g.IntN(2) == 0 {
			along = op.Axes(axes[0] - len(s))
			axes = axes[:1]
		}
		if keep {
			along = along.KeepDims()
		}
		if err := reducesAlong(t, dev, g, o, s, axes, along); err != nil {
			t.Errorf("%s of %v along %v: %v", o, s, axes, err)
		}
	}
	productsSpread(t, dev, g)
	softmaxOfColumns(t, dev, g)
	columnsStay(t, dev, g)
	scansStored(t, dev, g)
}

// scansStored stores scans along an axis other than the last in buffers: in another buffer, in the buffer of
// the operand, and in a buffer that another step reads between the scan and the store. All numbers are
// integers, so that every order of additions has the same result.
func scansStored(t *testing.T, dev *device.Device, g *generator) {
	ctx, s := t.Context(), op.Shape{3, 70, 18}
	numbers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(g.IntN(100))
		}
		return x
	}
	filled := func(x []float32) *device.Buffer {
		buf, err := dev.NewBuffer(ctx, op.F32, s...)
		if err == nil {
			err = device.Write(ctx, buf, x)
		}
		if err != nil {
			t.Fatal(err)
		}
		return buf
	}
	x, old := numbers(3*70*18), numbers(3*70*18)
	for axis, apart := range []int{70 * 18, 18, 1} {
		want, sums := slices.Clone(x), make([]float32, 70*18)
		for i := range want {
			if i/apart%s[axis] > 0 {
				want[i] += want[i-apart]
			}
			sums[i%len(sums)] += old[i]
		}
		for _, how := range []string{"other", "same", "read"} {
			from, to := filled(x), filled(old)
			if how == "same" {
				to.Close()
				to = from
			}
			b := batch.New(dev)
			y := b.Cumsum(b.Use(from), op.ScanOpts{Along: op.Axes(axis)})
			before := make([]float32, len(sums))
			if how == "read" {
				batch.ReadInto(b, b.Sum(b.Use(to), op.Axes(0)), before)
			}
			b.Store(to, 0, y)
			if err := b.Execute(ctx); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, len(x))
			if err := device.Read(ctx, got, to); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("cumsum along axis %d, stored in the %s buffer: got %v, want %v", axis, how, got[:8], want[:8])
			}
			if how == "read" && !slices.Equal(before, sums) {
				t.Errorf("a sum of the buffer before the store saw the store")
			}
			from.Close()
			to.Close()
		}
		scansPermuted(t, dev, x, want, s, axis)
	}
}

// scansPermuted permutes a scan along an axis in other ways than the scan itself does. x has the shape s, and
// want is its running sum.
func scansPermuted(t *testing.T, dev *device.Device, x, want []float32, s op.Shape, axis int) {
	for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}} {
		b := batch.New(dev)
		scan := func(x batch.Value) batch.Value {
			return b.Permute(b.Cumsum(x, op.ScanOpts{Along: op.Axes(axis)}), order...)
		}
		got, again := make([]float32, len(x)), make([]float32, len(x))
		batch.ReadInto(b, scan(b.Upload(x, s...)), got)
		sorted, _ := b.Sort(scan(b.Relu(b.Upload(x, s...)))) // a scan from temporaries to temporaries
		batch.ReadInto(b, sorted, again)
		if err := b.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		moved := make([]float32, len(x))
		for i, p := range permuted(s, order) {
			moved[i] = want[p]
		}
		if !slices.Equal(got, moved) {
			t.Errorf("cumsum along axis %d, permuted by %v: got %v, want %v", axis, order, got[:8], moved[:8])
		}
		for row := range slices.Chunk(moved, s[order[2]]) {
			slices.Sort(row)
		}
		if !slices.Equal(again, moved) {
			t.Errorf("sorted rows of a cumsum along axis %d, permuted by %v: got %v, want %v", axis, order, again[:8], moved[:8])
		}
	}
}

// columnsStay checks that plans of reductions along an axis other than the last have no copies.
func columnsStay(t *testing.T, dev *device.Device, g *generator) {
	for _, s := range []op.Shape{{300, 70}, {5, 40, 33}} {
		x := g.tensor(op.F32, s, g.tame)
		b := batch.New(dev)
		in, along := arrayOf(x).upload(b, s), op.Axes(len(s)-2)
		for _, y := range []batch.Value{b.Sum(in, along), b.Mean(in, along), b.Max(in, along), b.LogSumExp(in, along)} {
			plan, err := b.Compile(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			if n := copiesOf(plan); n > 0 {
				t.Errorf("%d copies of %v:\n%v", n, s, plan)
			}
		}
	}
}

// softmaxOfColumns computes softmax along an axis before the last for lengths around the limits of kernels that keep columns
// in registers.
func softmaxOfColumns(t *testing.T, dev *device.Device, g *generator) {
	lengths := []int{2, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 512, 513, 1024, 1025}
	for i, n := range lengths {
		if short() && i%6 != g.IntN(6) {
			continue
		}
		s := op.Shape{1 + g.IntN(3), n, 16 + g.IntN(20)}
		for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax} {
			if err := reducesAlong(t, dev, g, o, s, []int{1}, op.Axes(1)); err != nil {
				t.Errorf("%s of %v along 1: %v", o, s, err)
			}
		}
	}
}

func reducesAlong(t *testing.T, dev *device.Device, g *generator, o *op.Operation, s op.Shape, axes []int, along op.Along) error {
	var others []int
	for i := range s {
		if !slices.Contains(axes, i) {
			others = append(others, i)
		}
	}
	order := append(slices.Clone(others), axes...)
	b := batch.New(dev)
	var in []batch.Value
	var rows []*op.Array
	n := 1
	for _, i := range axes {
		n *= s[i]
	}
	var places []int // places of the elements of the rows in the operand
	for range o.Inputs() {
		x := g.tensor(op.F32, s, g.tame)
		in = append(in, arrayOf(x).upload(b, s))
		places = permuted(s, order)
		r := op.NewArray(op.Shape{len(x.Data) / n, n})
		for i, p := range places {
			r.Data[i] = x.Data[p]
		}
		rows = append(rows, r)
	}
	var v batch.Value
	a := o.Defaults()
	args := make([]reflect.Value, 0, 3)
	for _, x := range in {
		args = append(args, reflect.ValueOf(x))
	}
	switch {
	case o == op.Var:
		args = append(args, reflect.ValueOf(op.VarOpts{Along: along}))
	case o.Scans():
		args = append(args, reflect.ValueOf(op.ScanOpts{Along: along}))
	default:
		args = append(args, reflect.ValueOf(along))
	}
	m, ok := method(b, o.Name())
	if !ok {
		return fmt.Errorf("a batch has no method %s", o.Name())
	}
	v = m.Call(args)[0].Interface().(batch.Value)
	shape := op.Shape{}
	for i, d := range s {
		switch {
		case o.Class() == op.Row || !slices.Contains(axes, i):
			shape = append(shape, d)
		case along.Keeps():
			shape = append(shape, 1)
		}
	}
	if o.Class() == op.Reduction {
		a = a.Rows()
	}
	types := slices.Repeat([]op.DType{op.F32}, len(rows))
	want, err := o.Reference(&a, rows, types)
	if err != nil {
		return err
	}
	made, err := o.Types(&a, types)
	if err != nil {
		return err
	}
	got := newArray(made[0], len(want[0].Data))
	got.get(b, v)
	if b.Err() == nil && !v.Shape().Equal(shape) {
		t.Errorf("%s of %v along %v has shape %v, want %v", o, s, axes, v.Shape(), shape)
	}
	if err := b.Execute(t.Context()); err != nil {
		return err
	}
	for i, w := range want[0].Data {
		at, mag := i, 0.0
		if o.Class() == op.Row {
			at = places[i]
		}
		if want[0].Mag != nil {
			mag = want[0].Mag[i]
		}
		if err := o.Check(made[0].Float64(got.data, at), w, mag, made[0]); err != nil {
			return err
		}
	}
	return nil
}

// permuted returns, for each element of the value with its axes in another order,
// its place in the value of shape s.
func permuted(s op.Shape, order []int) []int {
	n, _ := s.Size()
	places := make([]int, n)
	for i := range places {
		digits, rest := make([]int, len(s)), i
		for k := len(order) - 1; k >= 0; k-- {
			digits[order[k]] = rest % s[order[k]]
			rest /= s[order[k]]
		}
		for k, d := range digits {
			places[i] = places[i]*s[k] + d
		}
	}
	return places
}

// productsSpread multiplies batches of matrices whose leading extents broadcast.
func productsSpread(t *testing.T, dev *device.Device, g *generator) {
	for _, c := range [][2]op.Shape{
		{{2, 3, 4, 5}, {3, 5, 6}}, {{3, 1, 4, 5}, {2, 5, 6}}, {{4, 5}, {3, 5, 6}}, {{1, 4, 5}, {3, 5, 6}}, {{2, 1, 3, 7}, {1, 4, 7, 2}},
	} {
		x, y := g.tensor(op.F32, c[0], g.tame), g.tensor(op.F32, c[1], g.tame)
		b := batch.New(dev)
		v := b.MatMul(arrayOf(x).upload(b, c[0]), arrayOf(y).upload(b, c[1]), batch.None)
		if b.Err() != nil {
			t.Error(b.Err())
			continue
		}
		s := v.Shape()
		n, _ := s.Size()
		got := newArray(op.F32, n)
		got.get(b, v)
		if err := b.Execute(t.Context()); err != nil {
			t.Error(err)
			continue
		}
		lead, _ := op.Broadcast(c[0][:len(c[0])-2], c[1][:len(c[1])-2])
		k, m, cols := c[0][len(c[0])-1], c[0][len(c[0])-2], c[1][len(c[1])-1]
		xAt, err := op.Index(c[0][:len(c[0])-2], lead)
		yAt, err2 := op.Index(c[1][:len(c[1])-2], lead)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for i := range n {
			q, r, j := i/(m*cols), i/cols%m, i%cols
			want, mag := 0.0, 0.0
			for l := range k {
				p := x.Data[(xAt(q)*m+r)*k+l] * y.Data[(yAt(q)*k+l)*cols+j]
				want += p
				mag += max(p, -p)
			}
			if err := op.MatMul.Check(op.F32.Float64(got.data, i), want, mag*op.Depth(k), op.F32); err != nil {
				t.Fatalf("%v times %v: element %d: %v", c[0], c[1], i, err)
			}
		}
	}
}
