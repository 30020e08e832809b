package ptxkernels

import (
	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Config returns the launch configuration of a stage whose kernel needs shared bytes of shared memory.
func (s *Stage) Config(shared int) cuda.Config {
	dim := func(d [3]uint32) cuda.Dim { return cuda.Dim{X: d[0], Y: d[1], Z: d[2]} }
	c := cuda.Config{Grid: dim(s.Grid), Block: dim(s.Kernel.Block), Shared: uint32(shared)}
	if n := s.Kernel.Cluster; n > 1 {
		c.Cluster = cuda.Dim{X: n}
	}
	return c
}

// Arrays are the addresses of the arrays that the stages of a plan use: operands,
// results and temporaries, by [portable.RefKind].
type Arrays [portable.ScratchRef + 1][]cuda.Ptr

// address returns the address that an argument names.
func (a *Arrays) address(x *Arg) cuda.Ptr {
	return a[x.Array.Kind][x.Array.Index] + cuda.Ptr(x.Off)
}

// AppendArgs appends the arguments of a launch to p. tensorMap returns the tensor map of argument
// i, whose array begins at address at.
func (s *Stage) AppendArgs(p cuda.Params, a *Arrays, tensorMap func(i int, at cuda.Ptr) (cuda.TensorMap, error)) (cuda.Params, error) {
	for i := range s.Args {
		x := &s.Args[i]
		switch x.Kind {
		case Pointer:
			p.Ptr(a.address(x))
		case Word:
			p.U32(uint32(x.Bits))
		case Double:
			p.U64(x.Bits)
		case Map:
			m, err := tensorMap(i, a.address(x))
			if err != nil {
				return p, err
			}
			p.Bytes(m[:], 64)
		}
	}
	return p, nil
}

// Tiled returns the driver's description of the tensor at an address.
func (t *Tiles) Tiled(at cuda.Ptr) cuda.Tiled {
	d := cuda.Tiled{Address: at, Promote: cuda.Promote256}
	if t.Lines {
		d.Promote = cuda.Promote128
	}
	switch t.Type {
	case op.F16:
		d.Type = cuda.ElementF16
	case op.BF16:
		d.Type = cuda.ElementBF16
	case op.U32:
		d.Type = cuda.ElementU32
	default:
		d.Type = cuda.ElementF32
	}
	switch t.Swizzle {
	case ptx.Swizzle32:
		d.Swizzle = cuda.Swizzle32
	case ptx.Swizzle64:
		d.Swizzle = cuda.Swizzle64
	case ptx.Swizzle128:
		d.Swizzle = cuda.Swizzle128
	}
	for i := range t.Size {
		d.Size, d.Tile = append(d.Size, uint64(t.Size[i])), append(d.Tile, uint32(t.Tile[i]))
	}
	for _, n := range t.Stride {
		d.Stride = append(d.Stride, uint64(n))
	}
	return d
}
