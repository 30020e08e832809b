// Package imgconv converts between images and slices of float32, row by row of pixels
// with the channels of each together: the shape [height width channels]. It is a
// package of its own so that programs without images do not link package image.
package imgconv

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Floats returns the pixels of an image as numbers from 0 to 1: 1 channel of grey, 3 of
// red, green and blue, or 4 with opacity behind them, by which colours are not
// multiplied. The slice is of [device.Alloc].
//
//	pix, err := imgconv.Floats(img, 3)
//	x := b.Upload(pix, img.Bounds().Dy(), img.Bounds().Dx(), 3)
//
// Another number of channels is [op.ErrShape].
func Floats(img image.Image, channels int) ([]float32, error) {
	if channels != 1 && channels != 3 && channels != 4 {
		return nil, fmt.Errorf("the image has %d channels, expected 1, 3 or 4: %w", channels, op.ErrShape)
	}
	r := img.Bounds()
	n, err := op.Shape{r.Dy(), r.Dx(), channels}.Size()
	if err != nil {
		return nil, err
	}
	pix := device.Alloc(n)
	to := pix
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := img.At(x, y)
			if channels == 1 {
				to[0] = float32(color.Gray16Model.Convert(c).(color.Gray16).Y) / math.MaxUint16
			} else {
				p := color.NRGBA64Model.Convert(c).(color.NRGBA64)
				levels := [4]uint16{p.R, p.G, p.B, p.A}
				for i, v := range levels[:channels] {
					to[i] = float32(v) / math.MaxUint16
				}
			}
			to = to[channels:]
		}
	}
	return pix, nil
}

// Image returns the image of pixels of shape [height width channels], as [Floats]
// gives them: an [image.Gray] of one channel, else an [image.NRGBA]. Numbers are
// rounded to 256 levels; those outside 0 to 1 become the nearer one, NaN becomes 0.
//
// Another number of elements or channels is [op.ErrShape].
func Image(pix []float32, height, width, channels int) (image.Image, error) {
	n, err := op.Shape{height, width, channels}.Size()
	if err == nil && n != len(pix) {
		err = fmt.Errorf("the slice has %d elements, but an image of [%d %d %d] has their product: %w", len(pix), height, width, channels, op.ErrShape)
	}
	if err != nil {
		return nil, err
	}
	r := image.Rect(0, 0, width, height)
	switch channels {
	case 1:
		img := image.NewGray(r)
		for i, v := range pix {
			img.Pix[i] = level(v)
		}
		return img, nil
	case 3, 4:
		img := image.NewNRGBA(r)
		for i := range height * width {
			p := img.Pix[4*i : 4*i+4]
			p[3] = math.MaxUint8
			for k, v := range pix[i*channels : (i+1)*channels] {
				p[k] = level(v)
			}
		}
		return img, nil
	}
	return nil, fmt.Errorf("the image has %d channels, expected 1, 3 or 4: %w", channels, op.ErrShape)
}

// level returns the nearest of 256 levels.
func level(v float32) uint8 {
	if !(v > 0) {
		return 0
	}
	return uint8(min(v, 1)*math.MaxUint8 + 0.5)
}
