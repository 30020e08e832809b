package ptxkernels

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// A radix sort orders the elements of rows by one digit of 8 bits after the other, from the
// lowest. One launch counts the digits of all passes, in one read of the rows. Each pass then is one
// launch (Adinets and Merrill, "Onesweep", 2022): a block ranks a tile of a row by the digit, finds
// by looking back how many elements of the tiles before have each digit, brings the tile into order
// in shared memory, and writes the elements of each digit next to each other. Blocks take tiles in
// the order in which they start: whoever waits, waits for blocks that have started.

const (
	radixBits   = 8
	radixDigits = 1 << radixBits
	// radixCountBits are the bits of a word of the look-back that count elements. The bits above
	// say what is counted: see [radixPass.flag].
	radixCountBits = 28
)

// radixTile is how a block of a pass divides a tile: each warp has neighbouring elements.
type radixTile struct {
	Lanes, Items int // threads, and elements of each
	Look         int // tiles that a thread looks back at together
	Match        bool
	Ahead        bool // places are brought into the second cache before they are read
	Blocks       int  // of a multiprocessor, 0 where the assembler chooses
}

func (t radixTile) size() int  { return t.Lanes * t.Items }
func (t radixTile) warps() int { return t.Lanes / 32 }

// radixOrder is how elements are ordered by their bits.
type radixOrder struct {
	Type       op.DType
	Descending bool
}

// bits returns how many bits a key has.
func (o radixOrder) bits() int { return 8 * o.Type.Size() }

func (o radixOrder) passes() int { return o.bits() / radixBits }

// key returns the key of an element by its bits: keys are in the order of the elements. Keys of
// NaN are above all others, and both zeros have one.
func (o radixOrder) key(x ptx.U32) ptx.U32 {
	width, magnitude, inf := o.bits(), uint32(0x7fff), uint32(0x7c00)
	top := uint32(1) << (width - 1)
	switch o.Type {
	case op.U32:
	case op.I32:
		x = x.Xor(ptx.U(top))
	case op.F32:
		x = x.B32().Float().Add(ptx.F(0)).Bits().U32() // one zero, and one NaN, 0x7fffffff
		x = x.Xor(x.S32().Shr(ptx.U(31)).U32().Or(ptx.U(top)))
	default:
		if o.Type == op.BF16 {
			inf = 0x7f80
		}
		size := x.And(ptx.U(magnitude))
		key := ptx.Select(x.Ge(ptx.U(top)).And(size.Ne(ptx.U(0))), x.Xor(ptx.U(2*top-1)), size.Or(ptx.U(top)))
		x = ptx.Select(size.Gt(ptx.U(inf)), ptx.U(2*top-1), key)
	}
	if o.Descending {
		return x.Not()
	}
	return x
}

// digit returns the digit of an element that begins at bit shift of its key.
func (o radixOrder) digit(x, shift ptx.U32) ptx.U32 {
	return o.key(x).Shr(shift).And(ptx.U(radixDigits - 1))
}

// elements declares an array of elements of the order's type, or of their bits in four bytes.
func (o radixOrder) elements(k *ptx.Kernel, name string, words bool) radixArray {
	if words || o.Type.Size() == 4 {
		return radixArray{words: ptx.GlobalParam[ptx.U32](k, name)}
	}
	return radixArray{halves: ptx.GlobalParam[ptx.U16](k, name), half: true}
}

// radixArray is an array of elements, read and written by their bits.
type radixArray struct {
	words  ptx.Global[ptx.U32]
	halves ptx.Global[ptx.U16]
	half   bool
}

func (a radixArray) at(i ptx.U32) radixArray {
	if a.half {
		a.halves = a.halves.At(i)
	} else {
		a.words = a.words.At(i)
	}
	return a
}

func (a radixArray) offset(n int) radixArray {
	if a.half {
		a.halves = a.halves.Offset(n)
	} else {
		a.words = a.words.Offset(n)
	}
	return a
}

func (a radixArray) load() ptx.U32 {
	if a.half {
		return a.halves.Load().U32()
	}
	return a.words.Load()
}

func (a radixArray) load4() (v [4]ptx.U32) {
	if !a.half {
		return a.words.Load4()
	}
	for i, x := range a.halves.Load4() {
		v[i] = x.U32()
	}
	return v
}

func (a radixArray) store(x ptx.U32) {
	if a.half {
		a.halves.Store(x.U16())
	} else {
		a.words.Store(x)
	}
}

// radixKernels are the kernels of sorts, by their specs.
var radixKernels struct {
	sync.Mutex
	cache map[any]*Kernel
}

// radixKernel returns the kernel for a spec.
func radixKernel(spec any, name string, lanes int, build func(k *ptx.Kernel)) *Kernel {
	radixKernels.Lock()
	defer radixKernels.Unlock()
	k := radixKernels.cache[spec]
	if k == nil {
		if radixKernels.cache == nil {
			radixKernels.cache = map[any]*Kernel{}
		}
		k = &Kernel{Name: name, Target: ptx.SM80, Block: [3]uint32{uint32(lanes), 1, 1}, Build: build}
		radixKernels.cache[spec] = k
	}
	return k
}

// radixSort is a sort of rows.
type radixSort struct {
	radixOrder
	tile       radixTile
	rows, cols int
	limit      int // elements of a row that are written, from the first on
	d          *Device
}

// sort adds the launches that sort x to values, and where they were to places.
func (r *radixSort) sort(p *Plan, x, values, places Arg) {
	temporary := func(bytes int) Arg {
		p.Scratch = append(p.Scratch, int64(bytes))
		return scratch(len(p.Scratch) - 1)
	}
	passes, tiles := r.passes(), ceil(r.cols, r.tile.size())
	totals := temporary(4 * (r.rows*passes*radixDigits + passes))
	state := temporary(4 * r.rows * tiles * radixDigits)
	var halves [2][2]Arg
	for i := range min(passes-1, 2) {
		halves[i] = [2]Arg{temporary(4 * r.rows * r.cols), temporary(4 * r.rows * r.cols)}
	}
	p.Stages = append(p.Stages, r.counts(x, totals, state, tiles))
	from := [2]Arg{x}
	for i := range passes {
		s := radixPass{radixOrder: r.radixOrder, radixTile: r.tile, First: i == 0, Last: i == passes-1}
		to := halves[i%2]
		if s.Last {
			to = [2]Arg{values, places}
		}
		p.Stages = append(p.Stages, r.pass(s, i, tiles, from, to, totals, state))
		from = to
	}
}

// counts returns the launch that counts digits, and clears the words of the look-back.
func (r *radixSort) counts(x, totals, state Arg, tiles int) Stage {
	s := radixCount{radixOrder: r.radixOrder, Wide: r.cols%4 == 0}
	each := radixCountLanes * radixCountItems
	// Blocks add their counts to those of others: there are few of them.
	if few := ceil(r.rows*r.cols, radixCountBlocks*r.d.Multiprocessors); few > each {
		each = ceil(few, each) * each
	}
	parts := ceil(r.cols, each)
	blocks := r.rows * parts
	words := r.rows * tiles * radixDigits / 4
	return Stage{
		Kernel: radixKernel(s, "radix_count", radixCountLanes, s.build), Grid: [3]uint32{uint32(blocks), 1, 1}, Zero: totals.Array.Index,
		Args: []Arg{x, totals, state, word(uint32(r.cols)), word(uint32(parts)), word(uint32(each)), word(uint32(words)), word(uint32(ceil(words, blocks)))},
	}
}

// pass returns the launch of a pass.
func (r *radixSort) pass(s radixPass, i, tiles int, from, to [2]Arg, totals, state Arg) Stage {
	args := []Arg{from[0]}
	if !s.First {
		args = append(args, from[1])
	}
	tickets := totals
	tickets.Off = int64(4 * r.rows * r.passes() * radixDigits)
	args = append(args, to[0], to[1], totals, tickets, state, word(uint32(r.cols)), word(uint32(tiles)), word(uint32(i)))
	if s.Last {
		args = append(args, word(uint32(r.limit)))
	}
	return Stage{Kernel: radixKernel(s, "radix_pass", s.Lanes, s.build), Grid: [3]uint32{uint32(r.rows * tiles), 1, 1}, Args: args, Zero: -1}
}

// radixFits reports whether rows can be sorted by digits.
func radixFits(r *portable.Request, d *Device, cols int) bool {
	return d.Target >= ptx.SM80 && r.Post == nil && cols > radixShortest && cols < 1<<radixCountBits
}

// name returns the name of the tile as a variant.
func (t radixTile) name() string { return fmt.Sprintf("radix%dx%d", t.Lanes, t.Items) }

// chooseRadixTile returns the tile for rows.
func chooseRadixTile(rows, cols int, d *Device) radixTile {
	t := radixTile{Lanes: 256, Items: 16, Look: 4, Blocks: 4}
	if rows*cols >= 1<<22 {
		t.Lanes, t.Blocks = 512, 2
	}
	for _, f := range strings.Split(os.Getenv("RAYO_RADIX"), ",") {
		name, v, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(v)
		switch name {
		case "lanes":
			t.Lanes = n
		case "items":
			t.Items = n
		case "look":
			t.Look = n
		case "match":
			t.Match = n != 0
		case "blocks":
			t.Blocks = n
		case "ahead":
			t.Ahead = n != 0
		}
	}
	return t
}
