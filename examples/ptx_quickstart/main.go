// Command ptx_quickstart writes a kernel in PTX, has it checked, and runs it: on an
// NVIDIA GPU, or in the emulator where there is none.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// saxpy is y = a x + y. This function runs once, when the kernel is built. Its
// calls record the instructions of one thread.
func saxpy(k *ptx.Kernel) {
	x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
	a, n := ptx.Param[ptx.F32](k, "a"), ptx.Param[ptx.U32](k, "n")
	i := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
	k.If(i.Lt(n), func() {
		y.At(i).Store(a.Fma(x.At(i).Load(), y.At(i).Load()))
	})
}

// reverse is y = x backwards, through shared memory, with a mistake: nothing
// makes threads wait until the others have written.
func reverse(k *ptx.Kernel) {
	x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
	all := ptx.SharedArray[ptx.F32](k, "all", 32)
	i := k.Special(ptx.TidX)
	all.At(i).Store(x.At(i).Load())
	y.At(i).Store(all.At(ptx.U(31).Sub(i)).Load()) // k.Sync() is missing before this
}

func run(ctx context.Context, w io.Writer) error {
	m := ptx.NewModule(ptx.SM70) // the oldest compute capability that shall run the kernel
	m.Kernel("saxpy", saxpy)
	if err := m.Verify(); err != nil { // the checks that need no GPU
		return err
	}
	text, err := m.PTX()
	if err != nil {
		return err
	}
	fmt.Fprint(w, text, "\n")

	x, y := make([]float32, 100), make([]float32, 100)
	for i := range x {
		x[i], y[i] = float32(i), 1
	}
	err = onGPU(text, 2, x, y)
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		err = emulated(ctx, text, 2, x, y)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "saxpy", y[:4], "...", y[99])

	// The emulator finds errors that a GPU does not report, and names the line above that caused them.
	k, err := emu.Build(ptx.SM70, "reverse", reverse)
	if err != nil {
		return err
	}
	machine := emu.NewMachine(emu.Config{})
	px, err := machine.Floats("x", x[:32])
	if err != nil {
		return err
	}
	py, err := machine.Alloc("y", 4*32)
	if err != nil {
		return err
	}
	err = machine.Launch(ctx, k, emu.Dim{X: 1}, emu.Dim{X: 32}, 0, px, py)
	var found emu.Findings
	if !errors.As(err, &found) {
		return fmt.Errorf("the mistake was not found: %w", err)
	}
	fmt.Fprintf(w, "reverse has a %v at %v, with %v\n", found[0].Kind, found[0].Pos, found[0].OtherPos)
	return nil
}

// emulated runs saxpy in the emulator.
func emulated(ctx context.Context, text string, a float32, x, y []float32) error {
	module, err := emu.Parse(text)
	if err != nil {
		return err
	}
	k, err := module.Kernel("saxpy")
	if err != nil {
		return err
	}
	m := emu.NewMachine(emu.Config{})
	px, err := m.Floats("x", x)
	if err != nil {
		return err
	}
	py, err := m.Floats("y", y)
	if err != nil {
		return err
	}
	n := len(x)
	if err := m.Launch(ctx, k, emu.Dim{X: (n + 63) / 64}, emu.Dim{X: 64}, 0, px, py, a, uint32(n)); err != nil {
		return err
	}
	got, err := m.ReadFloats(py, n)
	copy(y, got)
	return err
}

// onGPU runs saxpy on the first GPU.
func onGPU(text string, a float32, x, y []float32) error {
	dev, err := cuda.Open(0)
	if err != nil {
		return err
	}
	defer dev.Close()
	module, err := dev.Load([]byte(text))
	if err != nil {
		return err
	}
	k, err := module.Function("saxpy")
	if err != nil {
		return err
	}
	s, err := dev.NewStream(0)
	if err != nil {
		return err
	}
	n := len(x)
	mem, err := s.Alloc(int64(8 * n))
	if err != nil {
		return err
	}
	px, py := mem.Ptr(), mem.Ptr()+cuda.Ptr(4*n)
	if err := errors.Join(s.Upload(px, cuda.AsBytes(x)), s.Upload(py, cuda.AsBytes(y))); err != nil {
		return err
	}
	var p cuda.Params
	p.Ptr(px)
	p.Ptr(py)
	p.F32(a)
	p.U32(uint32(n))
	if err := s.Launch(k, cuda.Config{Grid: cuda.Dim{X: uint32(n+63) / 64}, Block: cuda.Dim{X: 64}}, p); err != nil {
		return err
	}
	return s.Download(cuda.AsBytes(y), py)
}
