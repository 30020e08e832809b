package simd

import (
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// gatherLimits are the times of one thread in nanoseconds, and a limit, measured on 2026-11-25.
var gatherLimits = struct {
	short            int
	rowNS, oneNS, ns float64
}{
	rowNS: 10,   // for a row
	oneNS: 1,    // for a row of one element
	ns:    0.1,  // for an element
	short: 2048, // bytes of a row up to which vectors are faster than copy
}

// Gather copies rows of tables. x is outer tables of extent rows of inner elements, and row i
// of each of the outer parts of dst becomes row ids[i] of its table. Negative ids count from the
// end. For an id that is out of range the row is filled with missing. dst must not overlap x. With
// a nil Pool it uses only the calling thread. It panics if a slice is too short.
func Gather[T uint8 | uint16 | uint32 | float32](p *workers.Pool, dst, x []T, ids []int32, outer, extent, inner int, missing T) {
	n, m := area(outer*extent, inner), area(outer*len(ids), inner)
	if len(x) < n || len(dst) < m {
		panic(fmt.Sprintf("simd: Gather of %d rows from %d times %d rows of %d: dst and x have lengths %d and %d", len(ids), outer, extent, inner, len(dst), len(x)))
	}
	if m == 0 {
		return
	}
	pool := gatherPool[T]()
	t := pool.Get().(*gatherTask[T])
	t.dst, t.x, t.ids, t.extent, t.inner, t.missing = dst, x, ids, extent, inner, missing
	t.rows = outer * len(ids)
	t.group = t.rows
	row := float64(gatherLimits.rowNS)
	if inner == 1 {
		row = gatherLimits.oneNS
	}
	if p.Worth(float64(t.rows)*row + float64(m)*gatherLimits.ns) {
		t.group = max(1, t.rows/(8*p.Threads()))
	}
	p.Do((t.rows+t.group-1)/t.group, t)
	t.dst, t.x, t.ids = nil, nil, nil
	pool.Put(t)
}

// gatherCall is the largest number of rows of one call of a kernel, which the runtime cannot interrupt.
const gatherCall = 2048

// gatherShortRows copies rows of size bytes, at least 8, from a table of extent rows. It stops at the
// first id that is out of range and returns the number of rows that it copied. It is nil if there is
// no such kernel.
var gatherShortRows = gatherShortRowsOf(active)

// gatherWords copies the n elements of 32 bits with the given ids. n is a positive multiple of 8. It is nil
// if there is no such kernel.
var gatherWords = gatherWordsOf(active)

type gatherTask[T any] struct {
	dst, x        []T
	ids           []int32
	extent, inner int
	missing       T
	rows, group   int // the number of rows, and of rows in a part
}

var (
	gathers8  = sync.Pool{New: func() any { return new(gatherTask[uint8]) }}
	gathers16 = sync.Pool{New: func() any { return new(gatherTask[uint16]) }}
	gathers32 = sync.Pool{New: func() any { return new(gatherTask[uint32]) }}
	gathersF  = sync.Pool{New: func() any { return new(gatherTask[float32]) }}
)

// gatherPool returns the pool of tasks for elements of type T.
func gatherPool[T any]() *sync.Pool {
	switch any(*new(T)).(type) {
	case uint8:
		return &gathers8
	case uint16:
		return &gathers16
	case uint32:
		return &gathers32
	}
	return &gathersF
}

// Part copies a few rows.
func (t *gatherTask[T]) Part(k int) {
	first, end := k*t.group, min((k+1)*t.group, t.rows)
	for first < end {
		o, i := first/len(t.ids), first%len(t.ids)
		n := min(len(t.ids)-i, end-first)
		x, dst := t.x[o*t.extent*t.inner:][:t.extent*t.inner], t.dst[first*t.inner:][:n*t.inner]
		if t.inner == 1 {
			t.elements(dst, x, t.ids[i:][:n])
		} else {
			t.lines(dst, x, t.ids[i:][:n])
		}
		first += n
	}
}

// elements copies rows of one element.
func (t *gatherTask[T]) elements(dst, x []T, ids []int32) {
	dst = dst[:len(ids)]
	if gatherWords != nil && unsafe.Sizeof(t.missing) == 4 {
		for len(ids) >= 8 {
			n := min(len(ids)&^7, gatherCall)
			gatherWords((*uint32)(unsafe.Pointer(&dst[0])), (*uint32)(unsafe.Pointer(unsafe.SliceData(x))), &ids[0], n, len(x), *(*uint32)(unsafe.Pointer(&t.missing)))
			dst, ids = dst[n:], ids[n:]
		}
	}
	for i, id := range ids {
		at := int(id)
		if at < 0 {
			at += len(x)
		}
		if uint(at) < uint(len(x)) {
			dst[i] = x[at]
		} else {
			dst[i] = t.missing
		}
	}
}

// lines copies rows of several elements.
func (t *gatherTask[T]) lines(dst, x []T, ids []int32) {
	inner, size := t.inner, t.inner*int(unsafe.Sizeof(t.missing))
	short := gatherShortRows != nil && size >= 8 && size <= gatherLimits.short && len(x) > 0
	for i := 0; i < len(ids); i++ {
		if short {
			i += gatherShortRows(bytesOf(dst[i*inner:]), bytesOf(x), &ids[i], min(len(ids)-i, gatherCall), t.extent, size)
			if i == len(ids) {
				return
			}
		}
		at := int(ids[i])
		if at < 0 {
			at += t.extent
		}
		y := dst[i*inner:][:inner]
		if uint(at) < uint(t.extent) {
			copy(y, x[at*inner:][:inner])
			continue
		}
		for j := range y {
			y[j] = t.missing
		}
	}
}

func bytesOf[T any](x []T) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(x))) }
