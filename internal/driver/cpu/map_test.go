package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// threadCounts are the numbers of threads that tests open devices with. A browser always has one
// thread.
var threadCounts = func() []int {
	if runtime.GOOS == "js" {
		return []int{1}
	}
	return []int{1, 2, 4}
}()

// callerThreads are the numbers of threads for tests with one calling goroutine. They exclude a
// single thread under the race detector, because without concurrency it cannot find anything.
var callerThreads = func() []int {
	if testutil.Raced && len(threadCounts) > 1 {
		return threadCounts[1:]
	}
	return threadCounts
}()

// attrsOf returns parameters for an elementwise operation.
func attrsOf(o *op.Operation) op.Attrs {
	switch o {
	case op.Clip:
		return op.Floats(-0.5, 0.75)
	case op.Scale, op.AddScalar, op.Axpy, op.Lerp:
		return op.Floats(0.3)
	}
	return o.Defaults()
}

// typings returns the lists of operand types that an operation supports.
func typings(o *op.Operation, a *op.Attrs) [][]op.DType {
	_, arity := o.Arity()
	var all [][]op.DType
	for _, t := range op.DTypes() {
		in := make([]op.DType, arity)
		for i := range in {
			in[i] = t
		}
		if o == op.Where {
			in[0] = op.Bool
		}
		if _, err := o.Types(a, in); err == nil {
			all = append(all, in)
		}
	}
	return all
}

// single adds a step of one elementwise operation over operands of the given
// shapes.
func (r *rig) single(o *op.Operation, a op.Attrs, types []op.DType, shapes []op.Shape) {
	r.t.Helper()
	out, err := op.Broadcast(shapes...)
	if err != nil {
		r.t.Fatal(err)
	}
	f := &driver.Fused{Shape: out, Out: []int{len(types)}}
	var arrays []*op.Array
	var args []int
	for i, t := range types {
		s, v := r.input(t, shapes[i])
		arrays = append(arrays, v)
		f.In = append(f.In, r.operand(s, out))
		args = append(args, i)
	}
	results, err := o.Types(&a, types)
	if err != nil {
		r.t.Fatal(err)
	}
	want, err := o.Reference(&a, arrays, types)
	if err != nil {
		r.t.Fatal(err)
	}
	f.Body = []driver.Instr{{Op: o, Attrs: a, Args: args, Type: results[0]}}
	s := r.output(results[0], want[0], o.Check)
	r.p.Steps = append(r.p.Steps, driver.Step{Post: f, Out: []driver.Operand{r.operand(s, nil)}})
}

func TestElementwise(t *testing.T) {
	for _, threads := range callerThreads[:min(2, len(callerThreads))] {
		elementwise(t, open(t, threads))
	}
}

// TestWithoutLoops computes elementwise operations with the kernels of a page that has only basic ones:
// see mapNamed.
func TestWithoutLoops(t *testing.T) {
	was := mapNamed
	defer func() { mapNamed = was }()
	mapNamed = func(name string) simd.MapFunc {
		if name == "copy" || name == "fill" || strings.HasPrefix(name, "cast.") || strings.Contains(name, ".shift_") ||
			strings.HasPrefix(name, "code.round_") {
			return simd.Map(name)
		}
		return nil
	}
	elementwise(t, open(t, 1))
}

// elementwise computes all elementwise operations.
func elementwise(t *testing.T, d *processor) {
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise || o == op.Cast {
			continue
		}
		a := attrsOf(o)
		for _, types := range typings(o, &a) {
			for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 1000, 4099} {
				if !chosen(3) {
					continue
				}
				r := newRig(t, uint64(n))
				shapes := make([]op.Shape, len(types))
				for i := range shapes {
					shapes[i] = op.Shape{n}
				}
				r.single(o, a, types, shapes)
				what := fmt.Sprintf("%s %v of %d", o.Name(), types, n)
				r.run(d, what)
				if out := r.p.Steps[0].Out[0]; out.Type == op.F32 && !slices.ContainsFunc(types, func(t op.DType) bool { return t != op.F32 }) {
					r.immediate(d, what)
				}
			}
		}
	}
}

func TestCast(t *testing.T) {
	d := open(t, 2)
	for _, from := range op.DTypes() {
		for _, to := range op.DTypes() {
			r := newRig(t, 3)
			r.single(op.Cast, op.CastTo(to), []op.DType{from}, []op.Shape{{1037}})
			// A cast rounds to its type. The reference does not round its results, so the test
			// rounds them.
			for i, v := range r.want[0].want.Data {
				r.want[0].want.Data[i] = to.Round(v)
			}
			r.run(d, fmt.Sprintf("%v to %v", from, to))
			if from == op.F32 && to == op.F32 {
				r.immediate(d, "float32 to float32")
			}
		}
	}
}

// spreads has shapes of operands that broadcast to the first shape.
var spreads = [][]op.Shape{
	{{7, 13}, {7, 13}, {1}, {13}, {7, 1}, {}},
	{{3, 700}, {3, 700}, {700}, {3, 1}},
	{{2000, 3}, {2000, 3}, {3}, {2000, 1}},
	{{5, 4, 6, 3}, {5, 4, 6, 3}, {6, 3}, {3}, {5, 4, 1, 1}, {5, 1, 1, 1}, {5, 4, 6, 1}, {4, 6, 3}},
	{{2, 3000}, {2, 3000}, {3000}, {2, 1}},
	{{9, 60, 2}, {60, 2}, {2}, {9, 1, 1}, {9, 60, 1}},
	{{70, 64}, {64}, {70, 1}, {1, 1}},
}

func TestSpreads(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for _, o := range []*op.Operation{op.Add, op.Sub, op.Div, op.Pow, op.Less, op.Greater, op.Axpy, op.Fma, op.Where, op.Maximum} {
			a := attrsOf(o)
			for _, types := range typings(o, &a) {
				for _, set := range spreads {
					full := set[0]
					for _, s := range set[1:] {
						for at := range types {
							if !chosen(10) {
								continue
							}
							shapes := make([]op.Shape, len(types))
							for i := range shapes {
								shapes[i] = full
							}
							shapes[at] = s
							if len(types) == 3 {
								// The second operand broadcasts in another way.
								shapes[(at+1)%3] = set[1+(at+len(s))%(len(set)-1)]
							}
							r := newRig(t, uint64(at))
							r.single(o, a, types, shapes)
							r.run(d, fmt.Sprintf("%s %v of %v", o.Name(), types, shapes))
						}
					}
				}
			}
		}
	}
}
