package bridge

import (
	"context"
	"errors"
	"math"
	"slices"
	"syscall/js"
	"testing"
	"time"
)

// array makes an object by its constructor: pages with a strict policy evaluate no text.
func array(name string, args ...any) js.Value { return js.Global().Get(name).New(args...) }

func roundTrip[T Element](t *testing.T, values ...T) {
	t.Helper()
	v, err := TypedArray(values)
	if err != nil {
		t.Fatal(err)
	}
	if v.Length() != len(values) || v.Get("constructor").Get("name").String() != nameOf[T]() {
		t.Fatalf("%s has %d elements", v.Get("constructor").Get("name"), v.Length())
	}
	for i, x := range values {
		if got := v.Index(i).Float(); got != float64(x) {
			t.Errorf("%s: element %d is %v, not %v", nameOf[T](), i, got, x)
		}
	}
	back, err := Slice[T](v)
	if err != nil || !slices.Equal(back, values) {
		t.Errorf("%s: %v became %v after copying there and back, error %v", nameOf[T](), values, back, err)
	}
	// A part of the buffer: its byteOffset is not 0.
	if len(values) > 2 {
		part, err := Slice[T](v.Call("subarray", 1, len(values)-1))
		if err != nil || !slices.Equal(part, values[1:len(values)-1]) {
			t.Errorf("%s: copying the middle of %v gave %v, error %v", nameOf[T](), values, part, err)
		}
		if err := CopyToJS(v.Call("subarray", 1, 2), values[:1]); err != nil {
			t.Error(err)
		}
		if v.Index(0).Float() != float64(values[0]) || v.Index(1).Float() != float64(values[0]) || v.Index(2).Float() != float64(values[2]) {
			t.Errorf("%s: copied to the wrong place", nameOf[T]())
		}
	}
}

func TestTypedArrays(t *testing.T) {
	roundTrip[int8](t, -128, 0, 127, 5)
	roundTrip[uint8](t, 0, 255, 7, 1)
	roundTrip[int16](t, -32768, 32767, 3)
	roundTrip[uint16](t, 65535, 0, 3)
	roundTrip[int32](t, math.MinInt32, math.MaxInt32, 3)
	roundTrip[uint32](t, math.MaxUint32, 0, 3)
	roundTrip[float32](t, 1.5, float32(math.Inf(-1)), 3, math.SmallestNonzeroFloat32)
	roundTrip[float64](t, math.Pi, math.Inf(1), -0.25)
	roundTrip[float32](t)
	clamped, err := Slice[uint8](array("Uint8ClampedArray", 3))
	if err != nil || len(clamped) != 3 {
		t.Errorf("a Uint8ClampedArray gave %v, error %v", clamped, err)
	}
}

func TestWrongArrays(t *testing.T) {
	for name, v := range map[string]js.Value{
		"undefined": js.Undefined(), "null": js.Null(), "a number": js.ValueOf(3), "a string": js.ValueOf("Float32Array"),
		"an array": js.ValueOf([]any{1, 2}), "a Float64Array": array("Float64Array", 2), "an object": js.Global().Get("Object").New(),
		"a DataView": array("DataView", array("ArrayBuffer", 8)), "a function": js.Global().Get("Float32Array"),
	} {
		if x, err := Slice[float32](v); !errors.Is(err, ErrType) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
	x := array("Float32Array", 4)
	if err := CopyToGo(make([]float32, 3), x); !errors.Is(err, ErrLength) {
		t.Errorf("copying 4 elements into 3 gave the error %v", err)
	}
	if err := CopyToJS(x, make([]float32, 5)); !errors.Is(err, ErrLength) {
		t.Errorf("copying 5 elements into 4 gave the error %v", err)
	}
	// A transfer detaches the buffer, as postMessage to a Worker does.
	options := js.Global().Get("Object").New()
	options.Set("transfer", []any{x.Get("buffer")})
	js.Global().Call("structuredClone", x.Get("buffer"), options)
	if _, err := Slice[float32](x); !errors.Is(err, ErrDetached) {
		t.Errorf("copying from a detached array gave the error %v", err)
	}
	if err := CopyToJS(x, []float32{}); !errors.Is(err, ErrDetached) {
		t.Errorf("copying into a detached array gave the error %v", err)
	}
}

func TestInt(t *testing.T) {
	for _, v := range []any{0, -3, 1 << 40} {
		if n, err := Int(js.ValueOf(v)); err != nil || n != v {
			t.Errorf("%v gave %d, %v", v, n, err)
		}
	}
	for _, v := range []any{0.5, math.NaN(), math.Inf(1), "3", nil, true, 1e300} {
		if n, err := Int(js.ValueOf(v)); err == nil {
			t.Errorf("%v gave %d", v, n)
		}
	}
}

type coded struct{}

func (coded) Error() string { return "coded" }
func (coded) Code() string  { return "ErrShape" }

func TestPromise(t *testing.T) {
	ctx := context.Background()
	v, err := Await(ctx, Promise(func() (any, error) {
		time.Sleep(time.Millisecond) // it may wait
		return 42, nil
	}))
	if err != nil || v.Int() != 42 {
		t.Errorf("%v, %v", v, err)
	}
	if v, err = Await(ctx, js.ValueOf("as it is")); err != nil || v.String() != "as it is" {
		t.Errorf("%v, %v", v, err)
	}
	for name, f := range map[string]func() (any, error){
		"an error":     func() (any, error) { return nil, errors.New("no luck") },
		"a panic":      func() (any, error) { panic("no luck") },
		"a bad result": func() (any, error) { return make(chan int), nil },
		"what it has":  func() (any, error) { return Await(ctx, js.Global().Get("Promise").Call("reject", 7)) },
	} {
		_, err := Await(ctx, Promise(f))
		var e js.Error
		if !errors.As(err, &e) || !e.Value.InstanceOf(js.Global().Get("Error")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = Await(ctx, Promise(func() (any, error) { return nil, coded{} }))
	var e js.Error
	if !errors.As(err, &e) || e.Value.Get("code").String() != "ErrShape" {
		t.Errorf("no code: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	never := Promise(func() (any, error) { select {} })
	if _, err := Await(ctx, never); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("never settled: %v", err)
	}
}

func TestFunc(t *testing.T) {
	var inside error
	f := Func(func(args []js.Value) (any, error) {
		x, err := Slice[float32](args[0])
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
		return TypedArray(append(x, x...))
	})
	defer f.Release()
	v, err := Await(context.Background(), f.Invoke(array("Float32Array", js.ValueOf([]any{1, 2}))))
	if err != nil || v.Length() != 4 || v.Index(3).Float() != 2 {
		t.Errorf("%v, %v", v, err)
	}
	// A function of JavaScript that waited for a promise would hang the page.
	hasty := js.FuncOf(func(js.Value, []js.Value) any {
		_, inside = Await(context.Background(), f.Invoke(array("Float32Array", 1)))
		return nil
	})
	defer hasty.Release()
	hasty.Invoke()
	if inside == nil {
		t.Error("Await waited in a function that JavaScript had called")
	}
}

// deep uses some stack, so that it grows.
func deep(n int) int {
	var room [64]int
	if n == 0 {
		return room[0]
	}
	room[n%64] = n
	return deep(n-1) + room[(n+1)%64]
}

func TestView(t *testing.T) {
	var x [8]float32 // would be on the stack, which the goroutine's growth moves
	done := make(chan error)
	go func() {
		deep(1000)
		done <- View(x[2:6], func(v js.Value) {
			if v.Length() != 4 || v.Get("constructor").Get("name").String() != "Float32Array" {
				t.Errorf("%v of %d elements", v.Get("constructor").Get("name"), v.Length())
			}
			x[3] = 1.5
			if v.Index(1).Float() != 1.5 {
				t.Error("the array does not show what Go has written")
			}
			v.Call("fill", 7)
		})
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if x != [8]float32{0, 0, 7, 7, 7, 7, 0, 0} {
		t.Errorf("the slice has %v after JavaScript wrote into the view", x)
	}
	if err := View([]uint8(nil), func(v js.Value) {
		if v.Length() != 0 {
			t.Error("a view of an empty slice has elements")
		}
	}); err != nil {
		t.Error(err)
	}
	// The memory grows; a new view is of the new buffer.
	large := make([]float64, 8<<20)
	large[len(large)-1] = 3
	if err := View(large[len(large)-1:], func(v js.Value) {
		if v.Index(0).Float() != 3 {
			t.Error("a view after growth shows other memory")
		}
	}); err != nil {
		t.Error(err)
	}
}
