package simd

import (
	"math"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// topKLimits are the limits of the two ways to find the greatest elements, measured on 2 cores of an Intel Xeon
// with AVX-512, 2026-11-21 (go test -bench TopK ./simd).
var topKLimits = struct {
	selection    int
	ns, selectNS float64
}{
	ns:        0.1, // nanoseconds for an element, with the heap
	selectNS:  6,   // nanoseconds for an element, with selection
	selection: 16,  // quotient of cols and k from which on the heap is faster: most chunks have no element for it
}

// TopK finds the k greatest elements of each of rows rows of cols elements. It
// writes those of row i to values[i*k:] in descending order and their columns to
// index[i*k:]. Of equal elements the one with the lower column comes first. NaN
// counts as greater than everything and equal to itself, -0 as equal to +0. values
// or index may be nil. With a nil Pool it uses only the calling thread. It panics if k
// is not between 0 and cols, if cols exceeds 2^31-1, or if a slice is too short.
func TopK(p *workers.Pool, values []float32, index []int32, x []float32, rows, cols, k int) {
	n := area(rows, cols)
	if k < 0 || k > cols || uint64(cols) > math.MaxInt32 || len(x) < n ||
		values != nil && len(values) < rows*k || index != nil && len(index) < rows*k {
		panic(fmt.Sprintf("simd: TopK of %d elements of %d rows of %d: values, index and x have lengths %d, %d and %d", k, rows, cols, len(values), len(index), len(x)))
	}
	if rows == 0 || k == 0 {
		return
	}
	t := topKs.Get().(*topKTask)
	t.values, t.index, t.x, t.rows, t.cols, t.k = values, index, x, rows, cols, k
	t.group = rows
	ns := topKLimits.ns
	if k*topKLimits.selection > cols {
		ns = topKLimits.selectNS
	}
	if p.Worth(float64(n) * ns) {
		t.group = max(1, rows/(8*p.Threads()))
	}
	p.Do((rows+t.group-1)/t.group, t)
	t.values, t.index, t.x = nil, nil, nil
	topKs.Put(t)
}

// topKChunk is the number of elements whose maximum the heap tests at once.
const topKChunk = 128

type topKTask struct {
	values        []float32
	index         []int32
	x             []float32
	rows, cols, k int
	group         int
}

// keys holds the keys of a row: integers in the order of TopK.
type keys struct{ of []uint64 }

var (
	topKs = sync.Pool{New: func() any { return new(topKTask) }}
	keyss = sync.Pool{New: func() any { return new(keys) }}
)

// floatKey returns an integer key of v with the order of TopK and Sort.
func floatKey(v float32) uint32 {
	b := math.Float32bits(v + 0) // -0 + 0 is +0
	if v != v {
		return 1<<32 - 1
	}
	return b ^ (uint32(int32(b)>>31) | 1<<31) // without a branch, which half of the elements would mispredict
}

// topKey returns the key of value v in column i.
func topKey(v float32, i int) uint64 { return uint64(floatKey(v))<<32 | uint64(^uint32(i)) }

// Part finds the elements of a few rows.
func (t *topKTask) Part(i int) {
	s := keyss.Get().(*keys)
	for r := i * t.group; r < min((i+1)*t.group, t.rows); r++ {
		row := t.x[r*t.cols:][:t.cols]
		var top []uint64
		if t.k*topKLimits.selection > t.cols {
			top = s.selected(row, t.k)
		} else {
			top = s.heaped(row, t.k)
		}
		slices.Sort(top)
		for j := range top {
			at := ^uint32(top[t.k-1-j])
			if t.values != nil {
				t.values[r*t.k+j] = row[at]
			}
			if t.index != nil {
				t.index[r*t.k+j] = int32(at)
			}
		}
	}
	keyss.Put(s)
}

func (s *keys) reserve(n int) []uint64 {
	if cap(s.of) < n {
		s.of = make([]uint64, n)
	}
	return s.of[:n]
}

// heaped returns the k greatest keys of row in no order. It keeps them in a heap with the least on
// top and skips whole chunks without a greater element.
func (s *keys) heaped(row []float32, k int) []uint64 {
	h := s.reserve(k)
	for i := range h {
		h[i] = topKey(row[i], i)
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	for from := k; from < len(row); from += topKChunk {
		chunk := row[from:min(from+topKChunk, len(row))]
		m := reducers().block[kindMax](&chunk[0], nil, len(chunk))
		// An element that equals the least of the heap has a higher column, so it comes after it.
		if topKey(m, from) < h[0] {
			continue
		}
		least := row[^uint32(h[0])]
		for i, v := range chunk {
			if v <= least {
				continue
			}
			if key := topKey(v, from+i); key > h[0] {
				h[0] = key
				sink(h, 0)
				least = row[^uint32(h[0])]
			}
		}
	}
	return h
}

// sink moves key i down the heap until its children are not less.
func sink(h []uint64, i int) {
	v := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if v <= h[c] {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = v
}

// selected returns the k greatest keys of row in no order, by partitioning
// all keys. Keys are distinct.
func (s *keys) selected(row []float32, k int) []uint64 {
	a := s.reserve(len(row))
	for i, v := range row {
		a[i] = topKey(v, i)
	}
	// Partitions move the greatest k keys to the end, from index at on.
	at := len(a) - k
	lo, hi := 0, len(a)
	for rounds := 0; at > lo && hi-lo > 32; rounds++ {
		if rounds == 64 {
			break // the pivots are unfavourable: sort the rest
		}
		pivot := median(a[lo], a[lo+(hi-lo)/2], a[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for a[i] < pivot {
				i++
			}
			for a[j] > pivot {
				j--
			}
			if i <= j {
				a[i], a[j] = a[j], a[i]
				i++
				j--
			}
		}
		// lo..j <= pivot <= i..hi-1, and the elements between equal it.
		switch {
		case at <= j:
			hi = j + 1
		case at >= i:
			lo = i
		default:
			return a[at:]
		}
	}
	if at > lo {
		slices.Sort(a[lo:hi])
	}
	return a[at:]
}

func median(a, b, c uint64) uint64 {
	return max(min(a, b), min(max(a, b), c))
}
