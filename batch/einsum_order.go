package batch

import (
	"math/bits"
	"slices"
)

// mostPlanned is the maximum number of operands for which the best order is searched.
const mostPlanned = 10

// contracted multiplies the terms that share labels. It returns the remaining terms, which have no
// common labels, the smallest first.
func (e *einsum) contracted() []term {
	if len(e.terms) < 3 {
		return e.terms
	}
	var left []term
	for _, group := range e.groups() {
		if len(group) <= mostPlanned {
			left = append(left, e.best(group))
		} else {
			left = append(left, e.greedy(group))
		}
	}
	slices.SortStableFunc(left, func(a, b term) int { return e.size(a.labels) - e.size(b.labels) })
	return left
}

// groups returns the terms that are connected by labels.
func (e *einsum) groups() [][]term {
	var groups [][]term
	var sets []uint64
	for _, t := range e.terms {
		group, set := []term{t}, labelSet(t.labels)
		for i := 0; i < len(groups); {
			if sets[i]&set == 0 {
				i++
				continue
			}
			group, set = append(groups[i], group...), sets[i]|set
			groups, sets = slices.Delete(groups, i, i+1), slices.Delete(sets, i, i+1)
		}
		groups, sets = append(groups, group), append(sets, set)
	}
	return groups
}

// volume returns the product of the extents of a set of labels.
func (e *einsum) volume(set uint64) float64 {
	v := 1.0
	for ; set != 0; set &= set - 1 {
		v *= float64(e.extents[bits.TrailingZeros64(set)])
	}
	return v
}

// A costing is the cheapest way to multiply a set of terms; it has the terms of one side of the last product.
type costing struct {
	labels      uint64 // labels of the product
	work, space float64
	side        int
	ok          bool
}

// best multiplies terms in the order of the fewest multiplications, found by dynamic programming
// over connected sets; among equal orders it prefers the smallest temporaries.
func (e *einsum) best(ts []term) term {
	all := 1<<len(ts) - 1
	inside := make([]uint64, all+1) // labels that occur in each set of terms
	for set := 1; set <= all; set++ {
		low := bits.TrailingZeros(uint(set))
		inside[set] = inside[set&(set-1)] | labelSet(ts[low].labels)
	}
	kept := labelSet(e.out)
	table := make([]costing, all+1)
	for set := 1; set <= all; set++ {
		c := &table[set]
		c.labels = inside[set] & (inside[all^set] | kept)
		if set&(set-1) == 0 {
			c.labels, c.ok = inside[set], true
			continue
		}
		for side := (set - 1) & set; side > set^side; side = (side - 1) & set {
			x, y := &table[side], &table[set^side]
			if !x.ok || !y.ok || x.labels&y.labels == 0 {
				continue
			}
			work := x.work + y.work + e.volume(x.labels|y.labels)
			space := max(x.space, y.space, e.volume(c.labels))
			if !c.ok || work < c.work || work == c.work && space < c.space {
				c.work, c.space, c.side, c.ok = work, space, side, true
			}
		}
	}
	var multiply func(set int) term
	multiply = func(set int) term {
		if set&(set-1) == 0 {
			return ts[bits.TrailingZeros(uint(set))]
		}
		c := &table[set]
		return e.pair(multiply(c.side), multiply(set^c.side), c.labels)
	}
	return multiply(all)
}

// greedy repeatedly multiplies the pair with the smallest result.
func (e *einsum) greedy(ts []term) term {
	ts = slices.Clone(ts)
	for len(ts) > 1 {
		bestI, bestJ, least, keep := -1, -1, 0.0, uint64(0)
		for i := range ts {
			for j := range i {
				x, y := labelSet(ts[i].labels), labelSet(ts[j].labels)
				if x&y == 0 {
					continue
				}
				rest := labelSet(e.out)
				for k := range ts {
					if k != i && k != j {
						rest |= labelSet(ts[k].labels)
					}
				}
				grows := e.volume((x|y)&rest) - e.volume(x) - e.volume(y)
				if bestI < 0 || grows < least {
					bestI, bestJ, least, keep = i, j, grows, rest
				}
			}
		}
		y := e.pair(ts[bestJ], ts[bestI], keep)
		ts = append(slices.Delete(slices.Delete(ts, bestI, bestI+1), bestJ, bestJ+1), y)
	}
	return ts[0]
}
