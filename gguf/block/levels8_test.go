package block

import (
	"errors"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestLevels checks that the products of integers and factors equal the results of Dequantize, bit for bit, for random
// bytes.
func TestLevels(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range quantised() {
		for n := range 4 {
			src := make([]byte, n*50*f.Bytes())
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			want := make([]float32, n*50*f.Elements())
			if err := f.Dequantize(want, src); err != nil {
				t.Fatal(err)
			}
			levels, scales := make([]int8, len(want)), make([]float32, len(want)/LevelGroup)
			var biases []float32
			if f.Biased() || n == 2 {
				biases = make([]float32, len(scales))
			}
			if err := f.Levels(levels, scales, biases, src); err != nil {
				t.Fatal(err)
			}
			least, most := f.LevelRange()
			for i, w := range want {
				if l := int(levels[i]); l < least || l > most {
					t.Fatalf("%v: level %d, not within %d and %d", f, l, least, most)
				}
				if i%f.Group() > 0 && scales[i/LevelGroup] != scales[(i-1)/LevelGroup] && scales[i/LevelGroup] == scales[i/LevelGroup] {
					t.Fatalf("%v: scales %v and %v of one group", f, scales[i/LevelGroup], scales[(i-1)/LevelGroup])
				}
				got := float32(scales[i/LevelGroup] * float32(levels[i]))
				if f.Biased() {
					got += biases[i/LevelGroup]
				}
				if math.Float32bits(got) != math.Float32bits(w) && !(got != got && w != w) && !(got == 0 && w == 0) {
					t.Fatalf("%v: element %d is %v·%d, want %v", f, i, scales[i/LevelGroup], levels[i], w)
				}
			}
		}
	}
}

func TestLevelsErrors(t *testing.T) {
	size := func(f Format, levels, scales, biases, src int) error {
		return f.Levels(make([]int8, levels), make([]float32, scales), make([]float32, biases), make([]byte, src))
	}
	var se *SizeError
	for _, err := range []error{
		size(Q4_0, 31, 2, 2, 18), size(Q4_0, 32, 1, 2, 18), size(Q4_0, 32, 2, 1, 18), size(Q4_0, 32, 2, 2, 17),
		Q4_K.Levels(make([]int8, 256), make([]float32, 16), nil, make([]byte, 144)),
	} {
		if !errors.As(err, &se) {
			t.Errorf("%v, want a SizeError", err)
		}
	}
	if err := size(F16, 16, 1, 1, 32); !errors.Is(err, ErrFormat) {
		t.Errorf("F16: %v", err)
	}
	if err := size(Invalid, 0, 0, 0, 0); !errors.Is(err, ErrFormat) {
		t.Errorf("Invalid: %v", err)
	}
}
