package simd

import (
	"fmt"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// Gather copies rows out of a table: row i of dst becomes row ids[i] of x,
// which has rows rows of cols elements. A row that the table does not have is
// filled with NaN. dst must not overlap x. A nil Pool is the calling thread
// alone. It panics if a length does not fit.
func Gather(p *workers.Pool, dst, x []float32, ids []int32, rows, cols int) {
	n, m := area(rows, cols), area(len(ids), cols)
	if len(x) < n || len(dst) < m {
		panic(fmt.Sprintf("simd: Gather of %d among %d rows of %d: lengths %d, %d", len(ids), rows, cols, len(dst), len(x)))
	}
	if m == 0 {
		return
	}
	t := gathers.Get().(*gatherTask)
	t.dst, t.x, t.ids, t.rows, t.cols = dst, x, ids, rows, cols
	t.group = len(ids)
	if p.Worth(float64(len(ids))*gatherRowNS + float64(m)*gatherNS) {
		t.group = max(1, len(ids)/(8*p.Threads()))
	}
	p.Do((len(ids)+t.group-1)/t.group, t)
	t.dst, t.x, t.ids = nil, nil, nil
	gathers.Put(t)
}

// What one thread takes for a row and for an element, in nanoseconds.
const (
	gatherRowNS = 10
	gatherNS    = 0.1
)

type gatherTask struct {
	dst, x     []float32
	ids        []int32
	rows, cols int
	group      int
}

var gathers = sync.Pool{New: func() any { return new(gatherTask) }}

// Part copies a few rows.
func (t *gatherTask) Part(i int) {
	nan := float32(math.NaN())
	cols := t.cols
	for i, last := i*t.group, min((i+1)*t.group, len(t.ids)); i < last; i++ {
		// A negative number is a large one here.
		id := uint(t.ids[i])
		dst := t.dst[i*cols:][:cols]
		if id < uint(t.rows) {
			copy(dst, t.x[int(id)*cols:])
			continue
		}
		for j := range dst {
			dst[j] = nan
		}
	}
}
