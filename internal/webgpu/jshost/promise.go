//go:build js && !nowebgpu

package jshost

import (
	"context"
	"errors"
	"sync"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/jscall"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// A promise calls one of two Go functions, which are created once, with the bound number of the
// waiter: nothing remains of a settled promise.
var promises struct {
	once                sync.Once
	fulfilled, rejected js.Func

	mu      sync.Mutex
	last    int
	waiting map[int]func(v js.Value, err error)
}

// then has f called, in the event loop, when the promise is over. f does not wait.
func then(promise js.Value, f func(v js.Value, err error)) {
	p := &promises
	p.once.Do(func() {
		p.waiting = map[int]func(js.Value, error){}
		p.fulfilled = js.FuncOf(func(_ js.Value, args []js.Value) any {
			taken(args[0].Int())(args[1], nil)
			return nil
		})
		p.rejected = js.FuncOf(func(_ js.Value, args []js.Value) any {
			taken(args[0].Int())(js.Undefined(), failure(args[1]))
			return nil
		})
	})
	p.mu.Lock()
	p.last++
	id := p.last
	p.waiting[id] = f
	p.mu.Unlock()
	promise.Call("then", p.fulfilled.Call("bind", nil, id), p.rejected.Call("bind", nil, id))
}

// taken removes and returns the waiter of a promise.
func taken(id int) func(v js.Value, err error) {
	p := &promises
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.waiting[id]
	delete(p.waiting, id)
	return f
}

// await waits for a promise, or for ctx.
func await(ctx context.Context, promise js.Value) (js.Value, error) {
	if err := jscall.MayWait(); err != nil {
		return js.Undefined(), err
	}
	type result struct {
		v   js.Value
		err error
	}
	c := make(chan result, 1)
	then(promise, func(v js.Value, err error) { c <- result{v, err} })
	select {
	case r := <-c:
		return r.v, r.err
	case <-ctx.Done():
		return js.Undefined(), ctx.Err()
	}
}

// all returns the promise of the values of all promises.
func all(list []any) js.Value { return js.Global().Get("Promise").Call("all", list) }

// try calls f, and returns the value that JavaScript throws in it.
func try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case js.Error:
			err = failure(r.Value)
		case *js.ValueError:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// failure returns the text of a JavaScript error: a GPUError, a DOMException, or any other value.
func failure(v js.Value) error {
	if v.Type() != js.TypeObject {
		return errors.New(text(v))
	}
	message := text(v.Get("message"))
	name := v.Get("name")
	if name.Type() != js.TypeString {
		name = v.Get("constructor").Get("name")
	}
	switch kind := text(name); {
	case kind == "GPUOutOfMemoryError", kind == "RangeError":
		return fmt.Errorf("%w: %s", webgpu.ErrOutOfMemory, message)
	case message == "":
		return errors.New(kind)
	}
	return errors.New(message)
}

// text returns a value as a string, "" for undefined.
func text(v js.Value) string {
	switch v.Type() {
	case js.TypeString:
		return v.String()
	case js.TypeUndefined, js.TypeNull, js.TypeSymbol:
		return ""
	}
	return js.Global().Get("String").Invoke(v).String()
}
