package ptxgen

import "github.com/rayo-go/rayo/ptx"

// BrainLanes is how many elements a workgroup of the kernels of [Brain] converts.
const BrainLanes = 256

// Brain adds a kernel that converts between bfloat16, which programs do not have,
// and float32: buffer 1 gets the elements of buffer 0, rounded to nearest even.
// The length of the buffer of float32 says how many they are.
func Brain(m *ptx.Module, name string, narrow bool) (*Entry, error) {
	e := &Entry{Name: name, Local: [3]uint32{BrainLanes, 1, 1}, Aligned: []int{2, 4}, Lengths: []int{1}, bindings: 2}
	if narrow {
		e.Aligned, e.Lengths = []int{4, 2}, []int{0}
	}
	m.Kernel(name, func(k *ptx.Kernel) {
		k.Block(BrainLanes, 1, 1)
		Follow(k)
		from, to := ptx.GlobalParam[ptx.F32](k, "b0"), ptx.GlobalParam[ptx.F32](k, "b1")
		n := ptx.Param[ptx.U32](k, "n0")
		i := k.Special(ptx.CtaidX).MulAdd(ptx.U(BrainLanes), k.Special(ptx.TidX))
		k.If(i.Lt(n), func() {
			if !narrow {
				to.At(i).Store(ptx.Cast[ptx.BF16](from).At(i).Load().F32())
				return
			}
			ptx.Cast[ptx.BF16](to).At(i).Store(Narrow(k, from.At(i).Load()))
		})
	})
	if err := m.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// Narrow returns x as a bfloat16, rounded to nearest even, on any target.
func Narrow(k *ptx.Kernel, x ptx.F32) ptx.BF16 {
	if k.Target() >= ptx.SM80 {
		return x.BF16()
	}
	bits := x.Bits().U32()
	high := bits.Shr(ptx.U(16))
	even := bits.Add(ptx.U(0x7fff)).Add(high.And(ptx.U(1))).Shr(ptx.U(16))
	// A NaN stays one, whichever of its bits are lost.
	return ptx.Select(x.IsNaN(x), high.Or(ptx.U(0x40)), even).BrainBits()
}
