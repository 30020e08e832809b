package ptxkernels

import "math"

// The cost of a schedule is the time of its slowest multiprocessor plus the time of the other
// launches. All numbers are cycles of a multiprocessor, measured on an H200. Other devices have
// other speeds, but mostly the same fastest schedules.
const (
	startCycles  = 6000 // from the launch to the first product, and from the last product to the end
	launchCycles = 4000 // cost of an additional launch
	cycleBytes   = 1500 // bytes that all multiprocessors together move in a cycle
)

// sgemmLoad is the fraction of the speed of a tile that the loads of an operand cost: a constant, and a number
// that is divided by the products for each loaded number in a tile.
type sgemmLoad struct{ fixed, each float64 }

// sgemmLoads has the cost of the loads of an operand whose rows run along the sum (along), and begin at multiples of
// 16 bytes (vectors).
var sgemmLoads = map[struct{ along, vectors bool }]sgemmLoad{
	{along: true, vectors: true}:   {0.02, 0},
	{along: true, vectors: false}:  {0.06, 5}, // copies of single numbers cost more if each is used for fewer products
	{along: false, vectors: true}:  {},
	{along: false, vectors: false}: {0.05, 5},
}

// loss returns the fraction for a tile that uses each loaded number for the given number of products.
func (l sgemmLoad) loss(products int) float64 { return l.fixed + l.each/float64(products) }

// maxSplit is the largest split of K.
const maxSplit = 24

// maxScratch is the largest number of elements in a temporary of an optional schedule.
const maxScratch = 1 << 28

// rated is a tile and its measured speed.
type rated struct {
	sgemmTile
	rate  float64 // fraction of the peak multiply-adds of a multiprocessor, with all its blocks
	alone float64 // the same with a single block
}

// choose returns the schedule with the lowest cost.
func (q *sgemmRequest) choose() sgemmSchedule {
	var best sgemmSchedule
	minimum := math.Inf(1)
	q.schedules(func(w sgemmSchedule, cost float64) {
		if cost < minimum {
			minimum, best = cost, w
		}
	})
	return best
}

// schedules calls f for each schedule of the product, with its cost.
func (q *sgemmRequest) schedules(f func(w sgemmSchedule, cost float64)) {
	for i := range sgemmTiles {
		for split := 1; split <= maxSplit && (split == 1 || q.p.K >= 128*split); split++ {
			for j := range 4 {
				w := sgemmSchedule{sgemmTiles[i].sgemmTile, split, [2]bool{j&1 != 0, j&2 != 0}}
				if c := q.cost(&sgemmTiles[i], w); c > 0 {
					f(w, c)
				}
			}
		}
	}
}

// cost estimates the cycles of a schedule. It returns 0 for schedules that cannot be useful.
func (q *sgemmRequest) cost(t *rated, w sgemmSchedule) float64 {
	p, split := q.p, w.Split
	if split > 1 && split*p.Batch*p.M*p.N > maxScratch {
		return 0
	}
	sum := float64(startCycles)
	rate, alone := t.rate, t.alone
	for i, o := range []struct {
		lines, batch int
		along        bool
		across       int // products for each loaded number in a tile
	}{{p.M, p.Batch, !q.o.TransA, t.Cols}, {p.N, p.Batch, q.o.TransB, t.Rows}} {
		n := o.lines
		if o.along {
			n = p.K
		}
		slow := sgemmLoads[struct{ along, vectors bool }{o.along, n%4 == 0}].loss(o.across)
		switch {
		case !w.Pack[i]:
			rate, alone = rate*(1-slow), alone*(1-slow)
		case slow == 0 || o.batch*o.lines*p.K > maxScratch:
			return 0
		default:
			sum += launchCycles + 8*float64(o.batch*o.lines)*float64(p.K)/cycleBytes
		}
	}
	each := ceil(ceil(p.K, t.Depth), split)
	blocks := ceil(p.M, t.Rows) * ceil(p.N, t.Cols) * p.Batch * ceil(ceil(p.K, t.Depth), each)
	work := float64(each*t.Depth) * float64(t.Rows*t.Cols) / 128
	n := ceil(blocks, q.d.Multiprocessors)
	rounds, rest := n/t.Blocks, n%t.Blocks
	sum += float64(rounds*t.Blocks) * work / rate
	if rest > 0 {
		// Each additional block uses a fraction of the capacity that the others leave unused.
		sum += float64(rest) * work / (rate * (1 - math.Pow(1-alone/rate, float64(rest))))
	}
	sum += 1000 * float64(rounds+min(rest, 1))
	if n := ceil(each, t.run(q.terms)); t.long(each, q.terms) {
		// Blocks that start together also spill and reload their accumulators together.
		sum += float64(6*(n-1)*min(blocks, t.Blocks*q.d.Multiprocessors)*t.Rows*t.Cols*t.Slices) / cycleBytes
	}
	if split > 1 {
		sum += launchCycles + 4*float64(p.Batch*p.M)*float64(p.N)*float64(2*split+1)/cycleBytes
	}
	return sum
}
