package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/memory"
)

//go:generate go -C _asm run ./quant ..

type (
	// dequantizeFunc converts one or more blocks to float32, with the same bits as package block.
	dequantizeFunc func(dst *float32, src *byte, blocks int)
	// dotBlocksFunc returns the dot product of x with one or more blocks. sums has the sum of each
	// group of 32 numbers of x.
	dotBlocksFunc func(x, sums *float32, src *byte, blocks int) float32
)

// quantKernels are the kernels of one format; nil means plain Go.
type quantKernels struct {
	dequantize dequantizeFunc
	stream     dequantizeFunc // uses non-temporal stores to a dst aligned to streamAlign; or nil
	dot        dotBlocksFunc
}

// quantKernelsFor returns the kernels of a format at a level.
func quantKernelsFor(all []quantKernels, f block.Format) quantKernels {
	if int(f) < len(all) {
		return all[f]
	}
	return quantKernels{}
}

// wholeBlocks panics if size is not the number of bytes of n numbers of format f.
func wholeBlocks(f block.Format, n, size int) {
	if want, err := f.Size(n); err != nil || want != size {
		panic(fmt.Sprintf("simd: %d bytes do not hold exactly %d numbers of %v", size, n, f))
	}
}

// Dequantize decodes the blocks of src to dst, as [block.Format.Dequantize] does. It panics if the
// lengths do not match. If dst does not fit into the caches, it uses non-temporal stores.
func Dequantize(f block.Format, dst []float32, src []byte) { dequantizePart(f, dst, src, len(dst)) }

// streamAlign is the alignment in bytes of the destination of non-temporal stores.
const streamAlign = 64

// dequantizePart is [Dequantize] for a part of total numbers.
func dequantizePart(f block.Format, dst []float32, src []byte, total int) {
	wholeBlocks(f, len(dst), len(src))
	if len(dst) == 0 {
		return
	}
	k := quantKernelsFor(activeQuant(), f)
	if k.dequantize == nil {
		_ = f.Dequantize(dst, src) // the lengths are right
		return
	}
	run, each := k.dequantize, quantElements
	if k.stream != nil && 4*total >= min(tileLimits.streamC, memory.LastLevelCache()) && uintptr(unsafe.Pointer(&dst[0]))%streamAlign == 0 {
		run, each = k.stream, streamElements
	}
	for len(dst) > 0 {
		n := min(each, len(dst))
		size := n / f.Elements() * f.Bytes()
		run(&dst[0], &src[0], n/f.Elements())
		dst, src = dst[n:], src[size:]
	}
}

// quantElements is the largest number of elements of one call of a kernel. Calls must be short, because the
// runtime cannot preempt a kernel, and each lane of a sum may have at most 1024 terms. A call with non-temporal
// stores ends with a fence: with streamElements a Xeon writes 1.02 times as fast as with half as many.
const (
	quantElements  = 32 << 10
	streamElements = 64 << 10
)

// quantCall returns how many of n numbers one call of a kernel processes, and their bytes.
func quantCall(f block.Format, n int) (numbers, bytes int) {
	numbers = min(n, quantElements)
	return numbers, numbers / f.Elements() * f.Bytes()
}

// group is the number of elements that share a minimum.
const group = 32

// GroupSums writes the sum of each group of 32 numbers of x to dst, for [DotBlocks]. It
// panics if x is not 32 times as long as dst.
func GroupSums(dst, x []float32) {
	if len(dst)*group != len(x) {
		panic(fmt.Sprintf("simd: dst has %d sums for %d numbers: expected one sum for each 32 numbers", len(dst), len(x)))
	}
	for i := range dst {
		var s [8]float32
		y := (*[group]float32)(x[i*group:])
		for j := 0; j < group; j += 8 {
			for k := range s {
				s[k] += y[j+k]
			}
		}
		dst[i] = (s[0] + s[4]) + (s[1] + s[5]) + ((s[2] + s[6]) + (s[3] + s[7]))
	}
}

// DotBlocks returns the dot product of x with the decoded blocks of src, in float32. sums
// are the [GroupSums] of x. It panics if the lengths do not match.
//
// The error is that of a float32 sum, relative to the magnitudes of [block.Format.Magnitudes] and
// not to the numbers, because minimums are multiplied separately.
func DotBlocks(f block.Format, x, sums []float32, src []byte) float32 {
	wholeBlocks(f, len(x), len(src))
	if len(sums)*group != len(x) {
		panic(fmt.Sprintf("simd: sums has %d sums for %d numbers: expected one sum for each 32 numbers", len(sums), len(x)))
	}
	if len(x) == 0 {
		return 0
	}
	dot, total := quantKernelsFor(activeQuant(), f).dot, 0.0
	for {
		n, size := quantCall(f, len(x))
		var part float32
		if dot != nil {
			part = dot(&x[0], &sums[0], &src[0], n/f.Elements())
		} else {
			part = dotBlocksGeneric(f, x[:n], src[:size])
		}
		total += float64(part)
		if x, sums, src = x[n:], sums[n/group:], src[size:]; len(x) == 0 {
			return float32(total)
		}
	}
}

// dotBlocksGeneric dequantises a few blocks at a time. Each lane of the sum of a few
// blocks has 32 terms, and there are at most 128 such sums.
func dotBlocksGeneric(f block.Format, x []float32, src []byte) float32 {
	var w [256]float32
	total := float32(0)
	for len(x) > 0 {
		var sum [8]float32
		n := min(len(x), len(w))
		size := n / f.Elements() * f.Bytes()
		_ = f.Dequantize(w[:n], src[:size]) // whole blocks
		for i := 0; i+8 <= n; i += 8 {
			a, b := (*[8]float32)(x[i:]), (*[8]float32)(w[i:])
			for j := range sum {
				sum[j] += a[j] * b[j]
			}
		}
		total += (sum[0] + sum[4]) + (sum[1] + sum[5]) + ((sum[2] + sum[6]) + (sum[3] + sum[7]))
		x, src = x[n:], src[size:]
	}
	return total
}
