package interp

import "github.com/rayo-go/rayo/internal/ir"

// decoded is an instruction with precomputed data that the checker needs for each lane.
type decoded struct {
	how    how
	width  int
	n      int    // operands
	arg    [4]int // where the rows of the operands are
	step   [4]int // from one component of an operand to the next; 0 for a scalar
	out    int    // where the row of the value is
	plane  planeFunc
	rounds bool // to half afterwards
	whole  bool // the value is an integer with an exact value
	signed bool // it is an I32
	region *region
}

// how selects the loop that runs an instruction.
type how uint8

const (
	howControl  how = iota // in step itself
	howNothing             // the value is computed before the code runs
	howFunction            // by plane
	howRename              // like howFunction, but its plane function does nothing
	howVar                 // of variables
	howOther               // lane by lane, in other
	howAccess              // of memory
)

// decode prepares the instructions, and allocates their values and variables.
func (c *checker) decode() (vals, vars int) {
	p := c.p
	c.code = make([]decoded, len(p.Code))
	for i := 1; i < len(p.Code); i++ {
		in, d := &p.Code[i], &c.code[i]
		d.out, d.width = vals, int(in.Width)
		d.whole, d.signed = in.Type.Integer(), in.Type == ir.I32
		if in.Type != ir.Invalid {
			vals += int(in.Width) * c.lanes
		}
		args, n := in.Operands()
		d.n = n
		for k, a := range args[:n] {
			d.arg[k] = c.code[a].out
			if p.Code[a].Width > 1 {
				d.step[k] = c.lanes
			}
		}
		switch in.Code {
		case ir.Const, ir.Param32, ir.Len, ir.BuiltIn:
			d.how = howNothing
		case ir.Splat, ir.Compose, ir.Extract, ir.Dot, ir.PackHalf, ir.UnpackHalf, ir.PackI8, ir.UnpackI8, ir.UnpackU8:
			d.how = howOther
		case ir.LoadVar, ir.StoreVar:
			d.how = howVar
		case ir.Load, ir.LoadShared, ir.Store, ir.StoreShared, ir.AtomicOp, ir.AtomicOpShared, ir.UniformLoad:
			if in.Code != ir.UniformLoad {
				d.how = howAccess
			}
			if in.Code == ir.Load || in.Code == ir.Store || in.Code == ir.AtomicOp {
				d.region = &c.buffers[in.Imm]
			} else {
				d.region = &c.arrays[in.Imm]
			}
		case ir.Barrier, ir.If, ir.Else, ir.For, ir.Loop, ir.End, ir.Break, ir.Continue, ir.Return,
			ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		default:
			if d.how = howRename; !renames(p, in) {
				d.how = howFunction
				var f lanewise
				f, d.rounds = function(p, ir.Value(i))
				d.plane = f.plane
			}
		}
	}
	for i, v := range p.Vars {
		c.varBase[i] = vars
		vars += int(v.Width) * c.lanes
	}
	return vals, vars
}

// fill sets the values that are computed before the code runs: values of a grid once, values of a
// workgroup at its start.
func (c *checker) fill(group bool) {
	for i := 1; i < len(c.p.Code); i++ {
		in, d := &c.p.Code[i], &c.code[i]
		if d.how != howNothing {
			continue
		}
		isGroup := in.Code == ir.BuiltIn && in.Flag >= ir.BuiltInGroupX && in.Flag <= ir.BuiltInGroupZ
		if group != isGroup {
			continue
		}
		for k := range d.width * c.lanes {
			x := c.initial(in, k%c.lanes)
			c.vals[d.out+k], c.exact[d.out+k] = x, integer(x, d.signed)
		}
	}
}

// initial returns a value that a lane has before the code runs.
func (c *checker) initial(in *ir.Instr, lane int) uint32 {
	switch in.Code {
	case ir.Const:
		return constantBits(in)
	case ir.Param32:
		return c.l.params[in.Imm]
	case ir.Len:
		return c.l.views[in.Imm].len
	}
	switch f := in.Flag; {
	case f >= ir.BuiltInGroupX && f <= ir.BuiltInGroupZ:
		return c.group[f-ir.BuiltInGroupX]
	case f >= ir.BuiltInGroupsX && f <= ir.BuiltInGroupsZ:
		return c.l.grid[f-ir.BuiltInGroupsX]
	case f == ir.BuiltInSubgroupSize:
		return uint32(c.l.subgroup)
	}
	return laneBuiltIn(in.Flag, uint32(lane), c.p.Local, uint32(c.l.subgroup))
}

// region is a buffer or array with its shadow.
type region struct {
	name   string
	width  int
	len    uint32
	words  []uint32
	halves []uint16
	shadow
	shared bool
}

func (m *region) get(i int) uint32 {
	if m.halves != nil {
		return laneUnpackHalf(uint32(m.halves[i]), 0, 0, 0)
	}
	return m.words[i]
}

func (m *region) set(i int, x uint32) {
	if m.halves != nil {
		m.halves[i] = uint16(lanePackHalf(x, 0, 0, 0))
		return
	}
	m.words[i] = x
}
