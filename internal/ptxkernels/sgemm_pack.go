package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// packSpec is a kernel that copies a matrix to the layout from which tiles are copied fastest: K is
// the outer axis, and rows begin at multiples of 16 bytes. It transposes (Turn) or pads rows. The
// copy pays off because the product reads the matrix many times.
type packSpec struct{ Turn bool }

const packTile = 32

// maxLaidOut is the largest size of a grid along its second and third axes. It limits the number of
// matrices in one launch, and the number of rows to 2*packTile*maxLaidOut.
const maxLaidOut = 65535

var packKernels = map[packSpec]*Kernel{
	{false}: {Name: "pack", Target: ptx.SM75, Block: [3]uint32{packTile * 8, 1, 1}, Build: func(k *ptx.Kernel) { buildPack(k, false) }},
	{true}:  {Name: "pack_turned", Target: ptx.SM75, Block: [3]uint32{packTile * 8, 1, 1}, Build: func(k *ptx.Kernel) { buildPack(k, true) }},
}

// packedPitch is the row stride of a packed matrix, in elements.
func packedPitch(n int) int { return ceil(n, 4) * 4 }

// layOut returns the launch that packs batch matrices, and transposes them if turn. Rows have the
// stride [packedPitch] and are padded with zeros.
func layOut(from, to Arg, rows, columns, batch int, turn bool) Stage {
	pitch := packedPitch(columns)
	if turn {
		pitch = packedPitch(rows)
	}
	return layOutIn(pitch, from, to, rows, columns, batch, turn)
}

// layOutIn is layOut with the row stride pitch.
func layOutIn(pitch int, from, to Arg, rows, columns, batch int, turn bool) Stage {
	gridRows, gridColumns := rows, pitch
	if turn {
		gridRows, gridColumns = pitch, columns
	}
	return Stage{Kernel: packKernels[packSpec{turn}], Zero: -1,
		Grid: [3]uint32{uint32(ceil(gridColumns, packTile)), uint32(ceil(gridRows, 2*packTile)), uint32(batch)},
		Args: []Arg{from, to, word(uint32(rows)), word(uint32(columns)), word(uint32(pitch))}}
}

// buildPack writes the kernel. A block copies 64 rows of 32 columns.
func buildPack(k *ptx.Kernel, turn bool) {
	const high = 2 * packTile
	k.Block(packTile*8, 1, 1)
	from := ptx.GlobalParam[ptx.F32](k, "from").Hint(ptx.Once)
	to := ptx.GlobalParam[ptx.F32](k, "to")
	rows, columns, pitch := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "columns"), ptx.Param[ptx.U32](k, "pitch")
	t := k.Special(ptx.TidX)
	x, y := t.And(ptx.U(packTile-1)), t.Shr(ptx.U(5))
	row, col := k.Special(ptx.CtaidY).Mul(ptx.U(high)), k.Special(ptx.CtaidX).Mul(ptx.U(packTile))
	pair := k.Special(ptx.CtaidZ)
	from = from.At(pair.Mul(rows.Mul(columns)))
	out := columns
	if !turn {
		out = rows
	}
	to = to.At(pair.Mul(out.Mul(pitch)))
	c := col.Add(x)
	var v [high / 8]ptx.Var[ptx.F32]
	for i := range v {
		r := row.Add(y).Add(ptx.N(8 * i))
		v[i] = ptx.NewVar(k, ptx.F(0))
		k.When(r.Lt(rows).And(c.Lt(columns)), func() { v[i].Set(from.At(r.MulAdd(columns, c)).Load()) })
	}
	if !turn {
		for i := range v {
			r := row.Add(y).Add(ptx.N(8 * i))
			k.When(r.Lt(rows).And(c.Lt(pitch)), func() { to.At(r.MulAdd(pitch, c)).Store(v[i].Get()) })
		}
		return
	}
	// A padding of one element puts the elements of a column into different banks.
	tile := ptx.SharedArray[ptx.F32](k, "tile", packTile*(high+1))
	for i := range v {
		tile.At(x.MulAdd(ptx.N(high+1), y.Add(ptx.N(8*i)))).Store(v[i].Get())
	}
	k.Sync()
	for i := range packTile / 8 {
		for h := range 2 {
			c, r := col.Add(y).Add(ptx.N(8*i)), row.Add(x).Add(ptx.N(packTile*h))
			w := tile.At(y.Add(ptx.N(8*i)).MulAdd(ptx.N(high+1), x.Add(ptx.N(packTile*h)))).Load()
			k.When(r.Lt(pitch).And(c.Lt(columns)), func() { to.At(c.MulAdd(pitch, r)).Store(w) })
		}
	}
}
