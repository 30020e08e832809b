//go:build js

// Command gpu is the program behind gpu.mjs, the module of rayo for JavaScript: it opens
// a device and runs the operations that the module requests. wasm/npm has the module, its types and
// its tests. Only this module starts the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall/js"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wasm/bridge"
	"github.com/rayo-go/rayo/wasm/gpu/expression"
)

func main() {
	// The module passes a function under a unique name, so that several programs can run in
	// one page.
	ready := js.Global().Get(os.Getenv("RAYO_MODULE"))
	if ready.Type() != js.TypeFunction {
		fmt.Fprintln(os.Stderr, "gpu: RAYO_MODULE names no function: start this program by load of gpu.mjs")
		os.Exit(1)
	}
	p := &program{ctx: context.Background(), defined: map[int]*op.Operation{}, end: make(chan struct{})}
	var err error
	if p.dev, err = device.Open(p.ctx); err != nil {
		ready.Invoke(bridge.Reason(coded(err)))
	} else {
		ready.Invoke(nil, p.methods())
	}
	// The program does not end, because promises of the browser may still call it: a call after its end
	// would throw an error that no caller can catch. When all promises are settled, nothing refers to the
	// program any more, and the browser frees it.
	select {}
}

// program is a device with the user's definitions.
type program struct {
	ctx context.Context
	dev *device.Device

	mu      sync.Mutex
	defined map[int]*op.Operation
	last    int

	once sync.Once
	end  chan struct{}
}

// methods returns the functions that the module calls.
func (p *program) methods() map[string]any {
	return map[string]any{
		"device":     describe(p.dev),
		"operations": operations(),
		"lost": bridge.Promise(func() (any, error) {
			select {
			case <-p.dev.Lost():
				return true, nil
			case <-p.end:
				return false, nil
			}
		}),
		"run":     promising(p.run),
		"map":     promising(p.mapped),
		"matmul":  promising(p.matmul),
		"close":   promising(p.close),
		"define":  js.FuncOf(p.define),
		"release": js.FuncOf(p.release),
	}
}

// promising is bridge.Func with errors that have codes.
func promising(f func(args []js.Value) (any, error)) js.Func {
	return bridge.Func(func(args []js.Value) (any, error) {
		v, err := f(args)
		return v, coded(err)
	})
}

// describe returns the device that was opened, and why the devices before it in the order of preference were not.
func describe(d *device.Device) map[string]any {
	refused := []any{}
	for _, r := range d.Refused() {
		refused = append(refused, map[string]any{"kind": r.Kind.String(), "reason": r.Err.Error()})
	}
	info := d.Info()
	return map[string]any{
		"kind": info.Kind.String(), "id": info.String(), "name": info.Name, "detail": info.Detail, "refused": refused,
	}
}

// operations lists the elementwise operations of the catalogue that take and give
// float32, for which the module makes methods.
func operations() []any {
	var list []any
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise || o.CheckDefaults() != nil {
			continue
		}
		_, most := o.Arity()
		types := make([]op.DType, most)
		for i := range types {
			types[i] = op.F32
		}
		a := o.Defaults()
		if made, err := o.Types(&a, types); err != nil || made[0] != op.F32 {
			continue
		}
		list = append(list, map[string]any{"name": o.Name(), "arity": most})
	}
	return list
}

// define makes an operation from a text and the names of its operands, and returns its
// number, or an Error. It does not wait, so the module can call it without a promise.
func (p *program) define(_ js.Value, args []js.Value) any {
	names := make([]string, args[1].Length())
	for i := range names {
		names[i] = args[1].Index(i).String()
	}
	o, err := expression.Parse(args[0].String(), names...)
	if err != nil {
		return bridge.Reason(coded(err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.defined[p.last] = o
	return p.last
}

// release forgets a defined operation.
func (p *program) release(_ js.Value, args []js.Value) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.defined, args[0].Int())
	return nil
}

// operation returns the operation with the given name in the catalogue, or with the given number
// among the defined operations.
func (p *program) operation(v js.Value) (*op.Operation, error) {
	if v.Type() == js.TypeNumber {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o := p.defined[v.Int()]; o != nil {
			return o, nil
		}
		return nil, fmt.Errorf("the expression was released: make it again with gpu.expression: %w", device.ErrClosed)
	}
	if o := op.Lookup(v.String()); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("no operation is called %q: the methods of a batch are the operations: %w", v.String(), device.ErrUnsupported)
}

// mapped runs an elementwise operation over whole arrays. The arguments are the operation and a list of arrays.
func (p *program) mapped(args []js.Value) (any, error) {
	o, err := p.operation(args[0])
	if err != nil {
		return nil, err
	}
	in := make([][]float32, args[1].Length())
	for i := range in {
		if in[i], err = bridge.Slice[float32](args[1].Index(i)); err != nil {
			return nil, fmt.Errorf("%s, operand %d: %w", o, i, err)
		}
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("%s has no operands, expected at least one: %w", o, device.ErrShape)
	}
	if err := p.dev.Map(p.ctx, in[0], o, in...); err != nil {
		return nil, err
	}
	return bridge.TypedArray(in[0])
}

// matmul multiplies matrices. The arguments are a, b, m, k and n.
func (p *program) matmul(args []js.Value) (any, error) {
	var sizes [3]int
	for i := range sizes {
		var err error
		if sizes[i], err = bridge.Int(args[2+i]); err != nil {
			return nil, fmt.Errorf("matmul, size %s: %w: %w", []string{"m", "k", "n"}[i], err, device.ErrShape)
		}
	}
	a, err := bridge.Slice[float32](args[0])
	if err != nil {
		return nil, fmt.Errorf("matmul, operand a: %w", err)
	}
	b, err := bridge.Slice[float32](args[1])
	if err != nil {
		return nil, fmt.Errorf("matmul, operand b: %w", err)
	}
	m, k, n := sizes[0], sizes[1], sizes[2]
	// Check this before allocating the result, so that its size is limited by operands that exist.
	if m < 0 || k < 0 || n < 0 || int64(m)*int64(k) != int64(len(a)) || int64(k)*int64(n) != int64(len(b)) {
		return nil, fmt.Errorf("matmul with m = %d, k = %d, n = %d: a has %d elements, expected m·k, and b has %d, expected k·n: %w", m, k, n, len(a), len(b), device.ErrShape)
	}
	size, err := op.Shape{m, n}.Size()
	if err != nil {
		return nil, err
	}
	c, err := memory.Floats(size)
	if err != nil {
		return nil, fmt.Errorf("matmul, result of %d×%d: %w", m, n, err)
	}
	if err := p.dev.MatMul(p.ctx, c, a, b, nil, m, k, n); err != nil {
		return nil, err
	}
	return bridge.TypedArray(c)
}

func (p *program) close([]js.Value) (any, error) {
	err := p.dev.Close()
	p.once.Do(func() { close(p.end) })
	return nil, err
}

// codes are the errors that JavaScript can distinguish by the property code.
var codes = []struct {
	err  error
	name string
}{
	{device.ErrNoDevice, "ErrNoDevice"}, {device.ErrOutOfMemory, "ErrOutOfMemory"}, {device.ErrDeviceLost, "ErrDeviceLost"},
	{device.ErrClosed, "ErrClosed"}, {device.ErrShape, "ErrShape"}, {device.ErrLimit, "ErrLimit"},
	{device.ErrUnsupported, "ErrUnsupported"}, {device.ErrOverlap, "ErrOverlap"},
	{bridge.ErrDetached, "ErrDetached"}, {bridge.ErrType, "ErrType"}, {bridge.ErrLength, "ErrShape"},
}

// codedError is an error with a code.
type codedError struct {
	error
	code string
}

func (e codedError) Code() string  { return e.code }
func (e codedError) Unwrap() error { return e.error }

// coded returns err with the code of the error that it wraps.
func coded(err error) error {
	var e *expression.Error
	if errors.As(err, &e) {
		return codedError{err, "ErrExpression"}
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return codedError{err, c.name}
		}
	}
	return err
}
