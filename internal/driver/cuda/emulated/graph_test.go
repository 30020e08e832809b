package emulated

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/op"
)

// negations returns a program whose steps each negate n elements. The result is negated if
// the number of steps is odd.
func negations(n, steps int) *driver.Program {
	p := &driver.Program{Ext: 2}
	for i := range steps + 1 {
		s := driver.Slot{Type: op.F32, Shape: op.Shape{n}, Bytes: 4 * int64(n), Ext: -1, Written: i > 0}
		switch i {
		case 0:
			s.Ext = 0
		case steps:
			s.Ext = 1
		default:
			s.Off = p.Arena
			p.Arena += (s.Bytes + 255) &^ 255
		}
		p.Slots = append(p.Slots, s)
	}
	for i := range steps {
		p.Steps = append(p.Steps, driver.Step{
			Post: &driver.Fused{In: []driver.Operand{{Slot: i, Type: op.F32, N: n}}, Body: []driver.Instr{{Op: op.Neg, Args: []int{0}, Type: op.F32}}, Out: []int{1}, Shape: op.Shape{n}},
			Out:  []driver.Operand{{Slot: i + 1, Type: op.F32, N: n}},
		})
	}
	return p
}

// pairOf returns n random elements and the expected results.
func pairOf(n int) (in, want []byte) {
	in = make([]byte, 4*n)
	for i := range in {
		in[i] = byte(rand.Uint32())
		if i%4 == 3 {
			in[i] &= 0xbf // neither infinite nor NaN
		}
	}
	want = bytes.Clone(in)
	for i := 3; i < len(want); i += 4 {
		want[i] ^= 0x80
	}
	return in, want
}

// TestGraphs runs programs often enough that they become graphs: over slices that
// are others each time, over arrays of the device that are some of several, and
// from several goroutines.
func TestGraphs(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{100, 10_000, 70_000} {
		e := newEmulator(cu.Capability{Major: 8}, false)
		d, err := cuda.New(e)
		if err != nil {
			t.Fatal(err)
		}
		x, err := d.Prepare(ctx, negations(n, 5))
		if err != nil {
			t.Fatal(err)
		}
		submit := func(ext []driver.Binding, wait bool) error {
			f, err := x.Submit(ctx, &driver.Submission{Ext: ext, Wait: wait})
			if err == nil && f != nil {
				err = f.Wait(ctx)
			}
			return err
		}
		once := func(wait bool) error {
			in, want := pairOf(n)
			out := make([]byte, len(in))
			if err := submit([]driver.Binding{{Host: in}, {Host: out}}, wait); err != nil {
				return err
			}
			if !bytes.Equal(out, want) {
				return fmt.Errorf("a wrong result")
			}
			return nil
		}
		for i := range 5 {
			if err := once(i%2 == 0); err != nil {
				t.Errorf("%d elements, run %d: %v", n, i, err)
			}
		}
		e.mu.Lock()
		if e.live["graphs"] != 1 {
			t.Errorf("%d elements: %d graphs", n, e.live["graphs"])
		}
		e.mu.Unlock()
		var wg sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 3 {
					if err := once(false); err != nil {
						t.Errorf("%d elements, beside others: %v", n, err)
					}
				}
			}()
		}
		wg.Wait()
		residents(t, d, submit, n)
		x.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// residents runs over more pairs of arrays of the device than there may be graphs.
func residents(t *testing.T, d driver.Device, submit func([]driver.Binding, bool) error, n int) {
	for i := range 6 {
		var p struct{ in, out driver.Memory }
		var err error
		if p.in, err = d.Alloc(4*int64(n) + 4); err == nil {
			p.out, err = d.Alloc(4 * int64(n))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer p.in.Free()
		defer p.out.Free()
		for range 3 {
			in, want := pairOf(n)
			out := make([]byte, len(in))
			off := int64(4 * (i % 2)) // an address that is not aligned
			if err := write(d, p.in, off, in); err != nil {
				t.Fatal(err)
			}
			if err := submit([]driver.Binding{{Mem: p.in, Off: off}, {Mem: p.out}}, true); err != nil {
				t.Fatal(err)
			}
			if err := read(d, p.out, out); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out, want) {
				t.Errorf("%d elements, arrays %d: a wrong result", n, i)
			}
		}
	}
}

// write and read copy to and from memory of the device by programs that do nothing
// else.
func write(d driver.Device, m driver.Memory, off int64, b []byte) error {
	return move(d, len(b), driver.Binding{Host: b}, driver.Binding{Mem: m, Off: off})
}

func read(d driver.Device, m driver.Memory, b []byte) error {
	return move(d, len(b), driver.Binding{Mem: m}, driver.Binding{Host: b})
}

func move(d driver.Device, n int, from, to driver.Binding) error {
	ctx := context.Background()
	p := relu(n / 4)
	f := p.Steps[0].Post
	f.Body, f.Out = nil, []int{0}
	x, err := d.Prepare(ctx, p)
	if err != nil {
		return err
	}
	defer x.Close()
	_, err = x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{from, to}, Wait: true})
	return err
}
