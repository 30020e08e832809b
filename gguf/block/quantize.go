package block

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/fmt"
)

// ErrImportance is the error for a format that needs importances, see [Format.QuantizeWeighted],
// and for invalid importances.
var ErrImportance = errors.New("importances")

// Quantize encodes the numbers of src as blocks in dst, with the same bytes on every machine. src
// must consist of whole blocks and dst must have their size; otherwise Quantize writes nothing and
// returns a [SizeError]. A [RangeError] names the first block with numbers that are not finite or
// too large (about 2^20 and more); the contents of dst are then undefined. Quantize uses all cores.
//
// Formats with a Weighted Layout give ErrImportance.
func (f Format) Quantize(dst []byte, src []float32) error {
	return f.QuantizeWeighted(dst, src, nil)
}

// QuantizeWeighted is [Format.Quantize] with a weight for each column of a matrix: it multiplies the squared
// error of column c by importance[c]. A common importance is the mean square of the inputs that are multiplied
// by the column. The length of importance must be a multiple of the block length, and the length of src a
// multiple of the length of importance. Importances must be finite and not negative, otherwise the error is
// ErrImportance. Q8_0 and the scalar formats ignore importances.
func (f Format) QuantizeWeighted(dst []byte, src, importance []float32) error {
	if err := f.check(len(src), len(dst)); err != nil {
		return err
	}
	if err := f.checkImportance(len(src), importance); err != nil {
		return err
	}
	e := encoderFor(f)
	l := f.layout()
	// A chunk has whole blocks with about 16 Ki elements: the unit of work of a goroutine.
	const chunk = 1 << 14
	chunks := (len(src) + chunk - 1) / chunk
	var next, bad atomic.Int64
	bad.Store(math.MaxInt64)
	run := func() {
		w := e.work()
		for {
			i := int(next.Add(1) - 1)
			if i >= chunks {
				return
			}
			from, to := i*chunk, min((i+1)*chunk, len(src))
			part := dst[from/l.Elements*l.Bytes : to/l.Elements*l.Bytes]
			if at := w.encode(part, src[from:to], importance, from); at >= 0 {
				least(&bad, int64(from/l.Elements+at))
			}
		}
	}
	spread(run, chunks)
	if at := bad.Load(); at != math.MaxInt64 {
		return &RangeError{f, int(at)}
	}
	return nil
}

// spread runs a function on as many goroutines as there are cores, at most n.
func spread(run func(), n int) {
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			run()
		}()
	}
	run()
	wg.Wait()
}

// least lowers v to at.
func least(v *atomic.Int64, at int64) {
	for old := v.Load(); at < old && !v.CompareAndSwap(old, at); {
		old = v.Load()
	}
}

func (f Format) checkImportance(n int, importance []float32) error {
	if importance == nil {
		if f.layout().Weighted {
			return fmt.Errorf("%w: %v needs them", ErrImportance, f)
		}
		return nil
	}
	if c := len(importance); c == 0 || c%f.Elements() != 0 || n%c != 0 {
		return fmt.Errorf("%w: %d for rows in %d elements of %v", ErrImportance, c, n, f)
	}
	for i, v := range importance {
		if !(v >= 0 && v <= math.MaxFloat32) {
			return fmt.Errorf("%w: number %d is %v", ErrImportance, i, v)
		}
	}
	return nil
}

// encode encodes x, which begins at element at of a matrix, and returns the index of the first
// block that cannot be encoded, or -1.
func (w *work) encode(dst []byte, x, importance []float32, at int) int {
	l := w.e.l
	for i := 0; i < len(x); i += l.Elements {
		v, b := x[i:][:l.Elements], dst[i/l.Elements*l.Bytes:][:l.Bytes]
		if !finite(v) {
			return i / l.Elements
		}
		weights := w.e.ones
		if importance != nil {
			weights = importance[(at+i)%len(importance):][:l.Elements]
			if !anyPositive(weights) {
				weights = w.e.ones
			}
		}
		if w.e.simple != nil && (importance == nil || w.e.search == nil) {
			w.e.simple(b, v)
		} else {
			w.e.search(w, b, v, weights)
		}
		if w.overflow || !w.e.sound(b) {
			w.overflow = false
			return i / l.Elements
		}
	}
	return -1
}

// finite reports whether all numbers are finite.
func finite(x []float32) bool { return topBits(x) < 0x7f800000 }

// topBits returns the bits of the greatest magnitude. The bits of magnitudes are ordered like the
// magnitudes; infinity and NaN come last.
func topBits(x []float32) uint32 {
	var a, b, c, d uint32 // four maxima, so that comparisons do not wait for each other
	for ; len(x) >= 4; x = x[4:] {
		a = max(a, math.Float32bits(x[0])<<1)
		b = max(b, math.Float32bits(x[1])<<1)
		c = max(c, math.Float32bits(x[2])<<1)
		d = max(d, math.Float32bits(x[3])<<1)
	}
	for _, v := range x {
		a = max(a, math.Float32bits(v)<<1)
	}
	return max(a, b, c, d) >> 1
}

// sound reports whether the scales of a block are finite.
func (e *encoder) sound(b []byte) bool {
	if e.halves != nil {
		return checkHalves(b, len(b), e.halves) < 0
	}
	return e.f.Check(b) == nil
}

func anyPositive(x []float32) bool {
	for _, v := range x {
		if v > 0 {
			return true
		}
	}
	return false
}

// extreme returns the first element with the greatest magnitude.
func extreme(x []float32) float32 {
	m := float32(0)
	for _, v := range x {
		if magnitude(v) > magnitude(m) {
			m = v
		}
	}
	return m
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// reciprocal returns 1/d, or 0 if the quotient is not finite: then all elements are so
// small that they become 0.
func reciprocal(d float32) float32 {
	r := 1 / d
	if r-r != 0 {
		return 0
	}
	return r
}

// signedScale returns the scale with which the element of the greatest magnitude gets
// the level -levels, and its reciprocal. The positive end of the range has one level
// less.
func signedScale(x []float32, levels float32) (d, r float32) {
	d = extreme(x) / -levels
	return d, reciprocal(d)
}

// level returns the level, from 0 to limit, that is nearest to v·r. The middle level stands
// for 0. Half a level is added for rounding.
func level(v, r float32, limit float32) uint8 {
	return uint8(min(limit, float32(v*r)+(limit/2+1)))
}

func quantizeQ4_0(dst []byte, src []float32) {
	x, b := (*[shortElements]float32)(src), (*[q4_0Bytes]byte)(dst)
	d, r := signedScale(x[:], 8)
	putHalf(b[:], d)
	for j := range 16 {
		b[2+j] = level(x[j], r, 15) | level(x[j+16], r, 15)<<4
	}
}

func quantizeQ5_0(dst []byte, src []float32) {
	x, b := (*[shortElements]float32)(src), (*[q5_0Bytes]byte)(dst)
	d, r := signedScale(x[:], 16)
	putHalf(b[:], d)
	high := uint32(0)
	for j := range 16 {
		lo, hi := level(x[j], r, 31), level(x[j+16], r, 31)
		b[6+j] = lo&15 | hi<<4
		high |= uint32(lo>>4)<<j | uint32(hi>>4)<<(j+16)
	}
	binary.LittleEndian.PutUint32(b[2:], high)
}

func quantizeQ8_0(dst []byte, src []float32) {
	x, b := (*[shortElements]float32)(src), (*[q8_0Bytes]byte)(dst)
	d := math.Float32frombits(topBits(x[:])) / 127
	r := reciprocal(d)
	putHalf(b[:], d)
	for j, v := range x {
		t := float32(v * r)
		b[2+j] = byte(awayFromZero(int32(t + t)))
	}
}

// awayFromZero returns the integer nearest to a number, with ties away from 0. twice is two times the number, truncated to
// an integer.
func awayFromZero(twice int32) int32 { return (twice + (twice>>31 | 1)) / 2 }

// rangeOf returns the least and the greatest element.
func rangeOf(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// quantizeRange encodes a block of Q4_1 or Q5_1. The least element gets level 0, and the
// greatest the last level.
func quantizeRange(f Format, dst []byte, src []float32) {
	limit, low := float32(15), 4 // low is where the low halves of levels begin
	if f == Q5_1 {
		limit, low = 31, 8
	}
	x := (*[shortElements]float32)(src)
	lo, hi := rangeOf(x[:])
	d := (hi - lo) / limit
	r := reciprocal(d)
	putHalf(dst, d)
	putHalf(dst[2:], lo)
	high := uint32(0)
	halves := (*[shortElements / 2]byte)(dst[low:])
	for j := range halves {
		a := uint32(min(limit, float32((x[j]-lo)*r)+0.5))
		b := uint32(min(limit, float32((x[j+16]-lo)*r)+0.5))
		halves[j] = byte(a&15 | b<<4)
		high |= a>>4<<j | b>>4<<(j+16)
	}
	if low > 4 {
		binary.LittleEndian.PutUint32(dst[4:], high)
	}
}

// encodeScalar are the encoders of single numbers. An integer is rounded to nearest even; a number
// outside of its range is an error.
var encodeScalar = [len(basics)]func(dst []byte, v float32) bool{
	F32: func(b []byte, v float32) bool { binary.LittleEndian.PutUint32(b, math.Float32bits(v)); return true },
	F16: func(b []byte, v float32) bool { putHalf(b, v); return true },
	BF16: func(b []byte, v float32) bool {
		bits := math.Float32bits(v)
		binary.LittleEndian.PutUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16))
		return true
	},
	F64: func(b []byte, v float32) bool {
		binary.LittleEndian.PutUint64(b, math.Float64bits(float64(v)))
		return true
	},
	I8:  func(b []byte, v float32) bool { return putInteger(b[:1], v) },
	I16: func(b []byte, v float32) bool { return putInteger(b[:2], v) },
	I32: func(b []byte, v float32) bool { return putInteger(b[:4], v) },
	I64: func(b []byte, v float32) bool { return putInteger(b[:8], v) },
}

// putInteger rounds v to a signed integer of len(b) bytes, stores it in b, and reports whether it is in
// the range of such integers.
func putInteger(b []byte, v float32) bool {
	n, ok := integer(8*len(b), v)
	if ok {
		for i := range b {
			b[i] = byte(n >> (8 * i))
		}
	}
	return ok
}

// integer rounds v to a signed integer of so many bits, and reports whether it is in their range.
func integer(bits int, v float32) (int64, bool) {
	limit, r := float64(uint64(1)<<(bits-1)), math.RoundToEven(float64(v))
	return int64(r), r >= -limit && r < limit
}
