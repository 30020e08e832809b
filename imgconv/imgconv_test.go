package imgconv_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/rayo-go/rayo/imgconv"
	"github.com/rayo-go/rayo/op"
)

func ExampleFloats() {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.Set(1, 0, color.NRGBA{R: 255, B: 51, A: 255})
	pix, err := imgconv.Floats(img, 3)
	fmt.Println(pix, err)
	// Output: [0 0 0 1 0 0.2] <nil>
}

// TestRoundTrip converts images to numbers and back, of every number of channels.
func TestRoundTrip(t *testing.T) {
	img := image.NewNRGBA(image.Rect(3, 2, 20, 15))
	for i := range img.Pix {
		img.Pix[i] = uint8(7 * i)
	}
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] |= 0x80 // colours behind little opacity are lost
	}
	pix, err := imgconv.Floats(img, 4)
	if err != nil {
		t.Fatal(err)
	}
	back, err := imgconv.Image(pix, 13, 17, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range back.(*image.NRGBA).Pix {
		if d := int(v) - int(img.Pix[i]); d < -1 || d > 1 {
			t.Fatalf("byte %d is %d, want %d", i, v, img.Pix[i])
		}
	}
	grey := image.NewGray(image.Rect(0, 0, 16, 16))
	for i := range grey.Pix {
		grey.Pix[i] = uint8(i)
	}
	if pix, err = imgconv.Floats(grey, 1); err != nil {
		t.Fatal(err)
	}
	if back, err = imgconv.Image(pix, 16, 16, 1); err != nil || !bytes.Equal(back.(*image.Gray).Pix, grey.Pix) {
		t.Errorf("grey: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ n, height, width, channels int }{{5, 2, 1, 3}, {4, 2, 1, 2}, {0, -1, 0, 3}, {1, 1 << 30, 1 << 30, 1 << 30}} {
		if _, err := imgconv.Image(make([]float32, c.n), c.height, c.width, c.channels); !errors.Is(err, op.ErrShape) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := imgconv.Floats(image.NewGray(image.Rect(0, 0, 1, 1)), 2); !errors.Is(err, op.ErrShape) {
		t.Errorf("2 channels: %v", err)
	}
	img, err := imgconv.Image([]float32{-1, 2, float32(math.NaN())}, 1, 1, 3)
	if err != nil || img.(*image.NRGBA).Pix[0] != 0 || img.(*image.NRGBA).Pix[1] != 255 || img.(*image.NRGBA).Pix[2] != 0 {
		t.Errorf("outside: %v, %v", img, err)
	}
}
