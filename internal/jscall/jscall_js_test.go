package jscall

import (
	"errors"
	"syscall/js"
	"testing"
)

// deep calls f below n frames.
func deep(n int, f func() error) error {
	if n == 0 {
		return f()
	}
	err := deep(n-1, f)
	return err
}

// called returns what f returns in a function that JavaScript has called.
func called(f func() error) (err error) {
	wrapped := js.FuncOf(func(js.Value, []js.Value) any {
		err = f()
		return nil
	})
	defer wrapped.Release()
	wrapped.Invoke()
	return err
}

// later returns what f returns in a function that the event loop has called.
func later(f func() error) error {
	c := make(chan error, 1)
	wrapped := js.FuncOf(func(js.Value, []js.Value) any {
		c <- f()
		return nil
	})
	defer wrapped.Release()
	js.Global().Call("setTimeout", wrapped, 0)
	return <-c
}

func TestMayWait(t *testing.T) {
	inGoroutine := func() error {
		c := make(chan error, 1)
		go func() { c <- MayWait() }()
		return <-c
	}
	for _, depth := range []int{0, 1, 50, 63, 64, 65, 500} {
		if err := deep(depth, MayWait); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
		below := func() error { return deep(depth, MayWait) }
		if err := called(below); !errors.Is(err, ErrWait) {
			t.Errorf("depth %d in a function that JavaScript calls: %v", depth, err)
		}
		if err := later(below); !errors.Is(err, ErrWait) {
			t.Errorf("depth %d in a function that the event loop calls: %v", depth, err)
		}
		if err := called(inGoroutine); err != nil {
			t.Errorf("a goroutine of such a function: %v", err)
		}
	}
}

func BenchmarkMayWait(b *testing.B) {
	for b.Loop() {
		_ = deep(30, MayWait)
	}
}
