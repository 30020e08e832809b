package webgpu

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Elements of one byte lie four to a word. No kernel of the library reads them: they are
// unpacked to words before, and packed after. An array whose bytes are no multiple of
// four is bound with the whole of its last word, as one of half floats is: what shares
// that word keeps its value.

// wordOf is the type that kernels are given for each type of one byte.
var wordOf = map[op.DType]op.DType{op.U8: op.U32, op.I8: op.I32}

// bytes adds launches of a kernel that has a word of four elements in each lane, as many
// as the size of bindings asks for.
func (e *preparer) bytes(k *kernel.Kernel, dst, src arrayRef, n int) error {
	align := int(max(e.d.limits.StorageAlign, 4))
	most := int(e.d.limits.Binding / 4)
	most -= most % align
	for from := 0; from < n; from += most {
		m := min(n-from, most)
		part := func(a arrayRef) arrayRef {
			size := a.bytes / int64(n)
			return a.part(int64(from)*size, int64(m)*size)
		}
		if err := e.halves(k, 4, part(dst), part(src), m); err != nil {
			return err
		}
	}
	return nil
}

// unpackings give the elements of words, as words of their own.
var unpackings = kernel.NewFamily("unpack_bytes", func(b *kernel.Builder, p *halvesParams, t op.DType) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.U32](b, "x"), kernel.Output[kernel.U32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(2))
	b.If(first.Lt(n), func() {
		word := x.At(i)
		for j := range uint32(4) {
			at := first.Add(kernel.U(j))
			v := word.Shl(kernel.U(24 - 8*j))
			if t == op.I8 {
				v = kernel.Select(v.Ge(kernel.U(1<<31)), v.Shr(kernel.U(24)).Or(kernel.U(0xffffff00)), v.Shr(kernel.U(24)))
			} else {
				v = v.Shr(kernel.U(24))
			}
			b.If(at.Lt(n), func() { y.Set(at, v) })
		}
	})
})

// packing writes the low bytes of words.
var packing = kernel.New("pack_bytes", func(b *kernel.Builder, p *halvesParams) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.U32](b, "x"), kernel.InOut[kernel.U32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(2))
	b.If(first.Lt(n), func() {
		word := kernel.NewVar(b, "word", kernel.U(0))
		b.If(first.Add(kernel.U(4)).Gt(n), func() { word.Set(y.At(i).And(kept(n.Sub(first)))) })
		for j := range uint32(4) {
			at := first.Add(kernel.U(j))
			b.If(at.Lt(n), func() {
				word.Set(word.Get().Or(x.At(at).And(kernel.U(0xff)).Shl(kernel.U(8 * j))))
			})
		}
		y.Set(i, word.Get())
	})
})

// kept returns the bits of a word behind its first elements, of which there are 1 to 3.
func kept(elements kernel.U32) kernel.U32 {
	return kernel.U(0xffffffff).Shl(elements.Shl(kernel.U(3)).And(kernel.U(31)))
}

// byteCopy copies bytes. What shares a word with the last one keeps its value.
var byteCopy = kernel.New("copy_bytes", func(b *kernel.Builder, p *halvesParams) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.U32](b, "x"), kernel.InOut[kernel.U32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(2))
	b.If(first.Lt(n), func() {
		word := kernel.NewVar(b, "word", x.At(i))
		b.If(first.Add(kernel.U(4)).Gt(n), func() {
			behind := kept(n.Sub(first))
			word.Set(word.Get().And(behind.Xor(kernel.U(0xffffffff))).Or(y.At(i).And(behind)))
		})
		y.Set(i, word.Get())
	})
})
