package block

import (
	"bytes"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// unused has the number of bits of a block that belong to no field.
var unused = map[Format]int{}

// TestFieldsCoverBlocks checks that no bit belongs to two fields, and how many bits belong to none.
func TestFieldsCoverBlocks(t *testing.T) {
	for _, f := range quantised() {
		l := f.Layout()
		var p parts
		owners := make([]int, 8*l.Bytes)
		l.numbers(&p, func(n Number, v []uint32) {
			for i := range n {
				n[i].walk(len(n[i].Steps)-1, n[i].First, n[i].At, func(item, at, count, stride int) {
					for range count {
						for b := range n[i].Bits {
							if !n[i].Ternary {
								owners[at+b]++
							} else if at%8 == 0 && b == 0 {
								for b := range 8 {
									owners[at+b]++
								}
							}
						}
						at += stride
					}
				})
			}
		})
		free := 0
		for b, n := range owners {
			if n > 1 {
				t.Errorf("%v: bit %d belongs to %d fields", f, b, n)
			}
			if n == 0 {
				free++
			}
		}
		if free != unused[f] {
			t.Errorf("%v: %d bits belong to no field, want %d", f, free, unused[f])
		}
		words := 0
		for _, w := range l.Words {
			words = max(words, w.At+(w.Count-1)*w.Stride+w.Size)
		}
		if words > l.Bytes {
			t.Errorf("%v: words up to byte %d", f, words)
		}
	}
}

// TestPackUnpack checks that unpacking and packing a block does not change it.
func TestPackUnpack(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range quantised() {
		for range 20 {
			b := randomBlocks(r, f, 1)
			var p parts
			l := f.Layout()
			l.unpack(&p, append(bytes.Clone(b), make([]byte, 8)...))
			if f == TQ1_0 {
				// Some bytes have the same digits as others.
				l.pack(b, &p)
			}
			got := bytes.Repeat([]byte{0xa5}, l.Bytes)
			l.unpack(&p, append(bytes.Clone(b), make([]byte, 8)...))
			if l.pack(got, &p); !bytes.Equal(got, b) {
				t.Fatalf("%v: % x came back as % x", f, b, got)
			}
		}
	}
}

// TestLoopsAreLayouts compares the decoders written for one format with the one
// derived from its description, bit for bit.
func TestLoopsAreLayouts(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range Formats() {
		if f == F64 || f == I64 {
			continue // numbers of 64 bits have no derived decoder
		}
		for range 20 {
			b := randomBlocks(r, f, 3)
			got, want := poisoned(3*f.Elements()), poisoned(3*f.Elements())
			f.dequantize(got, b)
			f.layout().dequantize(want, b, false)
			for i, w := range want {
				if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] == 0 && w == 0) {
					t.Fatalf("%v: element %d is %v, by the description %v", f, i, got[i], w)
				}
			}
		}
	}
}
