//go:build js

package bridge

import (
	"context"
	"errors"
	"fmt"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/jscall"
)

// Promise runs f in a new goroutine and returns a promise of its result, converted by
// [js.ValueOf]. The promise is rejected with [Reason] of the error if f returns
// one, if f panics, or if js.ValueOf does not accept the result.
func Promise(f func() (any, error)) js.Value {
	var resolve, reject js.Value
	// JavaScript calls the executor before it returns the promise.
	executor := js.FuncOf(func(_ js.Value, args []js.Value) any {
		resolve, reject = args[0], args[1]
		return nil
	})
	promise := js.Global().Get("Promise").New(executor)
	executor.Release()
	go func() {
		v, err := result(f)
		if err != nil {
			reject.Invoke(Reason(err))
			return
		}
		resolve.Invoke(v)
	}()
	return promise
}

// result calls f and returns its result as a JavaScript value.
func result(f func() (any, error)) (v js.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	x, err := f()
	if err != nil {
		return js.Undefined(), err
	}
	return js.ValueOf(x), nil
}

// Func returns a function for JavaScript that runs f as [Promise] does, and returns the
// promise. f may wait, because it runs after the call of JavaScript has returned. While
// one call of f waits, others run. Release the function when JavaScript calls it no more.
func Func(f func(args []js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		return Promise(func() (any, error) { return f(args) })
	})
}

// Await waits until a promise is settled, or until ctx ends, and returns its value. A
// value that is no promise is returned as it is.
//
// # Errors
//   - [js.Error] with the reason of the rejection.
//   - the error of ctx.
//   - an error at once if Await is called within a function of js.FuncOf: JavaScript settles
//     promises only after that function returns. Start a goroutine, or use [Func].
func Await(ctx context.Context, promise js.Value) (js.Value, error) {
	if err := jscall.MayWait(); err != nil {
		return js.Undefined(), err
	}
	type settled struct {
		v   js.Value
		err error
	}
	c := make(chan settled, 1)
	// These functions live until the promise is settled, which may be after ctx has ended.
	var fulfilled, rejected js.Func
	settle := func(s settled) any {
		fulfilled.Release()
		rejected.Release()
		c <- s
		return nil
	}
	fulfilled = js.FuncOf(func(_ js.Value, args []js.Value) any { return settle(settled{v: args[0]}) })
	rejected = js.FuncOf(func(_ js.Value, args []js.Value) any {
		return settle(settled{js.Undefined(), thrown(args[0])})
	})
	js.Global().Get("Promise").Call("resolve", promise).Call("then", fulfilled, rejected)
	select {
	case s := <-c:
		return s.v, s.err
	case <-ctx.Done():
		return js.Undefined(), ctx.Err()
	}
}

// Thrown is the error of a promise that was rejected with a value that is not an object, which a
// [js.Error] cannot hold.
type Thrown struct{ Value js.Value }

// Error returns the value as text.
func (t Thrown) Error() string {
	return "JavaScript: " + js.Global().Get("String").Invoke(t.Value).String()
}

func thrown(v js.Value) error {
	if v.Type() == js.TypeObject || v.Type() == js.TypeFunction {
		return js.Error{Value: v}
	}
	return Thrown{v}
}

// Reason returns the JavaScript value for an error: an Error with its text, or the Error
// itself if JavaScript has thrown it. An error with a method Code() string, such as "ErrShape",
// gives the Error a property of that name in lower case, which programs can compare.
func Reason(err error) js.Value {
	var e js.Error
	if errors.As(err, &e) && e.Value.InstanceOf(js.Global().Get("Error")) {
		return e.Value
	}
	v := js.Global().Get("Error").New(err.Error())
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		v.Set("code", coded.Code())
	}
	return v
}

// try calls f, and returns a JavaScript exception in it as an error.
func try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case js.Error:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}
