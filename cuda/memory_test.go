package cuda

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestStagingIsOrdered mixes uploads and downloads of many sizes through the staging ring and checks every byte.
func TestStagingIsOrdered(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	const room = 6*halfSize + 100
	m := must[Memory](t)(s.Alloc(room))
	want := make([]byte, room)
	seed := uint32(1)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	if err := s.Set8(m.Ptr(), 0, room); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		n := next(3000)
		if i%20 == 0 {
			n = next(room)
		}
		off := next(room - n + 1)
		if next(3) > 0 {
			src := make([]byte, n)
			for j := range src {
				src[j] = byte((j*j + i*j + i) >> 3)
			}
			copy(want[off:], src)
			if err := s.Upload(m.Ptr()+Ptr(off), src); err != nil {
				t.Fatal(err)
			}
			clear(src) // the program may change the slice as soon as Upload returns
		} else {
			dst := make([]byte, n)
			if err := s.Download(dst, m.Ptr()+Ptr(off)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want[off:off+n]) {
				t.Fatalf("step %d: %d bytes from %d on differ", i, n, off)
			}
		}
	}
	noLeaks(t, k, d)
}

func TestHostMemory(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	h := must[*HostMemory](t)(d.AllocHost(1000))
	if !bytes.Equal(h.Bytes(), make([]byte, 1000)) || h.Size() != 1000 || h.Ptr() == 0 || len(HostSlice[float64](h)) != 125 {
		t.Error("fresh host memory is not 1000 zeros")
	}
	m := must[Memory](t)(s.Alloc(1000))
	for i := range h.Bytes() {
		h.Bytes()[i] = byte(i)
	}
	if err := s.CopyFromHost(m.Ptr(), h, 0, 1000); err != nil {
		t.Error(err)
	}
	if err := s.Copy(m.Ptr(), m.Ptr()+500, 400); err != nil {
		t.Error(err)
	}
	if err := s.CopyToHost(h, 10, m.Ptr(), 400); err != nil {
		t.Error(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Error(err)
	}
	if got, want := h.Bytes()[10+399], byte((500+399)%256); got != want || h.Bytes()[9] != 9 || h.Bytes()[410] != byte(410%256) {
		t.Errorf("byte 409 = %d, want %d", got, want)
	}
	for _, c := range [][2]int64{{-1, 1}, {0, 1001}, {1000, 1}, {1, math.MaxInt64}, {0, -1}, {math.MaxInt64, 1}} {
		if err := s.CopyFromHost(m.Ptr(), h, c[0], c[1]); !errors.Is(err, ErrInvalid) {
			t.Errorf("a copy of %d bytes from %d on: %v", c[1], c[0], err)
		}
	}
	h.Close()
	h.Close()
	if err := s.CopyFromHost(m.Ptr(), h, 0, 1); !errors.Is(err, ErrClosed) || h.Bytes() != nil || h.Ptr() != 0 || h.Size() != 0 {
		t.Errorf("after Close: %v", err)
	}
	if _, err := d.AllocHost(-1); !errors.Is(err, ErrInvalid) {
		t.Errorf("AllocHost(-1): %v", err)
	}
	noLeaks(t, k, d)
}

func TestLockHost(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(i)
	}
	h := must[*HostMemory](t)(d.LockHost(b))
	m := must[Memory](t)(s.Alloc(1000))
	for _, err := range []error{s.CopyFromHost(m.Ptr(), h, 100, 300), s.CopyToHost(h, 600, m.Ptr(), 300), s.Synchronize()} {
		if err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(b[600:900], b[100:400]) || b[599] != 599%256 || b[900] != 900%256 {
		t.Error("the copy through the device is not in place")
	}
	if &h.Bytes()[0] != &b[0] || h.Size() != 1000 || h.Ptr() == 0 {
		t.Error("the locked memory is another one")
	}
	h.Close()
	h.Close()
	if err := s.CopyFromHost(m.Ptr(), h, 0, 1); !errors.Is(err, ErrClosed) || b[1] != 1 {
		t.Errorf("after Close: %v", err)
	}
	if _, err := d.LockHost(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("LockHost(nil): %v", err)
	}
	noLeaks(t, k, d)
}

func TestMemoryHandles(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	a := must[Memory](t)(s.Alloc(5000))
	p := a.Ptr()
	copied := a
	a.Free()
	if copied.Ptr() != 0 || copied.Size() != 0 {
		t.Error("a copy of freed memory still has an address")
	}
	b := must[Memory](t)(s.Alloc(4900))
	if b.Ptr() != p {
		t.Error("freed memory is not used again")
	}
	copied.Free() // must not free b
	a.Free()
	if b.Ptr() != p || b.Size() != 4900 {
		t.Error("freeing twice freed what belongs to another")
	}
	if (Memory{}).Free() != nil || (Memory{}).Ptr() != 0 {
		t.Error("no memory is not harmless")
	}
	for _, n := range []int64{-1, math.MinInt64} {
		if _, err := s.Alloc(n); !errors.Is(err, ErrInvalid) {
			t.Errorf("Alloc(%d): %v", n, err)
		}
	}
	for _, n := range []int64{k.capacity + 1, math.MaxInt64} {
		if _, err := s.Alloc(n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Alloc(%d): %v", n, err)
		}
		if _, err := d.Alloc(n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Device.Alloc(%d): %v", n, err)
		}
	}
	// Memory remains valid after its stream is closed, and can be freed then.
	c := must[Memory](t)(s.Alloc(100))
	s.Close()
	if c.Ptr() == 0 {
		t.Error("memory went with its stream")
	}
	c.Free()
	own := must[Memory](t)(d.Alloc(1 << 20))
	own.Free()
	kept := must[Memory](t)(d.Alloc(1 << 20))
	d.Close()
	if kept.Ptr() != 0 || kept.Free() != nil {
		t.Error("memory is there after Close")
	}
	noLeaks(t, k, d)
}

// TestOutOfMemoryTrims fills the device with memory that the pool keeps, and allocates more than is left.
func TestOutOfMemoryTrims(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s1, s2 := must[*Stream](t)(d.NewStream(0)), must[*Stream](t)(d.NewStream(0))
	for _, s := range []*Stream{s1, s2} {
		must[Memory](t)(s.Alloc(400 << 20)).Free()
	}
	m, err := s1.Alloc(900 << 20)
	if err != nil {
		t.Fatalf("memory that is kept is in the way: %v", err)
	}
	if _, err := s2.Alloc(900 << 20); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	m.Free()
	if _, err := s2.Alloc(900 << 20); err != nil {
		t.Errorf("after Free: %v", err)
	}
	noLeaks(t, k, d)
}

func TestSizes(t *testing.T) {
	last := int64(0)
	lastBin := -1
	for n := int64(0); n <= largest; n += 1 + n/37 {
		size, bin := rounded(n)
		if size < n || size%grain != 0 || size > max(n+n/4+grain, grain) {
			t.Fatalf("%d bytes take %d", n, size)
		}
		if again, b := rounded(size); again != size || b != bin {
			t.Fatalf("a block of %d bytes is of bin %d and rounds to %d in bin %d", size, bin, again, b)
		}
		if bin < 0 || bin >= binCount || size < last || size > last && bin <= lastBin || size == last && bin != lastBin {
			t.Fatalf("%d bytes: size %d after %d, bin %d after %d", n, size, last, bin, lastBin)
		}
		last, lastBin = size, bin
	}
	for _, n := range []int64{largest + 1, 100 << 20, 1<<40 + 1} {
		size, bin := rounded(n)
		if bin != -1 || size < n || size-n >= largeStep {
			t.Errorf("%d bytes take %d, bin %d", n, size, bin)
		}
	}
}
