package kernel_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

type (
	b    = *kernel.Builder
	none = *struct{}
)

// leaked has values that misuses take out of their kernel.
var leaked struct {
	value  kernel.U32
	buffer kernel.Buffer[kernel.U32]
	v      kernel.Var[kernel.U32]
	b      b
}

var foreign = kernel.New("foreign", func(b b, _ none) {
	b.LocalSize(2, 1, 1)
	leaked.b, leaked.value = b, b.Lane()
	leaked.buffer, leaked.v = kernel.InOut[kernel.U32](b, "x"), kernel.NewVar(b, "v", b.Lane())
	leaked.buffer.Set(leaked.value, leaked.v.Get())
})

// misuses are mistakes. The line of each is the one that a comment marks with
// its name.
var misuses = []struct {
	name, msg string
	build     func(b b, _ none)
}{
	{"value", "outside the block", func(b b, _ none) {
		var x kernel.U32
		b.If(b.Lane().Lt(kernel.U(3)), func() { x = b.Lane().Mul(b.GroupX()) })
		kernel.Output[kernel.U32](b, "y").Set(x, x) // mistake: value
	}},
	{"index", "outside the block", func(b b, _ none) {
		y := kernel.Output[kernel.U32](b, "y")
		var x kernel.U32
		b.For(kernel.U(0), y.Len(), func(i kernel.U32) { x = i })
		y.Set(kernel.U(0), x) // mistake: index
	}},
	{"variable", "outside the block", func(b b, _ none) {
		var v kernel.Var[kernel.U32]
		b.Loop(func() { v = kernel.NewVar(b, "v", b.Lane()); b.Break() })
		v.Set(kernel.U(1)) // mistake: variable
	}},
	{"operand of another", "kernel foreign", func(b b, _ none) {
		b.Lane().Add(leaked.value) // mistake: operand of another
	}},
	{"index of another", "kernel foreign", func(b b, _ none) {
		kernel.Output[kernel.U32](b, "y").Set(leaked.value, b.Lane()) // mistake: index of another
	}},
	{"buffer of another", "kernel foreign", func(b b, _ none) {
		leaked.buffer.Set(b.Lane(), kernel.U(1)) // mistake: buffer of another
	}},
	{"read of another", "kernel foreign", func(b b, _ none) {
		b.Lane().Add(leaked.buffer.At(b.Lane())) // mistake: read of another
	}},
	{"variable of another", "kernel foreign", func(b b, _ none) {
		b.Lane().Add(leaked.v.Get()) // mistake: variable of another
	}},
	{"condition of another", "kernel foreign", func(b b, _ none) {
		b.If(leaked.value.Eq(kernel.U(1)), func() {}) // mistake: condition of another
	}},
	{"zero buffer", "no constructor", func(b b, _ none) {
		var x kernel.Buffer[kernel.F32]
		x.Set(b.Lane(), kernel.F(1)) // mistake: zero buffer
	}},
	{"zero buffer read", "no constructor", func(b b, _ none) {
		var x kernel.Buffer[kernel.U32]
		b.Lane().Add(x.At(b.Lane())) // mistake: zero buffer read
	}},
	{"zero array", "no constructor", func(b b, _ none) {
		var x kernel.Array[kernel.F32]
		x.Set(b.Lane(), kernel.F(1)) // mistake: zero array
	}},
	{"zero variable", "no constructor", func(b b, _ none) {
		var x kernel.Var[kernel.U32]
		x.Set(b.Lane()) // mistake: zero variable
	}},
	{"write of input", "an Input", func(b b, _ none) {
		kernel.Input[kernel.F32](b, "x").Set(b.Lane(), kernel.F(0)) // mistake: write of input
	}},
	{"read of output", "an Output", func(b b, _ none) {
		kernel.Output[kernel.F32](b, "x").At(b.Lane()) // mistake: read of output
	}},
	{"break", "outside of a loop", func(b b, _ none) {
		b.Break() // mistake: break
	}},
	{"continue", "outside of a loop", func(b b, _ none) {
		b.If(b.Lane().Eq(kernel.U(0)), func() {
			b.Continue() // mistake: continue
		})
	}},
	{"else", "follow its If", func(b b, _ none) {
		branch := b.If(b.Lane().Eq(kernel.U(0)), func() {})
		b.Barrier()
		branch.Else(func() {}) // mistake: else
	}},
	{"else twice", "follow its If", func(b b, _ none) {
		branch := b.If(b.Lane().Eq(kernel.U(0)), func() {})
		branch.Else(func() {})
		branch.Else(func() {}) // mistake: else twice
	}},
	{"nil if", "nil function", func(b b, _ none) {
		b.If(kernel.B(true), nil) // mistake: nil if
	}},
	{"nil else", "nil function", func(b b, _ none) {
		b.If(kernel.B(true), func() {}).Else(nil) // mistake: nil else
	}},
	{"nil for", "nil function", func(b b, _ none) {
		b.For(kernel.U(0), kernel.U(1), nil) // mistake: nil for
	}},
	{"nil while", "nil function", func(b b, _ none) {
		b.While(nil, func() {}) // mistake: nil while
	}},
	{"nil loop", "nil function", func(b b, _ none) {
		b.Loop(nil) // mistake: nil loop
	}},
	{"step", "step of 0", func(b b, _ none) {
		b.ForStep(kernel.U(0), kernel.U(9), kernel.U(0), func(kernel.U32) {}) // mistake: step
	}},
	{"negative step", "must be positive", func(b b, _ none) {
		b.ForI32(kernel.I(9), kernel.I(0), kernel.I(-1), func(kernel.I32) {}) // mistake: negative step
	}},
	{"barrier in if", "differ in the if at kernel/misuse_test.go:", func(b b, _ none) {
		b.If(b.Lane().Lt(kernel.U(3)), func() {
			b.Barrier() // mistake: barrier in if
		})
	}},
	{"barrier in else", "differ in the if", func(b b, _ none) {
		b.If(b.Lane().Lt(kernel.U(3)), func() {}).Else(func() {
			b.Barrier() // mistake: barrier in else
		})
	}},
	{"barrier after return", "leave by the return at kernel/misuse_test.go:", func(b b, _ none) {
		b.If(b.Lane().Lt(kernel.U(3)), b.Return)
		b.Barrier() // mistake: barrier after return
	}},
	{"barrier in loop", "differ in the for", func(b b, _ none) {
		b.For(kernel.U(0), b.Lane(), func(kernel.U32) {
			b.Barrier() // mistake: barrier in loop
		})
	}},
	{"barrier in left loop", "leave by the break", func(b b, _ none) {
		b.Loop(func() {
			b.Barrier() // mistake: barrier in left loop
			b.If(b.Lane().Eq(kernel.U(1)), b.Break)
		})
	}},
	{"barrier by variable", "differ in the if", func(b b, _ none) {
		v := kernel.NewVar(b, "v", kernel.U(0))
		b.For(kernel.U(0), kernel.U(3), func(i kernel.U32) {
			b.If(v.Get().Eq(kernel.U(0)), func() {
				b.Barrier() // mistake: barrier by variable
			})
			v.Set(b.Lane())
		})
	}},
	{"barrier by memory", "differ in the if", func(b b, _ none) {
		s := kernel.Shared[kernel.U32](b, "s", 4)
		b.If(s.At(kernel.U(1)).Eq(kernel.U(0)), func() {
			b.Barrier() // mistake: barrier by memory
		})
	}},
	{"subgroup in if", "differ in the if", func(b b, _ none) {
		b.If(b.Lane().Lt(kernel.U(3)), func() {
			kernel.SubgroupAdd(b, b.Lane()) // mistake: subgroup in if
		})
	}},
	{"uniform in if", "differ in the if", func(b b, _ none) {
		s := kernel.Shared[kernel.U32](b, "s", 4)
		b.If(b.Lane().Lt(kernel.U(3)), func() {
			s.Uniform(kernel.U(0)) // mistake: uniform in if
		})
	}},
	{"xor", "power of two", func(b b, _ none) {
		kernel.SubgroupXor(b, b.Lane(), 3) // mistake: xor
	}},
	{"huge array", "workgroup arrays may have", func(b b, _ none) {
		kernel.Shared[kernel.F32](b, "big", 1<<30) // mistake: huge array
	}},
	{"huge arrays", "workgroup arrays may have", func(b b, _ none) {
		for i := range 3 {
			kernel.Shared[kernel.Vec4F](b, fmt.Sprint("s", i), 1<<13) // mistake: huge arrays
		}
	}},
	{"many arrays", "more than 256 workgroup arrays", func(b b, _ none) {
		for i := 0; ; i++ {
			kernel.Shared[kernel.F16](b, fmt.Sprint("s", i), 1) // mistake: many arrays
		}
	}},
	{"empty array", "of 0 elements", func(b b, _ none) {
		kernel.SharedAtomic[kernel.U32](b, "s", 0) // mistake: empty array
	}},
	{"array index", "which has 4 elements", func(b b, _ none) {
		kernel.Shared[kernel.F32](b, "s", 4).At(kernel.U(4)) // mistake: array index
	}},
	{"private index", "index out of range", func(b b, _ none) {
		vs := kernel.NewVars(b, "v", 4, kernel.F(0))
		n := 4
		vs[n].Set(kernel.F(1)) // mistake: private index
	}},
	{"private size", "variables", func(b b, _ none) {
		kernel.NewVars(b, "v", -1, kernel.F(0)) // mistake: private size
	}},
	{"component", "component 2", func(b b, _ none) {
		kernel.Input[kernel.Vec2F](b, "x").At(b.Lane()).At(2) // mistake: component
	}},
	{"shift", "shift by 32", func(b b, _ none) {
		b.Lane().Shl(kernel.U(32)) // mistake: shift
	}},
	{"constant shift", "shifted by more", func(b b, _ none) {
		b.Lane().Add(kernel.U(1).Shl(kernel.U(32))) // mistake: constant shift
	}},
	{"negative number", "negative", func(b b, _ none) {
		b.Lane().Add(kernel.N(-1)) // mistake: negative number
	}},
	{"unequal constant", "unequal components", func(b b, _ none) {
		b.Lane().F32().Splat4().Mul(kernel.U(0x0102).UnpackI8().Vec4F()) // mistake: unequal constant
	}},
	{"second size", "LocalSize is called twice", func(b b, _ none) {
		b.LocalSize(2, 1, 1) // mistake: second size
	}},
	{"second name", "buffer x is declared twice", func(b b, _ none) {
		kernel.Input[kernel.F32](b, "x")
		kernel.Shared[kernel.F32](b, "x", 1) // mistake: second name
	}},
	{"bad name", "is not a valid name", func(b b, _ none) {
		kernel.Input[kernel.F32](b, "x y") // mistake: bad name
	}},
	{"many buffers", "more than 30 buffers", func(b b, _ none) {
		for i := range 31 {
			kernel.Input[kernel.F32](b, fmt.Sprint("x", i)) // mistake: many buffers
		}
	}},
	{"budget", "Budget of 0 iterations", func(b b, _ none) {
		b.Budget(0) // mistake: budget
	}},
	{"parameter", "not the address", func(b b, _ none) {
		b.U32(new(uint32)) // mistake: parameter
	}},
	{"nil parameter", "not the address", func(b b, _ none) {
		b.F32(nil) // mistake: nil parameter
	}},
	{"panic", "no luck", func(b b, _ none) {
		panic("no luck") // mistake: panic
	}},
	{"nil panic", "nil map", func(b b, _ none) {
		m := map[string]map[int]int{}["none"]
		m[1] = 1 // mistake: nil panic
	}},
	{"unrolled", "more than 65536 instructions", func(b b, _ none) {
		for x := b.Lane(); ; {
			x = x.Mul(x) // mistake: unrolled
		}
	}},
	{"endless", "Budget of -1 iterations", func(b b, _ none) {
		b.Budget(-1) // mistake: endless
		for {
			b.Barrier()
		}
	}},
	{"nested", "nested deeper", func(b b, _ none) {
		var down func()
		down = func() {
			b.Loop(down) // mistake: nested
		}
		down()
	}},
	{"operation", "nil operation", func(b b, _ none) {
		kernel.Apply(b, nil, nil, kernel.F(1)) // mistake: operation
	}},
	{"operation of many", "operands", func(b b, _ none) {
		kernel.Apply(b, op.Relu, nil, kernel.F(1), kernel.F(2)) // mistake: operation of many
	}},
	{"operation of rows", "no expression", func(b b, _ none) {
		kernel.Apply(b, op.Softmax, nil, kernel.F(1)) // mistake: operation of rows
	}},
	{"hidden", "used as i32", func(b b, _ none) {
		kernel.As[kernel.I32](b, kernel.Dyn(kernel.F(1))) // mistake: hidden
	}},
}

func TestMistakesCarryTheLine(t *testing.T) {
	if err := foreign.Err(); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("misuse_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for i, l := range strings.Split(string(src), "\n") {
		if _, name, ok := strings.Cut(l, "// mistake: "); ok {
			lines[name] = i + 1
		}
	}
	for _, m := range misuses {
		t.Run(m.name, func(t *testing.T) {
			k := kernel.New("wrong", func(b b, p none) {
				b.LocalSize(64, 1, 1)
				m.build(b, p)
			})
			var e *kernel.Error
			if err := k.Err(); !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(e.Error(), m.msg) {
				t.Errorf("error %q does not say %q", e, m.msg)
			}
			if filepath.Base(e.Pos.File) != "misuse_test.go" || e.Pos.Line != lines[m.name] || lines[m.name] == 0 {
				t.Errorf("error %v at %v, want line %d", e, e.Pos, lines[m.name])
			}
			if p, err := k.Program(); p != nil || err == nil {
				t.Error("a program with a mistake")
			}
			if _, err := k.Positions(); err == nil {
				t.Error("positions of a mistake")
			}
		})
	}
}

// TestKernelsThatCannotBe tests mistakes that have no line in a build function.
func TestKernelsThatCannotBe(t *testing.T) {
	fine := func(b b) { b.LocalSize(1, 1, 1) }
	for name, k := range map[string]*kernel.Kernel{
		"nil function":              kernel.New[struct{}]("k", nil),
		"nil family":                kernel.NewFamily[struct{}, int]("k", nil).Of(3),
		"zero kernel":               {},
		"zero family":               new(kernel.Family[int]).Of(1),
		"no family":                 (*kernel.Family[int])(nil).Of(1),
		"incomparable":              kernel.NewFamily("k", func(b b, _ none, s any) { fine(b) }).Of([]int{1}),
		"bad name":                  kernel.New("a b", func(b b, _ none) { fine(b) }),
		"no name":                   kernel.New("", func(b b, _ none) { fine(b) }),
		"parameters of other types": kernel.New("k", func(b b, _ *struct{ X float64 }) { fine(b) }),
		"parameters of no struct":   kernel.New("k", func(b b, _ *uint32) { fine(b) }),
		"nested parameters":         kernel.New("k", func(b b, _ *struct{ X [2]uint32 }) { fine(b) }),
		"no local size":             kernel.New("k", func(b b, _ none) {}),
		"index before local size":   kernel.New("k", func(b b, _ none) { b.Index() }),
		"zero local size":           kernel.New("k", func(b b, _ none) { b.LocalSize(0, 1, 1) }),
		"huge local size":           kernel.New("k", func(b b, _ none) { b.LocalSize(math.MaxInt, math.MaxInt, 1) }),
		"many lanes":                kernel.New("k", func(b b, _ none) { b.LocalSize(64, 32, 1) }),
		"recovered panic": kernel.New("k", func(b b, _ none) {
			fine(b)
			defer func() { _ = recover() }()
			b.Loop(func() { panic(1) })
		}),
	} {
		var e *kernel.Error
		if err := k.Err(); !errors.As(err, &e) || err.Error() == "" {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := k.AppendParams(nil, struct{}{}); err == nil {
			t.Errorf("%s: parameters without error", name)
		}
		if k.String() == "" || k.Listing() == "" {
			t.Errorf("%s: empty listing", name)
		}
	}
	var nobody *kernel.Kernel
	if err := nobody.Err(); err == nil || nobody.Name() == "" || nobody.String() == "" || nobody.Listing() == "" {
		t.Error("a nil kernel")
	}
}

// TestAKernelInItself checks that a build function that builds its own kernel ends with an error.
func TestAKernelInItself(t *testing.T) {
	var k *kernel.Kernel
	k = kernel.New("self", func(b b, _ none) {
		b.LocalSize(1, 1, 1)
		if err := k.Err(); err != nil {
			panic(err)
		}
	})
	if err := k.Err(); err == nil {
		t.Error("no error")
	}
}

// TestGoexitInAKernel checks a build function that ends its goroutine: the kernel then reports this, or builds later.
func TestGoexitInAKernel(t *testing.T) {
	first := true
	k := kernel.New("k", func(b b, _ none) {
		b.LocalSize(1, 1, 1)
		if first {
			first = false
			runtime.Goexit()
		}
	})
	t.Run("in another goroutine", func(t *testing.T) {
		done := make(chan bool)
		go func() { defer close(done); k.Err() }()
		<-done
	})
	if err := k.Err(); err != nil {
		t.Error(err)
	}
}

// TestUseAfterBuilding checks that a builder does nothing after the kernel is built.
func TestUseAfterBuilding(t *testing.T) {
	if err := foreign.Err(); err != nil {
		t.Fatal(err)
	}
	before := foreign.Listing()
	l := &leaked
	for range 100_000 {
		l.value = l.value.Add(l.value)
	}
	l.buffer.Set(l.value, l.buffer.At(l.value))
	l.v.Set(l.v.Get())
	l.b.LocalSize(3, 1, 1)
	l.b.If(l.value.Eq(l.value), func() { l.b.Return() }).Else(l.b.Break)
	l.b.Loop(l.b.Continue)
	l.b.Barrier()
	_ = kernel.SubgroupAdd(l.b, l.value)
	_ = kernel.NewVars(l.b, "v", 3, l.value)
	_ = kernel.Shared[kernel.F32](l.b, "s", 3).Len()
	_ = kernel.SharedAtomic[kernel.U32](l.b, "s", 3).Add(l.value, l.value)
	_ = kernel.Apply(l.b, op.Relu, nil, kernel.F(1))
	_ = l.b.Vec4U(l.value, l.value, l.value, kernel.U(1)).Sum()
	_, _ = l.b.Index(), l.b.Lanes()
	for _, nobody := range []*kernel.Builder{nil, {}} {
		_ = kernel.Input[kernel.F32](nobody, "x").At(nobody.Lane())
		_ = kernel.Shared[kernel.F32](nobody, "s", 3).At(kernel.U(9))
		_ = kernel.NewVar(nobody, "v", kernel.U(1)).Get()
		_ = kernel.SubgroupAdd(nobody, kernel.U(1))
		_ = kernel.Apply(nobody, op.Relu, nil, kernel.F(1))
		nobody.LocalSize(1, 1, 1)
		nobody.Barrier()
		nobody.Loop(nobody.Break)
		nobody.If(kernel.B(true), func() {}).Else(func() {})
		_ = nobody.Vec2F(kernel.F(1), kernel.F(2)).Sum()
		_ = nobody.U32(new(uint32)).Mul(nobody.Index())
	}
	if after := foreign.Listing(); after != before {
		t.Errorf("changed to %s", after)
	}
}
