package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/ptx/emu"
)

// onGPU runs the kernel on the first NVIDIA GPU.
func (c *ptxRunCmd) onGPU(a *app, text string, grid, block [3]int, args []*argument) (err error) {
	// The emulator's parser finds the types of parameters. It need not support all of the text.
	if module, err := emu.Parse(text); err == nil {
		if k, err := module.Kernel(c.Kernel); err == nil && k.Err() == nil {
			if err := asParameters(args, k); err != nil {
				return err
			}
		}
	}
	dev, err := cuda.Open(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	mod, err := dev.Load([]byte(text))
	if err != nil {
		return err
	}
	fn, err := mod.Function(c.Kernel)
	if err != nil {
		return err
	}
	s, err := dev.NewStream(0)
	if err != nil {
		return err
	}
	p, at, err := upload(s, args)
	if err != nil {
		return err
	}
	config := cuda.Config{
		Grid:   cuda.Dim{X: uint32(grid[0]), Y: uint32(grid[1]), Z: uint32(grid[2])},
		Block:  cuda.Dim{X: uint32(block[0]), Y: uint32(block[1]), Z: uint32(block[2])},
		Shared: uint32(c.Shared),
	}
	t, err := timed(dev, s, func() error { return s.Launch(fn, config, p) })
	if err != nil {
		return err
	}
	if err := c.results(a, args, func(i int, b []byte) error { return s.Download(b, at[i]) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\n%s: %v, the first launch\n", dev.Info().Name, t)
	return err
}

// timed submits work to a stream, waits for it, and returns its time on the device.
func timed(dev *cuda.Device, s *cuda.Stream, submit func() error) (time.Duration, error) {
	from, err := dev.NewEvent(true)
	if err != nil {
		return 0, err
	}
	to, err := dev.NewEvent(true)
	if err != nil {
		return 0, err
	}
	if err := s.Record(from); err != nil {
		return 0, err
	}
	if err := submit(); err != nil {
		return 0, err
	}
	if err := s.Record(to); err != nil {
		return 0, err
	}
	if err := s.Synchronize(); err != nil {
		return 0, err
	}
	return cuda.Elapsed(from, to)
}

// upload copies the arrays among the arguments to the device. It returns the parameters of the launch, and the addresses of the
// arrays.
func upload(s *cuda.Stream, args []*argument) (p cuda.Params, at []cuda.Ptr, err error) {
	at = make([]cuda.Ptr, len(args))
	for i, x := range args {
		if !x.array {
			if elementSizes[x.typ] == 8 {
				p.U64(x.number)
			} else {
				p.U32(uint32(x.number))
			}
			continue
		}
		m, err := s.Alloc(int64(x.n * elementSizes[x.typ]))
		if err != nil {
			return p, nil, err
		}
		at[i] = m.Ptr()
		data := x.data
		if data == nil { // fill with NaN, like uninitialised memory in the emulator
			data = make([]byte, x.n*elementSizes[x.typ])
			for j := range data {
				data[j] = 0xff
			}
		}
		if err := s.Upload(at[i], data); err != nil {
			return p, nil, err
		}
		p.Ptr(at[i])
	}
	return p, at, nil
}
