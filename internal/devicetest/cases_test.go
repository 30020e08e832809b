package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/rayo-go/rayo/op"
)

// Options is an option struct of package op.
type Options interface{ Attrs() op.Attrs }

// Tensor is an operand: values that its element type holds exactly.
type Tensor struct {
	Type  op.DType
	Shape op.Shape
	Data  []float64
	// Blocks are the elements of a quantised type; only the length of Data counts then.
	Blocks []byte
}

// Case is one use of an operation: the operands and parameters for a device, and with
// [Case.Reference] the expected results.
type Case struct {
	Op *op.Operation
	// Options are the parameters of operations that have an option struct, nil for its defaults. Params are the
	// parameters of other operations.
	Options Options
	Params  []float32
	Rows    bool     // of a reduction: along rows
	To      op.DType // of cast
	Extents []int    // of operations that take a list of integers: see lists
	In      []Tensor // an absent operand has InvalidType
}

// String names the operation, its parameters and its operands.
func (c *Case) String() string {
	s := c.Op.Name()
	if c.Rows {
		s += " along rows"
	}
	if c.Options != nil {
		s += optionText(c.Options)
	}
	if c.Params != nil {
		s += fmt.Sprintf(" %v", c.Params)
	}
	if c.Op == op.Cast {
		s += " to " + c.To.String()
	}
	if c.Extents != nil {
		s += fmt.Sprintf(" %v", c.Extents)
	}
	s += " of"
	for _, x := range c.In {
		if x.Type == op.InvalidType {
			s += " -"
			continue
		}
		s += fmt.Sprintf(" %v%v", x.Type, x.Shape)
	}
	return s
}

// optionText writes the fields that are not zero.
func optionText(o Options) string {
	s := ""
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && f.Type() != reflect.TypeFor[op.Attrs]() {
			s += fmt.Sprintf(" %s=%v", v.Type().Field(i).Name, f.Interface())
		}
	}
	return s
}

// Attrs returns the parameters as graphs carry them.
func (c *Case) Attrs() op.Attrs {
	var a op.Attrs
	list, listed := lists[c.Op]
	switch {
	case listed:
		a, _ = list.attrs(c)
	case c.Options != nil:
		a = c.Options.Attrs()
	case c.Params != nil:
		a = op.Floats(c.Params...)
	case c.Op == op.Cast:
		a = op.CastTo(c.To)
	default:
		a = c.Op.Defaults()
	}
	if c.Rows {
		a = a.Rows()
	}
	return a
}

// quantized reports whether an operand is of blocks.
func (c *Case) quantized() bool {
	for _, x := range c.In {
		if x.Type.Quantized() {
			return true
		}
	}
	return false
}

// elements returns the number of elements of the largest operand or, for iota, of the result.
func (c *Case) elements() int {
	n := 0
	if c.Op == op.Iota {
		n = c.Extents[0]
	}
	for _, x := range c.In {
		n = max(n, len(x.Data))
	}
	return n
}

// work returns the arithmetic operations of a shaped operation.
func (c *Case) work() float64 {
	var shapes []op.Shape
	for _, x := range c.In {
		shapes = append(shapes, x.Shape)
	}
	a := c.Attrs()
	return c.Op.Flops(&a, shapes, nil)
}

// Types returns the element types of the operands.
func (c *Case) Types() []op.DType {
	types := make([]op.DType, len(c.In))
	for i, x := range c.In {
		types[i] = x.Type
	}
	return types
}

// Reference returns the results in float64 and their element types.
func (c *Case) Reference() ([]*op.Array, []op.DType, error) {
	a := c.Attrs()
	in := make([]*op.Array, len(c.In))
	for i, x := range c.In {
		switch {
		case x.Type.Quantized():
			var err error
			if in[i], err = x.Type.Array(x.Shape, x.Blocks); err != nil {
				return nil, nil, err
			}
		case x.Type != op.InvalidType:
			in[i] = &op.Array{Shape: x.Shape, Data: x.Data}
		}
	}
	types, err := c.Op.Types(&a, c.Types())
	if err != nil {
		return nil, nil, err
	}
	out, err := c.Op.Reference(&a, in, c.Types())
	return out, types, err
}

// generator makes operands.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0x7261796f))}
}

// floats has values near which functions are hard to compute accurately. Cases also have random values.
var floats = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3,
	0x1p-149, -0x1p-140, 0x1p-126, 1e-20, 88.7, 88.8, -87.4, -103.9, -104.1, 127.99, 128, -149.5, 1e4, -1e4,
	8388607.5, 16777216, -16777216, 2147483648, 1e20, -1e20, math.MaxFloat32, -math.MaxFloat32,
}

var integers = []float64{0, 1, -1, 2, 31, 32, math.MaxInt32, math.MinInt32, math.MaxUint32, 65536, -65536, 46341, 12345679}

// wild returns a value of any magnitude, which may be NaN or an infinity.
func (g *generator) wild(d op.DType) float64 {
	switch {
	case d == op.Bool:
		return float64(g.IntN(2))
	case !d.Float() && g.IntN(3) == 0:
		return d.Round(integers[g.IntN(len(integers))])
	case !d.Float():
		return d.Round(float64(int32(g.Uint32())) / float64(int64(1)<<g.IntN(30)))
	}
	switch g.IntN(4) {
	case 0:
		return d.Round(floats[g.IntN(len(floats))])
	case 1:
		return d.Round(g.NormFloat64() * 8)
	case 2:
		return d.Round(math.Ldexp(g.NormFloat64(), g.IntN(250)-125))
	}
	return d.Round(g.NormFloat64())
}

// tame returns a value of ordinary magnitude.
func (g *generator) tame(d op.DType) float64 {
	if d.Float() {
		return d.Round(g.NormFloat64())
	}
	return d.Round(float64(g.IntN(21) - 10))
}

func (g *generator) tensor(d op.DType, s op.Shape, value func(op.DType) float64) Tensor {
	n, err := s.Size()
	if err != nil {
		panic(err) // the shapes of cases are written in this package
	}
	t := Tensor{Type: d, Shape: s, Data: make([]float64, n)}
	for i := range t.Data {
		t.Data[i] = value(d)
	}
	return t
}

// lengths are numbers around the sizes of vectors and blocks of devices, and primes.
var lengths = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 997, 1024, 4099}

// large is a length greater than the blocks of every device, and no multiple of them.
const large = 70001

// spreads has shapes of operands that broadcast to each other. Operations of two operands use the first two
// columns.
var spreads = [][]op.Shape{
	{{3, 65}, {65}, {3, 65}},
	{{65}, {3, 65}, {3, 1}},
	{{7, 130}, {7, 1}, {1}},
	{{7, 1}, {7, 130}, {}},
	{{}, {129}, {}},
	{{129}, {1}, {129}},
	{{2, 3, 17}, {3, 17}, {2, 1, 1}},
	{{2, 3, 17}, {2, 3, 1}, {17}},
	{{5, 1}, {5, 1}, {1}},
	{{0, 5}, {5}, {1}},
	{{4, 0}, {4, 1}, {4, 0}},
	{{3, 1500}, {1500}, {3, 1}},
	{{1500, 3}, {3}, {1500, 1}},
	{{2, 1, 33}, {33}, {2, 1, 1}},
	{{1, 40}, {40}, {1, 1}},
}

// params returns the parameters that the operation requires, and options other than the defaults.
func (g *generator) params(o *op.Operation) (params []float32, options []Options) {
	switch o {
	case op.Clip:
		return []float32{-0.75, 1.25}, nil
	case op.LeakyRelu:
		return nil, []Options{nil, op.LeakyReluOpts{Slope: 0.25}, op.LeakyReluOpts{Slope: op.Zero}}
	case op.Celu:
		return nil, []Options{nil, op.CeluOpts{Alpha: 0.7}}
	case op.Elu:
		return nil, []Options{nil, op.EluOpts{Alpha: 0.7}, op.EluOpts{Alpha: op.Zero}}
	}
	for range o.Params() {
		params = append(params, float32(g.NormFloat64()))
	}
	return params, []Options{nil}
}

// Elementwise returns the cases of an elementwise operation for operands of element type d, or none if the
// operation does not accept d. short leaves out large cases.
func Elementwise(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	types := make([]op.DType, len(o.Inputs()))
	for i := range types {
		types[i] = d
	}
	if o == op.Where {
		types[0] = op.Bool
	}
	put := func(shapes []op.Shape) {
		params, options := g.params(o)
		if len(params) > 0 || len(options) == 0 {
			options = []Options{nil}
		}
		targets := []op.DType{op.InvalidType}
		if o == op.Cast {
			targets = op.DTypes()
		}
		for _, opts := range options {
			for _, to := range targets {
				value := g.wild
				if d.Float() && (o == op.Fmod || o == op.Remainder) && g.IntN(4) > 0 {
					value = g.tame // for large quotients no result is defined
				}
				c := Case{Op: o, Options: opts, Params: params, To: to}
				for i, t := range types {
					c.In = append(c.In, g.tensor(t, shapes[i], value))
				}
				a := c.Attrs()
				if _, err := o.Types(&a, types); err != nil {
					return
				}
				cases = append(cases, c)
			}
		}
	}
	for _, n := range lengths {
		if d != op.F32 && n > 16 && n < 63 || short && n > 300 {
			continue
		}
		put([]op.Shape{{n}, {n}, {n}})
	}
	if d == op.F32 && !short {
		put([]op.Shape{{large}, {large}, {large}})
	}
	if len(types) > 1 {
		for i, s := range spreads {
			if d == op.F32 || i%3 == 0 {
				put(s)
			}
		}
	}
	return cases
}

// Reduction returns the cases of a reduction over operands of a floating type.
func Reduction(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	options := []Options{nil}
	if o == op.Var {
		options = append(options, op.VarOpts{DDOF: 1})
	}
	put := func(s op.Shape, value func(op.DType) float64) {
		for _, rows := range []bool{false, true} {
			for _, opts := range options {
				c := Case{Op: o, Options: opts, Rows: rows}
				for range o.Inputs() {
					c.In = append(c.In, g.tensor(d, s, value))
				}
				a := c.Attrs()
				shapes := make([]op.Shape, len(c.In))
				for i := range shapes {
					shapes[i] = s
				}
				if _, err := o.Shapes(&a, shapes); err != nil {
					continue // the extreme of nothing
				}
				cases = append(cases, c)
			}
		}
	}
	// Small integers have exact sums, so that the result shows if one element is missing or counted twice,
	// whatever the number of elements.
	whole := func(d op.DType) float64 { return d.Round(float64(g.IntN(9) - 4)) }
	offset := func(d op.DType) float64 { return d.Round(100 + g.NormFloat64()) }
	for _, n := range lengths {
		if short && n > 300 {
			continue
		}
		put(op.Shape{n}, g.tame)
		if d == op.F32 || n > 250 {
			put(op.Shape{n}, whole)
		}
	}
	for _, s := range []op.Shape{{}, {1, 1}, {3, 65}, {65, 3}, {2, 3, 64}, {0, 5}, {5, 0}, {33, 129}, {1, 997}, {997, 1}} {
		put(s, g.tame)
		put(s, offset)
	}
	if !short && d == op.F32 {
		put(op.Shape{large}, whole)
		put(op.Shape{large}, g.tame)
		put(op.Shape{3, large}, whole)
		put(op.Shape{large, 3}, g.tame)
	}
	// Special values, one kind at a time, at places that vector kernels handle separately.
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, n := range []int{1, 40, 257} {
			for _, at := range []int{0, n / 2, n - 1} {
				x := g.tensor(d, op.Shape{n}, g.tame)
				x.Data[at] = v
				c := Case{Op: o, In: []Tensor{x}}
				if len(o.Inputs()) > 1 {
					c.In = append(c.In, g.tensor(d, op.Shape{n}, g.tame))
				}
				cases = append(cases, c)
			}
		}
	}
	// Equal extremes: the first one counts.
	few := func(d op.DType) float64 { return float64(g.IntN(3)) }
	put(op.Shape{130}, few)
	put(op.Shape{9, 70}, few)
	put(op.Shape{40}, func(op.DType) float64 { return math.NaN() })
	put(op.Shape{40}, func(op.DType) float64 { return 7 })
	return cases
}

// wholeReduction returns the cases of a reduction over integers or truth values.
func wholeReduction(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	put := func(s op.Shape, value func(op.DType) float64) {
		for _, rows := range []bool{false, true} {
			c := Case{Op: o, Rows: rows, In: []Tensor{g.tensor(d, s, value)}}
			a := c.Attrs()
			if _, err := o.Shapes(&a, []op.Shape{s}); err == nil { // not the extreme of nothing
				cases = append(cases, c)
			}
		}
	}
	rare := func(op.DType) float64 { return float64((g.IntN(300)) / 299) } // mostly 0
	never := func(op.DType) float64 { return 0 }
	always := func(op.DType) float64 { return 1 }
	shapes := []op.Shape{{}, {1}, {7}, {64}, {257}, {1025}, {3, 65}, {65, 3}, {2, 3, 64}, {0, 5}, {5, 0}, {33, 129}, {1, 997}, {997, 1}}
	if !short {
		shapes = append(shapes, op.Shape{large}, op.Shape{3, large / 4})
	}
	for _, s := range shapes {
		for _, value := range []func(op.DType) float64{g.wild, rare, never, always} {
			put(s, value)
		}
	}
	return cases
}

// scans returns the cases of a scan.
func scans(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	special := func(d op.DType) float64 {
		if !d.Float() {
			return g.wild(d)
		}
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, -1, 2, 0.5}[min(g.IntN(60), 7)]
	}
	near := func(d op.DType) float64 { return d.Round(1 + float64(g.IntN(3)-1)/64) } // factors so near to 1 that long products stay in the range
	shapes := []op.Shape{{1}, {2}, {7}, {64}, {300}, {1025}, {3, 65}, {65, 3}, {2, 3, 64}, {0, 5}, {5, 0}, {33, 129}, {2, 4099}, {997, 1}, {70, 70}}
	if !short {
		shapes = append(shapes, op.Shape{30_000}, op.Shape{3, 20_000})
	}
	for _, s := range shapes {
		for i, value := range []func(op.DType) float64{g.tame, near, special} {
			if o == op.Cumprod && i == 0 && s[len(s)-1] > 100 {
				continue // a long product of such factors leaves the range, so its result is not defined
			}
			cases = append(cases, Case{Op: o, In: []Tensor{g.tensor(d, s, value)}})
		}
	}
	return cases
}

// Row returns the cases of a row operation.
func Row(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	options := []Options{nil}
	if o.Options() != "" {
		options = append(options, op.NormOpts{Eps: 0.3})
	}
	put := func(s op.Shape, value func(op.DType) float64) {
		for i, opts := range options {
			c := Case{Op: o, Options: opts, In: []Tensor{g.tensor(d, s, value)}}
			weights := len(o.Inputs()) - 1
			for w := range weights {
				// With and without each weight.
				t := Tensor{}
				if (len(cases)+i)>>w&1 == 0 {
					t = g.tensor(d, op.Shape{s[len(s)-1]}, g.tame)
				}
				c.In = append(c.In, t)
			}
			for len(c.In) > 1 && c.In[len(c.In)-1].Type == op.InvalidType {
				c.In = c.In[:len(c.In)-1]
			}
			cases = append(cases, c)
		}
	}
	wide := func(d op.DType) float64 { return d.Round(g.NormFloat64() * 30) }
	offset := func(d op.DType) float64 { return d.Round(50 + g.NormFloat64()) }
	for _, cols := range lengths {
		if short && cols > 300 {
			continue
		}
		put(op.Shape{1, cols}, g.tame)
		put(op.Shape{3, cols}, wide)
	}
	for _, s := range []op.Shape{{5}, {0, 7}, {7, 0}, {2, 3, 65}, {65, 2}, {257, 33}, {2, 1000}} {
		put(s, g.tame)
		put(s, offset)
	}
	if !short && d == op.F32 {
		put(op.Shape{2, large}, g.tame)
		put(op.Shape{2000, 35}, wide)
	}
	// One special value in the second of three rows must not reach the others.
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, cols := range []int{1, 20, 70} {
			x := g.tensor(d, op.Shape{3, cols}, g.tame)
			x.Data[cols+cols/2] = v
			cases = append(cases, Case{Op: o, In: []Tensor{x}})
		}
	}
	put(op.Shape{2, 37}, func(op.DType) float64 { return math.Inf(-1) })
	put(op.Shape{2, 37}, func(op.DType) float64 { return -1000 })
	return cases
}
