package webgpu

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Elements of one byte are packed four to a word. The kernels of the library do not read them: a
// launch unpacks them to words before the kernel, and another packs the results. If the size of an
// array is not a multiple of four bytes, its binding includes the whole last word, as for half
// floats. Other data in this word keep their value.

// wordOf maps each type of one byte to the type that kernels compute with.
var wordOf = map[op.DType]op.DType{op.U8: op.U32, op.I8: op.I32}

// bytes adds launches of a kernel that processes one word of four elements in each lane. There are
// several launches if the arrays exceed the binding limit.
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

// unpackings convert the elements of packed words to separate words.
var unpackings *kernel.Family[op.DType]

func makeUnpackings() *kernel.Family[op.DType] {
	return kernel.NewFamily("unpack_bytes", func(b *kernel.Builder, p *halvesParams, t op.DType) {
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
}

// packing packs the low bytes of words.
var packing *kernel.Kernel

func makePacking() *kernel.Kernel {
	return kernel.New("pack_bytes", func(b *kernel.Builder, p *halvesParams) {
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
}

// kept returns the mask of the bits of a word after its first 1 to 3 elements.
func kept(elements kernel.U32) kernel.U32 {
	return kernel.U(0xffffffff).Shl(elements.Shl(kernel.U(3)).And(kernel.U(31)))
}

// byteCopy copies bytes. Other data in the word of the last byte keep their value.
var byteCopy *kernel.Kernel

func makeByteCopy() *kernel.Kernel {
	return kernel.New("copy_bytes", func(b *kernel.Builder, p *halvesParams) {
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
}
