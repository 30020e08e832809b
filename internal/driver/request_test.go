package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// host is a device whose arrays are in Go's memory and whose kernels do not have
// bfloat16. It runs conversions at once, where drivers add them to a step.
type host struct{ slots [][]byte }

// array is an array of it.
type array struct{ bytes []byte }

func (h *host) At(o Operand) *array { return &array{h.slots[o.Slot]} }

// Reserve returns memory filled with bytes that no operation gives.
func (h *host) Reserve(n int64) *array { return &array{bytes.Repeat([]byte{0xff}, int(n))} }

func (h *host) Constant(data []byte) *array { return &array{data} }

func (h *host) StorageType(o Operand) op.DType {
	if o.Type == op.BF16 {
		return op.F32
	}
	return o.Type
}

func (h *host) Widen(dst, src *array, o Operand) error {
	for i := range o.N {
		op.F32.PutFloat64(dst.bytes, i, o.Type.Float64(src.bytes, i))
	}
	return nil
}

func (h *host) Narrow(dst, src *array, o Operand) error {
	for i := range o.N {
		o.Type.PutFloat64(dst.bytes, i, op.F32.Float64(src.bytes, i))
	}
	return nil
}

// memories returns arrays as the reference takes them.
func memories(as []*array) [][]byte {
	ms := make([][]byte, len(as))
	for i, a := range as {
		if a != nil {
			ms[i] = a.bytes
		}
	}
	return ms
}

// random returns n elements in memory.
func random(t op.DType, n int) []byte {
	b := make([]byte, n*t.Size())
	for i := range n {
		t.PutFloat64(b, i, rand.NormFloat64())
	}
	return b
}

// norm is a step of layer_norm with an operand that is absent, over bfloat16.
func norm(rows, cols int) (*Step, *host) {
	n := rows * cols
	h := &host{[][]byte{random(op.BF16, n), random(op.BF16, cols), make([]byte, 2*n), random(op.BF16, n)}}
	s := &Step{
		Op: op.LayerNorm, Attrs: op.LayerNorm.Defaults(),
		In:   []Operand{{Slot: 0, Type: op.BF16, N: n}, {Slot: 1, Type: op.BF16, N: cols}, {Slot: -1}},
		Out:  []Operand{{Slot: 2, Type: op.BF16, N: n}},
		Dims: []op.Shape{{rows, cols}, {cols}, nil, {rows, cols}},
	}
	return s, h
}

// TestOperation computes an operation as a device does and compares with its
// reference over the arrays as they are.
func TestOperation(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 7}, {5, 64}} {
		s, h := norm(size[0], size[1])
		r := &Request[*array]{}
		if err := r.Operation(h, s); err != nil {
			t.Fatal(err)
		}
		for i, want := range []portable.Array{{Type: op.F32, Shape: op.Shape{size[0], size[1]}}, {Type: op.F32, Shape: op.Shape{size[1]}}, {}} {
			if got := r.In[i]; got.Type != want.Type || !got.Shape.Equal(want.Shape) || (got.Shape == nil) != (want.Shape == nil) {
				t.Errorf("operand %d is %v, not %v", i, got, want)
			}
		}
		if r.From[2] != nil || r.Out[0].Type != op.F32 {
			t.Errorf("the absent operand is %v, the result %v", r.From[2], r.Out[0])
		}
		if err := Reference(&r.Request, memories(r.From), memories(r.To)); err != nil {
			t.Fatal(err)
		}
		if got := h.slots[2]; !bytes.Equal(got, make([]byte, len(got))) {
			t.Error("the result was in its place before it was narrowed")
		}
		if err := r.Narrow(h); err != nil {
			t.Fatal(err)
		}
		n := size[0] * size[1]
		want := make([]byte, 2*n)
		plain := &portable.Request{Op: s.Op, Attrs: s.Attrs, Out: []portable.Array{{Type: op.BF16, Shape: s.Dims[3]}},
			In: []portable.Array{{Type: op.BF16, Shape: s.Dims[0]}, {Type: op.BF16, Shape: s.Dims[1]}, {}}}
		if err := Reference(plain, [][]byte{h.slots[0], h.slots[1], nil}, [][]byte{want}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := s.Op.Check(op.BF16.Float64(h.slots[2], i), op.BF16.Float64(want, i), 0, op.BF16); err != nil {
				t.Errorf("%v, element %d: %v", size, i, err)
			}
		}
	}
}

func TestReferenceRefuses(t *testing.T) {
	r := &portable.Request{Op: op.Cumsum, Attrs: op.Cumsum.Defaults(), In: []portable.Array{{Type: op.F32, Shape: op.Shape{4}}}, Out: []portable.Array{{Type: op.F32, Shape: op.Shape{4}}}}
	if err := Reference(r, [][]byte{make([]byte, 16)}, [][]byte{make([]byte, 12)}); !errors.Is(err, op.ErrShape) {
		t.Errorf("a result in too little memory: %v", err)
	}
	if err := Reference(r, [][]byte{make([]byte, 12)}, [][]byte{make([]byte, 16)}); err == nil {
		t.Error("an operand in too little memory is no error")
	}
}

// TestEpilogue tests an epilogue in the request, and one beside the request.
func TestEpilogue(t *testing.T) {
	s, h := norm(3, 7)
	s.Post = &Fused{Shape: op.Shape{3, 7}, Out: []int{2}, Body: []Instr{{Op: op.Add, Attrs: op.Add.Defaults(), Args: []int{0, 1}, Type: op.BF16}},
		In: []Operand{{Slot: -1, Type: op.BF16, N: 21}, {Slot: 3, Type: op.BF16, N: 21}}}
	r := &Request[*array]{}
	if err := r.Operation(h, s); err != nil {
		t.Fatal(err)
	}
	with, err := r.With(h, s.Post)
	if err != nil {
		t.Fatal(err)
	}
	if r.Post != nil || len(r.From) != 3 || len(with.From) != 4 || len(with.Post.In) != 1 || with.Post.In[0].Type != op.F32 || op.F32.Float64(with.From[3].bytes, 20) != op.BF16.Float64(h.slots[3], 20) {
		t.Errorf("with the epilogue %+v, and without %+v", with, r)
	}
	if x := with.Post.Exprs[0]; ir.Format(x, nil, nil) != ir.Format(mustNode(ir.New(ir.Add, ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32))), nil, nil) {
		t.Errorf("the epilogue is %s", ir.Format(x, nil, nil))
	}
	alone, post, err := r.Unfused(h, s.Post)
	if err != nil {
		t.Fatal(err)
	}
	if y := alone.Out[0]; y.Type != op.F32 || !y.Shape.Equal(op.Shape{3, 7}) || len(alone.To[0].bytes) != 4*21 || alone.Post != nil {
		t.Errorf("alone it makes %v in %d bytes", y, len(alone.To[0].bytes))
	}
	if post.In[0].Type != op.F32 || s.Post.In[0].Type != op.BF16 || r.To[0] == alone.To[0] {
		t.Error("the original request has changed, or the epilogue reads a missing operand")
	}
	e := &Request[*array]{}
	exprs, params, err := post.Parametric(4)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Program(h, post, exprs, &alone.To[0], Scalars(h, append(params, 2.5)), s.Out); err != nil {
		t.Fatal(err)
	}
	op.F32.PutFloat64(e.To[0].bytes, 20, 1.5)
	if err := e.Narrow(h); err != nil || op.BF16.Float64(h.slots[2], 20) != 1.5 {
		t.Errorf("the result came to %v, %v", op.BF16.Float64(h.slots[2], 20), err)
	}
	if e.From[0] != alone.To[0] || len(e.From) != 3 || len(e.To) != 1 {
		t.Errorf("the epilogue is over %d arrays", len(e.From))
	}
	if x, b := e.Post.In[2], e.From[2].bytes; x != (portable.Operand{Type: op.F32, Broadcast: op.Scalar, N: 1}) || math.Float32frombits(binary.NativeEndian.Uint32(b)) != 2.5 {
		t.Errorf("the parameter is %v, %v", x, b)
	}
}

func mustNode(n *ir.Node, err error) *ir.Node {
	if err != nil {
		panic(err)
	}
	return n
}

func TestCopied(t *testing.T) {
	h := &host{[][]byte{make([]byte, 16), make([]byte, 16)}}
	x := func(slot int, s op.BroadcastKind, n int) Operand {
		return Operand{Slot: slot, Type: op.F32, Broadcast: s, N: n}
	}
	first := &array{make([]byte, 16)}
	for _, c := range []struct {
		name  string
		f     Fused
		first *array
		want  []byte
	}{
		{"the first", Fused{In: []Operand{x(0, op.Full, 4), x(1, op.Full, 4)}, Out: []int{0}}, nil, h.slots[0]},
		{"the second", Fused{In: []Operand{x(0, op.Full, 4), x(1, op.Full, 4)}, Out: []int{1}}, first, h.slots[1]},
		{"a temporary", Fused{In: []Operand{x(-1, op.Full, 4)}, Out: []int{0}}, first, first.bytes},
		{"one element for all", Fused{In: []Operand{x(0, op.Scalar, 1)}, Out: []int{0}}, nil, nil},
		{"a computed value", Fused{In: []Operand{x(0, op.Full, 4)}, Out: []int{1}}, nil, nil},
		{"two results", Fused{In: []Operand{x(0, op.Full, 4)}, Out: []int{0, 0}}, nil, nil},
		{"another type", Fused{In: []Operand{{Slot: 0, Type: op.I32, N: 4}}, Out: []int{0}}, nil, nil},
	} {
		var place **array
		if c.first != nil {
			place = &c.first
		}
		got, is := Copied(h, &c.f, place, []Operand{x(1, op.Full, 4)})
		if is != (c.want != nil) || is && &got.bytes[0] != &c.want[0] {
			t.Errorf("%s: %v", c.name, is)
		}
	}
}

func TestBound(t *testing.T) {
	h := &host{}
	in, out := []*array{{}, {}}, []*array{{}}
	p := &portable.Plan{Scratch: []int64{8, 12}, Constants: [][]byte{{1, 2, 3, 4}}, Stages: []portable.Stage{
		{Bind: []portable.Ref{{Kind: portable.InputRef, Index: 1}, {Kind: portable.ConstantRef}, {Kind: portable.ScratchRef, Index: 1}}},
		{Bind: []portable.Ref{{Kind: portable.ScratchRef, Index: 1}, {Kind: portable.OutputRef}, {Kind: portable.InputRef}}},
	}}
	b := Bound(h, p, in, out)
	if b[0][0] != in[1] || b[1][1] != out[0] || b[1][2] != in[0] || b[0][2] != b[1][0] || len(b[0][2].bytes) != 12 || b[0][1].bytes[2] != 3 {
		t.Errorf("bound %v", b)
	}
}

func TestValid(t *testing.T) {
	elementwise := &Fused{In: []Operand{{Broadcast: op.Full}, {Broadcast: op.Scalar}}}
	good, _ := norm(2, 3)
	short, _ := norm(2, 3)
	short.Dims = short.Dims[1:]
	for _, c := range []struct {
		s    *Step
		want error
	}{
		{&Step{}, ErrUnsupported},
		{&Step{Op: op.Relu}, ErrUnsupported},
		{&Step{Kernel: &Kernel{}}, nil},
		{&Step{Post: elementwise}, nil},
		{good, nil},
		{short, ErrShape},
	} {
		if err := c.s.Valid(); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.s, err)
		}
	}
	wrong, h := norm(2, 3)
	wrong.Out[0].Type = op.F32
	if err := (&Request[*array]{}).Operation(h, wrong); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a result of another type: %v", err)
	}
	before, h := norm(2, 3)
	before.Pre = []*Fused{elementwise, nil, nil}
	if err := (&Request[*array]{}).Operation(h, before); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a prologue: %v", err)
	}
	if !elementwise.Once() || (&Fused{In: []Operand{{Broadcast: op.Tiled}}}).Once() {
		t.Error("once")
	}
	same := &Step{Op: op.Reshape, In: []Operand{{Type: op.F16}}, Out: []Operand{{Type: op.F16}}}
	other := &Step{Op: op.Reshape, In: []Operand{{Type: op.F16}}, Out: []Operand{{Type: op.F32}}}
	if !same.Reshapes() || other.Reshapes() || good.Reshapes() {
		t.Error("reshapes")
	}
}

// TestReferenceLaid computes attention whose operands and result have layouts.
func TestReferenceLaid(t *testing.T) {
	q, kv := op.Shape{2, 3, 4, 2}, op.Shape{2, 3, 5, 2}
	r := &portable.Request{Op: op.Attention, In: []portable.Array{{Type: op.F32, Shape: q}, {Type: op.F32, Shape: kv}, {Type: op.F32, Shape: kv}}, Out: []portable.Array{{Type: op.F32, Shape: q}}}
	var plain, laid [][]byte
	for i := range r.In {
		x := op.NewArray(r.In[i].Shape)
		for k := range x.Data {
			x.Data[k] = float64(float32(rand.NormFloat64()))
		}
		plain = append(plain, optest.Encode(x, op.F32))
	}
	want := make([]byte, 4*48)
	if err := Reference(r, plain, [][]byte{want}); err != nil {
		t.Fatal(err)
	}
	for i := range r.In {
		a := &r.In[i]
		a.Layout, a.N = optest.Heads(a.Shape, 9, 3*i)
		laid = append(laid, optest.Lay(plain[i], op.F32, a.Layout, a.N))
	}
	y := &r.Out[0]
	y.Layout, y.N = optest.Heads(q, 3, 0)
	got := make([]byte, 4*48)
	if err := Reference(r, laid, [][]byte{got}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(optest.Taken(got, op.F32, y.Layout), want) {
		t.Error("attention of operands in layouts differs from that of operands in order")
	}
}

// TestReferencePadded joins an array that has padding with itself.
func TestReferencePadded(t *testing.T) {
	for _, d := range []op.DType{op.F32, op.F16, op.I32} {
		pad := op.PadOf(0, 1, 0, 3)
		l, ok := op.Pad.Layout(&pad, op.RowMajor(2), op.Shape{2}, op.Shape{3}, d)
		if !ok {
			t.Fatal("no layout of padding")
		}
		x := portable.Array{Type: d, Shape: op.Shape{3}, Layout: &l, N: 2}
		r := &portable.Request{Op: op.Concat, Attrs: op.ConcatAlong(0), In: []portable.Array{x, x}, Out: []portable.Array{{Type: d, Shape: op.Shape{6}}}}
		memory := optest.Encode(&op.Array{Shape: op.Shape{2}, Data: []float64{5, 7}}, d)
		out := make([]byte, 6*d.Size())
		if err := Reference(r, [][]byte{memory, memory}, [][]byte{out}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{3, 5, 7, 3, 5, 7} {
			if got := d.Float64(out, i); got != want {
				t.Errorf("%v: element %d is %v, not %v", d, i, got, want)
			}
		}
	}
}
