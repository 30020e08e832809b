package kernels

// A way costs what its slowest multiprocessor does, and what the launches beside
// it cost. All numbers are cycles of a multiprocessor, as they were measured on an
// H200; other devices differ in speed, but little in what pays.
const (
	startCycles  = 6000 // until a grid multiplies, and from the last product to the end
	launchCycles = 4000 // of another launch
	cycleBytes   = 1500 // that all multiprocessors together move in a cycle
)

// rated is a tile and how well it does.
type rated struct {
	sgemmTile
	rate  float64 // of the multiply-adds that a multiprocessor can do, with all its blocks
	alone float64 // likewise with a single block
}

// choose returns the cheapest way.
func (q *sgemmRequest) choose() sgemmWay {
	var best sgemmWay
	least := 0.0
	for i := range sgemmTiles {
		for _, split := range []int{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32} {
			if split > 1 && q.p.K < 128*split {
				break
			}
			for j := range 4 {
				w := sgemmWay{sgemmTiles[i].sgemmTile, split, [2]bool{j&1 != 0, j&2 != 0}}
				if c := q.cost(&sgemmTiles[i], w); c > 0 && (least == 0 || c < least) {
					least, best = c, w
				}
			}
		}
	}
	return best
}

// cost returns the cycles that a way takes, or 0 if it makes no sense.
func (q *sgemmRequest) cost(t *rated, w sgemmWay) float64 {
	p, split := q.p, w.Split
	sum := float64(startCycles)
	rate, alone := t.rate, t.alone
	// Lines that are copied number by number take their time.
	for i, o := range []struct {
		lines, batch int
		along        bool
	}{{p.M, p.Batch, !q.o.TransA}, {p.N, p.Batch, q.o.TransB}} {
		slow := 0.0
		switch {
		case o.along && p.K%4 != 0:
			slow = 0.11
		case o.along:
			slow = 0.02
		case o.lines%4 != 0:
			slow = 0.06
		}
		switch {
		case !w.Pack[i]:
			rate, alone = rate*(1-slow), alone*(1-slow)
		case slow == 0:
			return 0
		default:
			sum += launchCycles + 8*float64(o.batch*o.lines)*float64(p.K)/cycleBytes
		}
	}
	each := ceil(ceil(p.K, t.Depth), split)
	blocks := ceil(p.M, t.Rows) * ceil(p.N, t.Cols) * p.Batch * ceil(ceil(p.K, t.Depth), each)
	work := float64(each*t.Depth) * float64(t.Rows*t.Cols) / 128
	n := ceil(blocks, q.d.Multiprocessors)
	rounds := n / t.Blocks
	// A rest of blocks has the multiprocessor to itself.
	rest := n % t.Blocks
	sum += float64(rounds*t.Blocks) * work / rate
	if rest > 0 {
		r := alone + (rate-alone)*float64(rest-1)/float64(max(1, t.Blocks-1))
		sum += float64(rest) * work / r
	}
	sum += 1000 * float64(rounds+min(rest, 1))
	if split > 1 {
		sum += launchCycles + 4*float64(p.Batch*p.M)*float64(p.N)*float64(2*split+1)/cycleBytes
	}
	return sum
}
