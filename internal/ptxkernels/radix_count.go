package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

const (
	radixCountLanes  = 256
	radixCountItems  = 16      // elements of a thread at a time
	radixCountBlocks = 8       // blocks on a multiprocessor, for large sorts
	radixCopyEach    = 1 << 13 // least number of elements that a block copies
)

// radixCount is a kernel that counts the digits of all passes.
type radixCount struct {
	radixOrder
	Wide   bool     // rows begin at multiples of 4 elements
	Copied op.DType // type of an array to copy, or op.InvalidType
}

// build writes the kernel. Each block has a part of a row. It counts digits in shared memory and
// adds the counts to the totals of the row. It also clears its share of the words of the look-back.
func (s radixCount) build(k *ptx.Kernel) {
	k.Block(radixCountLanes, 1, 1)
	x := s.elements(k, "x", false)
	totals, state := ptx.GlobalParam[ptx.U32](k, "totals"), ptx.GlobalParam[ptx.U32](k, "state")
	n, parts, each := ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "parts"), ptx.Param[ptx.U32](k, "each")
	words, share := ptx.Param[ptx.U32](k, "words"), ptx.Param[ptx.U32](k, "share")
	extent := s.extent(k)
	tid, block := k.Special(ptx.TidX), k.Special(ptx.CtaidX)
	counters := s.Passes * radixDigits
	counts := ptx.SharedArray[ptx.U32](k, "counts", counters)
	for i := 0; i < counters; i += radixCountLanes {
		counts.At(tid).Offset(i).Store(ptx.U(0))
	}
	begin := block.Mul(share)
	k.For(begin.Add(tid), begin.Add(share).Min(words), ptx.U(radixCountLanes), func(i ptx.U32) {
		state.At(i.Mul(ptx.U(4))).Store4([4]ptx.U32{})
	})
	if s.Copied != op.InvalidType {
		s.copyShare(k, extent)
	}
	k.Sync()
	row := block.Div(parts)
	from := block.Sub(row.Mul(parts)).Mul(each)
	to := from.Add(each).Min(n)
	s.countRange(k, x.at(row.Mul(n)), counts, from, to, extent)
	k.Sync()
	own := totals.At(row.Mul(ptx.N(counters)).Add(tid))
	for i := 0; i < counters; i += radixCountLanes {
		count := counts.At(tid).Offset(i).Load()
		k.If(count.Ne(ptx.U(0)), func() { ptx.ReduceAdd(own.Offset(i), count) })
	}
}

// countRange counts the digits of elements of a row.
func (s radixCount) countRange(k *ptx.Kernel, x radixArray, counts ptx.Shared[ptx.U32], from, to, extent ptx.U32) {
	tid := k.Special(ptx.TidX)
	count := func(v ptx.U32) {
		key := s.key(s.made(v, extent))
		for i := range s.Passes {
			digit := key.Shr(ptx.N(i*radixBits + s.Skip)).And(ptx.U(radixDigits - 1))
			ptx.ReduceAdd(counts.Offset(i*radixDigits).At(digit), ptx.U(1))
		}
	}
	const step = radixCountLanes * radixCountItems
	k.For(from, to, ptx.U(step), func(at ptx.U32) {
		k.IfElse(at.Add(ptx.U(step)).Le(to), func() {
			var v []ptx.U32
			if s.Wide {
				for j := range radixCountItems / 4 {
					four := x.at(at.Add(tid.Mul(ptx.U(4)))).offset(4 * j * radixCountLanes).load4()
					v = append(v, four[:]...)
				}
			} else {
				for j := range radixCountItems {
					v = append(v, x.at(at.Add(tid)).offset(j*radixCountLanes).load())
				}
			}
			for _, v := range v {
				count(v)
			}
		}, func() {
			k.For(at.Add(tid), to, ptx.U(radixCountLanes), func(i ptx.U32) { count(x.at(i).load()) })
		})
	})
}

// copyShare copies the block's share of an array of extent elements.
func (s radixCount) copyShare(k *ptx.Kernel, extent ptx.U32) {
	o := radixOrder{Type: s.Copied}
	from, to, share := o.elements(k, "copied", false), o.elements(k, "copy", false), ptx.Param[ptx.U32](k, "copied_share")
	tid, block, four := k.Special(ptx.TidX), k.Special(ptx.CtaidX), ptx.U(4)
	begin, quads := block.Mul(share), extent.Div(four)
	k.For(begin.Add(tid), begin.Add(share).Min(quads), ptx.U(radixCountLanes), func(i ptx.U32) {
		to.at(i.Mul(four)).store4(from.at(i.Mul(four)).load4())
	})
	rest := quads.Mul(four).Add(tid)
	k.If(block.Eq(ptx.U(0)).And(rest.Lt(extent)), func() { to.at(rest).store(from.at(rest).load()) })
}
