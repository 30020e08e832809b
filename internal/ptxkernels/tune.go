package ptxkernels

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/internal/portable"
)

// candidate is a schedule from which a family chooses, and its estimated cost.
type candidate struct {
	name string
	cost float64
}

// maxCandidates limits how many schedules are worth measuring: those with the lowest estimates.
const maxCandidates = 16

// Variants returns the names of the schedules from which [For] chooses for r, its own choice first,
// then by their estimated cost. It returns no names for a request with only one schedule. To select
// a schedule, put its name into the request's Variant or Tuning.
func Variants(r *portable.Request, d Device) ([]string, error) {
	var list []candidate
	d.candidates = &list
	if _, err := For(r, d); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	var names []string
	for _, c := range list {
		if !slices.Contains(names, c.name) && len(names) < maxCandidates {
			names = append(names, c.name)
		}
	}
	return names, nil
}

// preferred returns the schedule that r names; if there is none, the one that was measured to be
// the fastest for such requests; otherwise best, which has the lowest estimate among the schedules
// that each visits.
func preferred[S fmt.Stringer](r *portable.Request, d *Device, best S, each func(f func(s S, cost float64))) S {
	if d.candidates != nil {
		*d.candidates = append(*d.candidates, candidate{best.String(), math.Inf(-1)})
		each(func(s S, cost float64) { *d.candidates = append(*d.candidates, candidate{s.String(), cost}) })
		return best
	}
	name := r.Variant
	if name == "" && len(r.Tuning) > 0 {
		name = r.Tuning[portable.Key(r)]
	}
	if name == "" || name == best.String() {
		return best
	}
	each(func(s S, _ float64) {
		if s.String() == name {
			best = s
		}
	})
	return best
}
