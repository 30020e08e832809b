package device_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
)

func ExampleReadFloats() {
	var file bytes.Buffer
	_ = binary.Write(&file, binary.LittleEndian, []float32{1, 2.5, -3})
	x, err := device.ReadFloats(&file, 3)
	fmt.Println(x, err)
	// Output: [1 2.5 -3] <nil>
}

func TestReadFloats(t *testing.T) {
	want := make([]float32, 40_000)
	for i := range want {
		want[i] = float32(i) / 3
	}
	var file bytes.Buffer
	if err := binary.Write(&file, binary.LittleEndian, want); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	if got, err := device.ReadFloats(bytes.NewReader(whole), len(want)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d floats, %v", len(got), err)
	}
	for _, c := range []struct {
		bytes, n int
		want     error
	}{{0, 0, nil}, {0, 1, io.EOF}, {3, 1, io.ErrUnexpectedEOF}, {1 << 16, 1<<14 + 1, io.ErrUnexpectedEOF}, {8, 3, io.ErrUnexpectedEOF}, {8, -1, device.ErrShape}} {
		if _, err := device.ReadFloats(bytes.NewReader(whole[:c.bytes]), c.n); !errors.Is(err, c.want) {
			t.Errorf("%d floats of %d bytes: %v, want %v", c.n, c.bytes, err, c.want)
		}
	}
}
