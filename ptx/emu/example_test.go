package emu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// A kernel reverses the elements of each block through shared memory. It lacks the barrier
// before it reads elements that other threads write.
func Example() {
	reverse := func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.U32](k, "x")
		s := ptx.SharedArray[ptx.U32](k, "s", 64)
		t := k.Special(ptx.TidX)
		i := k.Special(ptx.CtaidX).MulAdd(ptx.U(64), t)
		s.At(t).Store(x.At(i).Load())
		// k.Sync() is missing here.
		x.At(i).Store(s.At(ptx.U(63).Sub(t)).Load())
	}
	k, err := emu.Build(ptx.SM70, "reverse", reverse)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := emu.NewMachine(emu.Config{})
	x, err := m.Words("x", make([]uint32, 128))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = m.Launch(context.Background(), k, emu.Dim{X: 2}, emu.Dim{X: 64}, 0, x)
	var findings emu.Findings
	errors.As(err, &findings)
	for _, f := range findings {
		fmt.Println(f.Pos, f.Kind, f.Name)
	}
	// Output:
	// emu/example_test.go:22 uninitialised read s_s
	// emu/example_test.go:20 race s_s
	// emu/example_test.go:22 race s_s
}
