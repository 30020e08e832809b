package device_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestUploadFrom uploads arrays of several pieces, and arrays that end within a word.
func TestUploadFrom(t *testing.T) {
	ctx := t.Context()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, c := range []struct {
		typ   op.DType
		shape []int
	}{
		{op.F32, []int{1500, 2000}}, {op.F16, []int{3, 5}}, {op.BF16, []int{7}}, {op.F16, []int{2200001}}, {op.I32, nil}, {op.F32, []int{0, 3}},
		{op.Q8_0, []int{3, 32}}, {op.Q4_K, []int{9000, 1024}}, {op.Q4_0, []int{5, 32}},
	} {
		n, err := c.typ.Bytes(c.shape)
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(rand.Uint32()) & 0x3f // no NaN, whose bits may change
		}
		b, err := device.UploadFrom(ctx, dev, iotest.HalfReader(bytes.NewReader(raw)), c.typ, c.shape...)
		if err != nil {
			t.Fatalf("%v %v: %v", c.typ, c.shape, err)
		}
		if got := contents(t, b, n); !bytes.Equal(got, raw) {
			at := 0
			for at < n && got[at] == raw[at] {
				at++
			}
			t.Errorf("%v %v: the bytes differ from byte %d of %d on", c.typ, c.shape, at, n)
		}
		b.Close()
	}
}

// contents returns the bytes of a buffer.
func contents(t *testing.T, b *device.Buffer, n int) []byte {
	t.Helper()
	got := make([]byte, n)
	err := error(nil)
	switch b.Type() {
	case op.F32:
		got, err = read[float32](t, b)
	case op.I32:
		got, err = read[int32](t, b)
	case op.F16:
		got, err = read[op.Float16](t, b)
	case op.BF16:
		got, err = read[op.BFloat16](t, b)
	default:
		err = device.ReadBlocks(t.Context(), got, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func read[T device.Element](t *testing.T, b *device.Buffer) ([]byte, error) {
	n, err := b.Shape().Size()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]T, n)
	if err := device.Read(t.Context(), x, b); err != nil {
		return nil, err
	}
	var w bytes.Buffer
	if err := binary.Write(&w, binary.LittleEndian, x); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// TestUploadFromErrors uses readers that end early or fail, and invalid shapes.
func TestUploadFromErrors(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	before := dev.Stats().Buffers
	broken := errors.New("broken")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, c := range map[string]struct {
		ctx   context.Context
		r     io.Reader
		typ   op.DType
		shape []int
		want  error
	}{
		"ends":     {t.Context(), bytes.NewReader(make([]byte, 5<<20)), op.F32, []int{1500, 1000}, io.ErrUnexpectedEOF},
		"empty":    {t.Context(), bytes.NewReader(nil), op.F32, []int{1}, io.ErrUnexpectedEOF},
		"fails":    {t.Context(), iotest.ErrReader(broken), op.F32, []int{4 << 20}, broken},
		"rows":     {t.Context(), bytes.NewReader(nil), op.Q4_K, []int{2, 32}, device.ErrShape},
		"overflow": {t.Context(), bytes.NewReader(nil), op.F32, []int{1 << 30, 1 << 30, 1 << 30}, device.ErrShape},
		"negative": {t.Context(), bytes.NewReader(nil), op.F32, []int{-1}, device.ErrShape},
		"truth":    {t.Context(), bytes.NewReader(nil), op.Bool, []int{1}, device.ErrUnsupported},
		"no type":  {t.Context(), bytes.NewReader(nil), op.InvalidType, []int{1}, device.ErrUnsupported},
		"ended":    {ended, bytes.NewReader(make([]byte, 4)), op.F32, []int{1}, context.Canceled},
	} {
		if _, err := device.UploadFrom(c.ctx, dev, c.r, c.typ, c.shape...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if _, err := device.UploadFrom(t.Context(), nil, nil, op.F32); err == nil {
		t.Error("UploadFrom to a nil device gave no error")
	}
	if n := dev.Stats().Buffers; n != before {
		t.Errorf("%d buffers are left open", n-before)
	}
}
