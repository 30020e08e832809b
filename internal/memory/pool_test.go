package memory

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

func get(t testing.TB, p *Pool, size int) Block {
	t.Helper()
	b, err := p.Get(size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestClasses(t *testing.T) {
	check := func(n int) {
		c, size := class(n)
		if size < n || size%Line != 0 || c < 0 || c >= classes {
			t.Fatalf("class(%d) = %d of %d bytes", n, c, size)
		}
		if n > 4*Line && size-n > n/4 {
			t.Errorf("class(%d) wastes %d bytes", n, size-n)
		}
		if c2, size2 := class(size); c2 != c || size2 != size {
			t.Fatalf("class(%d) = %d, %d but class of that size = %d, %d", n, c, size, c2, size2)
		}
		if c3, _ := class(size + 1); c3 != c+1 {
			t.Fatalf("class(%d) = %d follows class %d", size+1, c3, c)
		}
	}
	for n := 1; n < 5000; n++ {
		check(n)
	}
	for n := 5000; n < largest/2; n += n/3 + 1 {
		check(n)
	}
}

func TestBlocks(t *testing.T) {
	p := NewPool(Options{})
	for _, n := range []int{1, 3, 4, 63, 64, 65, 4096, 100_003, Huge - 1, Huge, Huge + 1, 5*Huge + 12} {
		b := get(t, p, n)
		bytes := As[uint8](b)
		if b.Len() != n || len(bytes) != n || cap(bytes) != n {
			t.Fatalf("%d bytes: Len %d, view of %d, capacity %d", n, b.Len(), len(bytes), cap(bytes))
		}
		want := uintptr(Line)
		if n >= Huge {
			want = Huge
		}
		if address(bytes)%want != 0 {
			t.Errorf("%d bytes at %#x, not on a multiple of %d", n, address(bytes), want)
		}
		for i := range bytes {
			bytes[i] = byte(i)
		}
		if f := As[float32](b); len(f) != n/4 {
			t.Errorf("%d bytes are %d float32", n, len(f))
		}
		if u := As[uint16](b); len(u) != n/2 || n > 4 && u[1] != 0x0302 {
			t.Errorf("%d bytes are %d uint16", n, len(u))
		}
		b.Free()
		if As[uint8](b) != nil {
			t.Error("a freed block still has a view")
		}
	}
	p.Close()
	if s := p.Stats(); s.Live != 0 || s.Pooled != 0 || s.Mapped != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

func TestReuse(t *testing.T) {
	for _, size := range []int{1000, 3 * Huge} {
		p := NewPool(Options{})
		a := get(t, p, size)
		first := address(As[uint8](a))
		As[uint8](a)[7] = 42
		a.Free()
		b := get(t, p, size-5)
		if v := As[uint8](b); address(v) != first || v[7] != 42 {
			t.Errorf("%d bytes: not the warm block", size)
		}
		// The old block is stale now: it must neither free nor show the new one's memory.
		a.Free()
		if As[uint8](a) != nil {
			t.Error("a stale block has a view")
		}
		if s := p.Stats(); s.Live != size-5 || s.Pooled != 0 || s.Fresh != 1 || s.Reused != 1 || s.Peak != size {
			t.Errorf("%+v", s)
		}
		b.Free()
		b.Free()
		if s := p.Stats(); s.Live != 0 || s.Pooled != s.Mapped {
			t.Errorf("after Free: %+v", s)
		}
		p.ResetPeak()
		p.Trim()
		if s := p.Stats(); s != (Stats{Fresh: 1, Reused: 1}) {
			t.Errorf("after Trim: %+v", s)
		}
	}
}

func TestZeroAndBadSizes(t *testing.T) {
	p := NewPool(Options{})
	b := get(t, p, 0)
	if b.Len() != 0 || As[float32](b) != nil {
		t.Error("an empty block has memory")
	}
	b.Free()
	for _, n := range []int{-1, math.MinInt, math.MaxInt, largest + 1} {
		if _, err := p.Get(n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Get(%d): %v", n, err)
		}
	}
}

func TestLimit(t *testing.T) {
	p := NewPool(Options{Limit: 1000})
	a := get(t, p, 600)
	if _, err := p.Get(401); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("601st of 1000 bytes: %v", err)
	}
	b := get(t, p, 400)
	a.Free()
	get(t, p, 600).Free()
	b.Free()
}

func TestKeep(t *testing.T) {
	p := NewPool(Options{Keep: 3 * Huge})
	var bs []Block
	for range 5 {
		bs = append(bs, get(t, p, Huge))
	}
	small := get(t, p, 64)
	small.Free()
	for _, b := range bs {
		b.Free()
	}
	if s := p.Stats(); s.Pooled != 3*Huge || s.Mapped != 3*Huge {
		t.Errorf("kept %+v, want the last three blocks of %d", s, Huge)
	}
	none := NewPool(Options{Keep: -1})
	get(t, none, Huge).Free()
	if s := none.Stats(); s.Mapped != 0 {
		t.Errorf("kept %+v, want nothing", s)
	}
}

// eventually collects garbage until ok, as cleanups run when they like.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testutil.Soon(t, what, func() bool {
		runtime.GC()
		return ok()
	})
}

func TestLostBlocks(t *testing.T) {
	p := NewPool(Options{})
	for _, size := range []int{100, 2 * Huge} {
		func() {
			b := get(t, p, size)
			As[uint8](b)[0] = 1
			runtime.KeepAlive(b)
		}()
	}
	held := get(t, p, Huge)
	eventually(t, "two blocks count as leaked", func() bool { return p.Stats().Leaked == 2 })
	if s := p.Stats(); s.Live != Huge || s.Mapped != Huge {
		t.Errorf("%+v, want only the block that is held", s)
	}
	held.Free()
}

func TestLostPool(t *testing.T) {
	var l *account
	func() {
		p := NewPool(Options{})
		get(t, p, 4*Huge).Free()
		l = p.account
	}()
	eventually(t, "nothing is held", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.s.Mapped == 0 })
	if l.s.Leaked != 0 {
		t.Errorf("%d blocks count as leaked that were freed", l.s.Leaked)
	}
}

func TestBlockOutlivesClose(t *testing.T) {
	p := NewPool(Options{})
	b := get(t, p, Huge)
	p.Close()
	p.Close()
	As[uint8](b)[Huge-1] = 1
	b.Free()
	if s := p.Stats(); s.Mapped != 0 {
		t.Errorf("%+v", s)
	}
}

func TestManyUsers(t *testing.T) {
	p := NewPool(Options{Keep: 4 * Huge})
	var wg sync.WaitGroup
	for g := range 1000 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20 {
				b, err := p.Get(r.IntN(1<<r.IntN(15)) + 1)
				if err != nil {
					t.Error(err)
					return
				}
				v := As[uint8](b)
				for i := range v {
					v[i] = byte(g)
				}
				runtime.Gosched()
				for i := range v {
					if v[i] != byte(g) {
						t.Errorf("another user wrote into a live block")
						break
					}
				}
				b.Free()
				if r.IntN(4) == 0 {
					b.Free()
				}
				if r.IntN(50) == 0 {
					p.Trim()
				}
			}
		}()
	}
	wg.Wait()
	if s := p.Stats(); s.Live != 0 || s.Leaked != 0 || s.Mapped != s.Pooled {
		t.Errorf("%+v", s)
	}
	p.Close()
	if s := p.Stats(); s.Mapped != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	for _, size := range []int{64, 10_000, 3 * Huge} {
		if n := testutil.Allocations(100, func() { get(t, p, size).Free() }); n != 0 {
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

func BenchmarkGetFree(b *testing.B) {
	p := NewPool(Options{})
	for b.Loop() {
		get(b, p, 4<<20).Free()
	}
}
