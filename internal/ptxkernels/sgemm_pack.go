package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// packSpec is a kernel that lays a matrix out as large tiles are copied fastest:
// the sum's index outermost, and rows that begin at multiples of 16 bytes. It
// transposes, or copies into longer rows, and reads and writes once what the
// product reads many times.
type packSpec struct{ Turn bool }

const packTile = 32

// maxLaidOut is the blocks that a grid has along its second and third axes: as many
// matrices, and twice as many times packTile rows, are laid out at once.
const maxLaidOut = 65535

var packKernels = map[packSpec]*Kernel{
	{false}: {Name: "pack", Target: ptx.SM75, Block: [3]uint32{packTile * 8, 1, 1}, Build: func(k *ptx.Kernel) { buildPack(k, false) }},
	{true}:  {Name: "pack_turned", Target: ptx.SM75, Block: [3]uint32{packTile * 8, 1, 1}, Build: func(k *ptx.Kernel) { buildPack(k, true) }},
}

// packedPitch is the elements from one row of a packed matrix to the next.
func packedPitch(n int) int { return ceil(n, 4) * 4 }

// layOut returns the launch that lays out batch matrices of rows and columns:
// transposed if turn, in rows of [packedPitch] that end in zeros.
func layOut(from, to Arg, rows, columns, batch int, turn bool) Stage {
	pitch := packedPitch(columns)
	if turn {
		pitch = packedPitch(rows)
	}
	return layOutIn(pitch, from, to, rows, columns, batch, turn)
}

// layOutIn is layOut to rows that are pitch elements apart.
func layOutIn(pitch int, from, to Arg, rows, columns, batch int, turn bool) Stage {
	gridRows, gridColumns := rows, pitch
	if turn {
		gridRows, gridColumns = pitch, columns
	}
	return Stage{Kernel: packKernels[packSpec{turn}], Zero: -1,
		Grid: [3]uint32{uint32(ceil(gridColumns, packTile)), uint32(ceil(gridRows, 2*packTile)), uint32(batch)},
		Args: []Arg{from, to, word(uint32(rows)), word(uint32(columns)), word(uint32(pitch))}}
}

// buildPack: a block has 64 rows of 32 columns.
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
	// One element more in a row keeps those of a column in different banks.
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
