package devicetest

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestGraphsNotice: most elements of random graphs are known well enough to
// tell a right answer from one that is off by a hundredth, and a wrong
// operation is noticed.
func TestGraphsNotice(t *testing.T) {
	elements, unknown, wrong, noticed := 0, 0, 0, 0
	for seed := range 60 {
		r, err := newGraph(uint64(seed), 4+seed%28)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range r.sinks() {
			v := r.values[i]
			for _, e := range v.err {
				elements++
				if math.IsInf(e, 1) || v.typ == op.Bool && e > 0 {
					unknown++
				}
			}
			if i < len(r.inputs) || len(v.data) == 0 || v.typ != op.F32 {
				continue
			}
			a := newArray(v.typ, len(v.data))
			for j, w := range v.data {
				a.typ.PutFloat64(a.data, j, w)
			}
			if err := v.compare(a); err != nil {
				t.Fatalf("graph %d: the reference itself: %v", seed, err)
			}
			wrong++
			for j, w := range v.data {
				a.typ.PutFloat64(a.data, j, w*1.01+0.013)
			}
			if v.compare(a) != nil {
				noticed++
			}
		}
	}
	if unknown*10 > elements {
		t.Errorf("%d of %d elements are not known", unknown, elements)
	}
	if noticed*20 < wrong*19 {
		t.Errorf("%d of %d wrong results were noticed", noticed, wrong)
	}
	t.Logf("%d of %d elements are not known; %d of %d wrong results noticed", unknown, elements, noticed, wrong)
}

// TestCasesAreDefined: the references give every case results, and few of
// them are undefined or infinite bounds that anything would meet.
func TestCasesAreDefined(t *testing.T) {
	for _, o := range op.Catalogue() {
		elements, loose := 0, 0
		for _, d := range op.DTypes() {
			for _, c := range Cases(o, d, 7, true) {
				out, types, err := c.Reference()
				if err != nil {
					t.Fatalf("%v: %v", &c, err)
				}
				for i, r := range out {
					for j, v := range r.Data {
						mag := 0.0
						if r.Mag != nil {
							mag = r.Mag[j]
						}
						elements++
						if b := o.Tolerance().Bound(v, mag, types[i]); types[i].Float() && v-v == 0 && b > math.Abs(v)/2+0.1 {
							loose++
						}
					}
				}
			}
		}
		if elements < 50 {
			t.Errorf("%s: only %d elements are compared", o, elements)
		}
		if loose*20 > elements {
			t.Errorf("%s: the bounds of %d of %d elements are loose", o, loose, elements)
		}
	}
}
