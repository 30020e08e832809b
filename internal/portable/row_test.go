package portable

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// rowTrial is a row operation on x. mask says which weights it has, from the first on.
func rowTrial(rnd *rand.Rand, o *op.Operation, x *op.Array, mask int) *trial {
	c := &trial{o: o, attrs: o.Defaults()}
	_, cols := x.Shape.Rows()
	for i := range o.Inputs() {
		switch {
		case i == 0:
			c.values, c.types = append(c.values, x), append(c.types, op.F32)
		case mask>>(i-1)&1 != 0:
			c.values, c.types = append(c.values, normal(rnd, cols)), append(c.types, op.F32)
		default:
			c.values, c.types = append(c.values, nil), append(c.types, op.InvalidType)
		}
	}
	return c
}

var rowShapes = [][]int{{1}, {2, 3}, {33, 4}, {3, 17}, {5, 127}, {2, 129}, {2, 1021}, {1, 1025}, {4097}, {2, 8195}}

func TestRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	for _, o := range op.Catalogue() {
		if o.Class() != op.Row {
			continue
		}
		t.Run(o.Name(), func(t *testing.T) {
			for i, shape := range rowShapes {
				rowTrial(rnd, o, normal(rnd, shape...), i).everyVariant(t, true)
			}
			for _, vs := range [][]float64{{missing}, {inf}, {-inf}, {inf, -inf}, {1e-40}, {88, 87.5}, {-1e30, 1e15}, {1e38, 2e38, 3e38}} {
				for _, shape := range [][]int{{2, 2}, {7, 5}, {2, 300}, {1, 5000}} {
					if testing.Short() && rand.IntN(3) > 0 {
						continue
					}
					rowTrial(rnd, o, with(rnd, normal(rnd, shape...), vs...), 3).everyVariant(t, false)
				}
			}
			// A part of a row is -Inf, but not the whole row.
			long := normal(rnd, 2, 4200)
			for i := range 4100 {
				long.Data[i] = -inf
			}
			rowTrial(rnd, o, long, 0).everyVariant(t, false)
			x := normal(rnd, 3, 5)
			for i := range x.Data {
				x.Data[i] = -inf
			}
			rowTrial(rnd, o, x, 0).everyVariant(t, false)
		})
	}
}

// TestLongRows computes rows that are too long for the registers of a workgroup. Misaligned rows also
// use workgroup memory.
func TestLongRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm} {
		shifted := normal(rnd, 2, 59396)
		for i := range shifted.Data {
			shifted.Data[i] = float64(float32(shifted.Data[i] + 100))
		}
		masked := normal(rnd, 1, 70001)
		for i := range masked.Data[:69000] {
			masked.Data[i] = -inf
		}
		for i, x := range []*op.Array{shifted, normal(rnd, 1, 70001), masked, with(rnd, normal(rnd, 1, 61000), -inf, 88), with(rnd, normal(rnd, 1, 61000), missing)} {
			c := rowTrial(rnd, o, x, i)
			for _, name := range []string{"kept1024", "kept1024-subgroups", "edgeskept1024", "edgeskept1024-subgroups", "edgessplit", "edgessplit-subgroups"} {
				if strings.HasPrefix(name, "edges") && x.Shape[1]%4 == 0 {
					continue
				}
				r, err := c.request(Target{Lanes: 1024, Shared: 48 << 10, Subgroups: true, Subgroup: 32})
				if err != nil {
					t.Fatal(err)
				}
				r.Variant = name
				if err := c.run(&rig{subgroup: 32}, r); err != nil {
					t.Errorf("%v %v, variant %q: %v", o, r.In, name, err)
				}
			}
		}
	}
}

// TestPartsOfRaggedRows uses rows whose last part is full, short or empty, and which begin at any
// position.
func TestPartsOfRaggedRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 16))
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm} {
		for i, cols := range []int{4097, 4099, 4103, 4109, 4111, 8195, 12301} {
			x := normal(rnd, 9, cols)
			for k := range x.Data {
				x.Data[k] = float64(float32(x.Data[k] + 50))
			}
			for k := range x.Data[:cols-3] {
				x.Data[2*cols+k] = -inf // all but the last elements
			}
			x.Data[4*cols], x.Data[5*cols-1] = missing, 1e30
			for k := 6 * cols; k < 8*cols; k++ { // far from 0, and close to each other
				x.Data[k] = float64(float32(rnd.NormFloat64()/1024 - 1000))
			}
			c := rowTrial(rnd, o, x, i)
			for _, name := range []string{"edgessplit", "edgessplit-subgroups", "edgesflow128-subgroups", "edgesflow256", "edgesflow256-subgroups"} {
				if !sampled() {
					continue
				}
				r, err := c.request(Target{Lanes: 256, Subgroups: true, Subgroup: 32})
				if err != nil {
					t.Fatal(err)
				}
				r.Variant = name
				if err := c.run(&rig{check: i%3 == 0, subgroup: 32}, r); err != nil {
					t.Errorf("%v %v, variant %q: %v", o, r.In, name, err)
				}
			}
		}
	}
}

// plannedAs returns the plan of a trial by a variant.
func plannedAs(t *testing.T, c *trial, variant string) (*Request, *Plan) {
	t.Helper()
	r, err := c.request(Target{Subgroups: true, Subgroup: 32})
	if err != nil {
		t.Fatal(err)
	}
	r.Variant = variant
	p, err := For(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// TestLookBackFallback orders the workgroups so that those that wait for partials run before those
// that compute them. The waiting lanes must then compute the partials themselves.
func TestLookBackFallback(t *testing.T) {
	rnd := rand.New(rand.NewPCG(17, 18))
	const behind = 4 * 6 // bytes of the parameters before Behind
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm} {
		for i, cols := range []int{4100, 8300, 9001} {
			x := normal(rnd, 3, cols)
			x.Data[cols], x.Data[3*cols-1] = missing, -inf
			c := rowTrial(rnd, o, x, i)
			for _, name := range []string{"flow256", "flow128-subgroups", "flow256-subgroups", "edgesflow256", "edgesflow128-subgroups", "edgesflow256-subgroups"} {
				if edges := strings.HasPrefix(name, "edges"); edges != (cols%4 != 0) || !sampled() {
					continue
				}
				r, p := plannedAs(t, c, name)
				params, ahead := p.Stages[1].Params, 9
				if strings.Contains(name, "128") {
					ahead = 8
				}
				if was := binary.NativeEndian.Uint32(params[behind:]); was != uint32((cols-1)/minPart+ahead<<20/(4*minPart)) {
					t.Fatalf("%d parts are looked at before", was)
				}
				clear(params[behind:][:4])
				if err := c.runPlan(&rig{subgroup: 32}, r, p); err != nil {
					t.Errorf("%v %v, variant %q: %v", o, r.In, name, err)
				}
			}
		}
	}
}

// TestJoinedParts computes a row of so many parts that a separate launch combines their partials.
func TestJoinedParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 20))
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm} {
		for i, cols := range []int{maxMerged*minPart + 4, maxMerged*minPart + 37} {
			x := normal(rnd, 1, cols)
			for k := range x.Data {
				x.Data[k] = float64(float32(x.Data[k] + 20))
			}
			c := rowTrial(rnd, o, x, i)
			name := []string{"split-subgroups", "edgessplit-subgroups"}[i]
			r, p := plannedAs(t, c, name)
			if n := len(p.Stages); n != 3+i {
				t.Errorf("%v, variant %q: %d launches", o, name, n)
			}
			if err := c.runPlan(&rig{subgroup: 32}, r, p); err != nil {
				t.Errorf("%v %v, variant %q: %v", o, r.In, name, err)
			}
		}
	}
}

// TestLookBackChosen checks that devices that support look-back use it for long rows.
func TestLookBackChosen(t *testing.T) {
	ordered := Target{Lanes: 1024, Shared: 48 << 10, Subgroups: true, Subgroup: 32, F16: true, Ordered: true}
	other := ordered
	other.Ordered = false
	for _, x := range []struct {
		o       *op.Operation
		typ     op.DType
		shape   op.Shape
		weights int
		target  Target
		want    string
	}{
		{op.Softmax, op.F32, op.Shape{512, 65536}, 0, ordered, "kept1024-subgroups"},
		{op.Softmax, op.F32, op.Shape{512, 65540}, 0, ordered, "flow256-subgroups"},
		{op.LogSoftmax, op.F32, op.Shape{512, 70001}, 0, ordered, "edgesflow256-subgroups"},
		{op.LogSoftmax, op.F32, op.Shape{512, 70001}, 0, other, "edgeskept1024-subgroups"},
		{op.RMSNorm, op.F32, op.Shape{700, 49156}, 1, ordered, "flow256-subgroups"},
		{op.LayerNorm, op.F32, op.Shape{200, 200001}, 2, ordered, "edgesflow128-subgroups"},
		{op.LayerNorm, op.F32, op.Shape{200, 200000}, 2, ordered, "flow128-subgroups"},
		{op.LayerNorm, op.F32, op.Shape{200, 200000}, 2, other, "split-subgroups"},
		{op.LayerNorm, op.F32, op.Shape{64, 1 << 20}, 2, ordered, "split-subgroups"},
		{op.Softmax, op.F32, op.Shape{64, 1 << 20}, 0, ordered, "flow256-subgroups"},
		{op.Softmax, op.F32, op.Shape{32, 2 << 20}, 0, ordered, "split-subgroups"},
		{op.Softmax, op.F32, op.Shape{100, 200000}, 0, ordered, "split-subgroups"},
		{op.Softmax, op.F16, op.Shape{512, 200000}, 0, ordered, "split-subgroups"},
	} {
		r := &Request{Op: x.o, Attrs: x.o.Defaults(), In: []Array{{Type: x.typ, Shape: x.shape}}, Out: []Array{{Type: x.typ, Shape: x.shape}}, Target: x.target}
		for i := range len(x.o.Inputs()) - 1 {
			w := Array{Type: x.typ, Shape: x.shape[1:]}
			if i >= x.weights {
				w = Array{}
			}
			r.In = append(r.In, w)
		}
		p, err := For(r)
		if err != nil {
			t.Errorf("%v %v: %v", x.o, x.shape, err)
		} else if p.Variant != x.want {
			t.Errorf("%v of %v %v: %s, not %s", x.o, x.typ, x.shape, p.Variant, x.want)
		}
	}
}
