package devicetest

import (
	"bytes"
	"context"
	"fmt"
	"unsafe"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// array is an array in memory between guard bytes that must not be written. It starts
// at an address that is not aligned to a vector.
type array struct {
	typ  op.DType
	n    int
	all  []byte
	data []byte
}

const (
	guardBytes = 68
	guard      = 0xa5
)

// poisonOf returns the bytes that fill results before they are computed. As a float they are a signalling NaN, which
// no arithmetic returns (a quiet NaN of any bits may be the result of a NaN and a number). As an integer they are
// neither an index nor a truth value.
func poisonOf(t op.DType) []byte {
	switch t {
	case op.F16:
		return []byte{0xa5, 0x7d}
	case op.BF16:
		return []byte{0xa5, 0x7f}
	case op.U8, op.I8:
		return []byte{0xa5}
	}
	return []byte{0xa5, 0xa5, 0xa5, 0x7f}
}

func newArray(t op.DType, n int) *array {
	size, err := t.Bytes(op.Shape{n})
	if err != nil {
		panic(err) // the shapes of cases are written in this package
	}
	words := make([]uint32, (2*guardBytes+size+3)/4)
	a := &array{typ: t, n: n, all: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))}
	a.data = a.all[guardBytes:][:size:size]
	for i := range guardBytes {
		a.all[i] = guard
	}
	for i := guardBytes + size; i < len(a.all); i++ {
		a.all[i] = guard
	}
	a.poison()
	return a
}

// arrayOf returns an array that holds the values of a tensor.
func arrayOf(x Tensor) *array {
	a := newArray(x.Type, len(x.Data))
	if x.Type.Quantized() {
		copy(a.data, x.Blocks)
		return a
	}
	for i, v := range x.Data {
		x.Type.PutFloat64(a.data, i, v)
	}
	return a
}

func (a *array) poison() {
	for n := copy(a.data, poisonOf(a.typ)); n > 0 && n < len(a.data); n *= 2 {
		copy(a.data[n:], a.data[:n])
	}
}

func (a *array) clone() *array {
	b := newArray(a.typ, a.n)
	copy(b.data, a.data)
	return b
}

// intact returns an error if a guard byte was overwritten.
func (a *array) intact() error {
	for i, b := range a.all[:guardBytes] {
		if b != guard {
			return fmt.Errorf("wrote %d bytes before an array", guardBytes-i)
		}
	}
	for i, b := range a.all[guardBytes+len(a.data):] {
		if b != guard {
			return fmt.Errorf("wrote %d bytes behind an array of %d", i+1, len(a.data))
		}
	}
	return nil
}

// unchanged returns an error if a differs from its earlier copy was.
func (a *array) unchanged(was *array) error {
	if !bytes.Equal(a.data, was.data) {
		return fmt.Errorf("an operand was written")
	}
	return a.intact()
}

// check compares the array with a reference, and checks that every element was
// written. The array is result k; f holds alternatives to the reference.
func (a *array) check(o *op.Operation, want *op.Array, f *allowed, k int) error {
	if err := a.intact(); err != nil {
		return err
	}
	if len(want.Data) != a.n {
		return fmt.Errorf("%d elements, want %d", a.n, len(want.Data))
	}
	size, poison := a.typ.Size(), poisonOf(a.typ)
	for i, w := range want.Data {
		got := a.typ.Float64(a.data, i)
		if w != got && bytes.Equal(a.data[i*size:][:size], poison) {
			return fmt.Errorf("element %d was not written (want %v)", i, w)
		}
		mag := 0.0
		if want.Mag != nil {
			mag = want.Mag[i]
		}
		if err := o.Check(got, w, mag, a.typ); err != nil {
			if f.allows(o, k, i, got, w, mag, a.typ) {
				continue
			}
			return fmt.Errorf("element %d of %v: %w", i, want.Shape, err)
		}
	}
	return nil
}

func view[T device.Element](a *array) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(a.data))), a.n)
}

func (a *array) float32s() []float32 { return view[float32](a) }

// upload records the array as an operand of a batch.
func (a *array) upload(b *batch.Batch, s op.Shape) batch.Value {
	if a.typ.Quantized() {
		return b.UploadBlocks(a.data, a.typ, s...)
	}
	switch a.typ {
	case op.F16:
		return uploadAs[op.Float16](b, a, s)
	case op.BF16:
		return uploadAs[op.BFloat16](b, a, s)
	case op.I32:
		return uploadAs[int32](b, a, s)
	case op.U32:
		return uploadAs[uint32](b, a, s)
	case op.U8:
		return uploadAs[uint8](b, a, s)
	case op.I8:
		return uploadAs[int8](b, a, s)
	case op.Bool:
		// Go programs have no slices of truth values, so a comparison computes them.
		return b.NotEqual(uploadAs[uint32](b, a, s), batch.Upload(b, []uint32{0}))
	}
	return uploadAs[float32](b, a, s)
}

func uploadAs[T device.Element](b *batch.Batch, a *array, s op.Shape) batch.Value {
	if len(s) == 0 {
		// Upload without extents gives one axis, which a reshape to a scalar removes.
		return b.Reshape(batch.Upload(b, view[T](a)))
	}
	return batch.Upload(b, view[T](a), s...)
}

// get records that the result for a value is written to the array.
func (a *array) get(b *batch.Batch, v batch.Value) {
	switch a.typ {
	case op.F16:
		batch.ReadInto(b, v, view[op.Float16](a))
	case op.BF16:
		batch.ReadInto(b, v, view[op.BFloat16](a))
	case op.I32:
		batch.ReadInto(b, v, view[int32](a))
	case op.U8:
		batch.ReadInto(b, v, view[uint8](a))
	case op.I8:
		batch.ReadInto(b, v, view[int8](a))
	case op.U32, op.Bool:
		batch.ReadInto(b, v, view[uint32](a))
	default:
		batch.ReadInto(b, v, view[float32](a))
	}
}

// tensor returns the elements as a tensor of that shape.
func (a *array) tensor(s op.Shape) Tensor {
	t := Tensor{Type: a.typ, Shape: s, Data: make([]float64, a.n)}
	for i := range t.Data {
		t.Data[i] = a.typ.Float64(a.data, i)
	}
	return t
}

// transfers has the functions that move arrays of an element type to a device and back.
var transfers = map[op.DType]struct {
	write func(context.Context, *device.Buffer, *array) error
	fetch func(context.Context, *device.Buffer, *array) error
	read  func(context.Context, *batch.Batch, batch.Value, *array) error
}{
	op.F32:  {writeAs[float32], fetchAs[float32], readAs[float32]},
	op.F16:  {writeAs[op.Float16], fetchAs[op.Float16], readAs[op.Float16]},
	op.BF16: {writeAs[op.BFloat16], fetchAs[op.BFloat16], readAs[op.BFloat16]},
	op.I32:  {writeAs[int32], fetchAs[int32], readAs[int32]},
	op.U32:  {writeAs[uint32], fetchAs[uint32], readAs[uint32]},
	op.U8:   {writeAs[uint8], fetchAs[uint8], readAs[uint8]},
	op.I8:   {writeAs[int8], fetchAs[int8], readAs[int8]},
	op.Bool: {read: readAs[uint32]},
}

func writeAs[T device.Element](ctx context.Context, b *device.Buffer, a *array) error {
	return device.Write(ctx, b, view[T](a))
}

func fetchAs[T device.Element](ctx context.Context, b *device.Buffer, a *array) error {
	return device.Read(ctx, view[T](a), b)
}

func readAs[T device.Element](ctx context.Context, b *batch.Batch, v batch.Value, a *array) error {
	x, err := batch.Read[T](ctx, b, v)
	if err == nil && len(x) != a.n {
		err = fmt.Errorf("%d elements, want %d", len(x), a.n)
	}
	copy(view[T](a), x)
	return err
}

// write copies the array to the device, fetch copies it back, and read copies it from a
// kept result of a batch.
func (a *array) write(ctx context.Context, b *device.Buffer) error {
	return transfers[a.typ].write(ctx, b, a)
}
func (a *array) fetch(ctx context.Context, b *device.Buffer) error {
	return transfers[a.typ].fetch(ctx, b, a)
}
func (a *array) read(ctx context.Context, b *batch.Batch, v batch.Value) error {
	return transfers[a.typ].read(ctx, b, v, a)
}
