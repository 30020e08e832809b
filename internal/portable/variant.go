//go:build !js || !nowebgpu

package portable

import (
	"sync"

	"github.com/rayo-go/rayo/op"
)

// family describes the portable kernels of one or more operations.
type family struct {
	plan      func(q *request) (*Plan, error)
	variants  []string
	quantised bool // the operations accept quantised operands

	// reads reports whether the kernels can read operand at, of shape s, in layout l, and writes whether they
	// can write the result. If they are nil, [Reads] and [Writes] apply rules for all operations.
	reads  func(at int, s op.Shape, l *op.Layout) bool
	writes func(s op.Shape, l *op.Layout) bool
}

// families are the registered families. The family of the nil key computes elementwise programs and
// all elementwise operations.
var families = map[*op.Operation]*family{}

// register registers f for the operations os.
func register(f *family, os ...*op.Operation) *family {
	for _, o := range os {
		families[o] = f
	}
	return f
}

func familyOf(o *op.Operation) *family {
	if f := families[o]; f != nil || o == nil || o.Class() != op.Elementwise {
		return f
	}
	return families[nil]
}

// Has reports whether o has portable kernels. [For] reports which requests they support.
func Has(o *op.Operation) bool { return familyOf(o) != nil }

// Variants returns the names of the variants for o, in the order of preference, or nil if there is
// only one. o is nil for elementwise programs.
func Variants(o *op.Operation) []string {
	if f := familyOf(o); f != nil {
		return f.variants
	}
	return nil
}

// A variant is one way to compute a request with the sizes M, by kernels specialised by S.
type variant[M, S any] struct {
	name string
	fits func(m M, t *Target) bool
	spec S
}

// A table lists variants in the order of preference.
type table[M, S any] []variant[M, S]

// A lazyTable makes its table at the first use, so that the linker leaves it out of programs that
// do not use it.
type lazyTable[M, S any] struct {
	make func() table[M, S]
	once sync.Once
	list table[M, S]
}

func (l *lazyTable[M, S]) get() table[M, S] {
	l.once.Do(func() { l.list = l.make() })
	return l.list
}

func (vs table[M, S]) names() []string {
	s := make([]string, len(vs))
	for i := range vs {
		s[i] = vs[i].name
	}
	return s
}

// choose returns the variant that q names, and otherwise the first variant that suits the request.
func (vs table[M, S]) choose(q *request, m M) (S, string, error) {
	return vs.prefer(q, m, func(*S) bool { return true })
}

// prefer is choose with a preference: if q names no variant, a variant that is good comes before
// other variants that suit the request.
func (vs table[M, S]) prefer(q *request, m M, good func(s *S) bool) (S, string, error) {
	i := q.pick(len(vs), func(i int) string { return vs[i].name }, func(i int, why reason) bool {
		v := &vs[i]
		if c, is := any(v.spec).(able[M]); is && why == named {
			return c.can(m, &q.Target)
		}
		return (why != preferred || good(&v.spec)) && v.fits(m, &q.Target)
	})
	if i >= 0 {
		return vs[i].spec, vs[i].name, nil
	}
	var none S
	return none, "", q.noVariant(m)
}

// reason is the reason for choosing a variant.
type reason int

const (
	named     reason = iota // the request or the tuning names it
	preferred               // it suits the request and is good
	usable                  // it is the first that suits the request
)

// pick returns the index of one of n variants, or -1. It is not generic, so that programs have its
// code only once.
func (q *request) pick(n int, name func(i int) string, fits func(i int, why reason) bool) int {
	wanted := q.Variant
	if wanted == "" {
		wanted = q.tuned()
	}
	for why := named; why <= usable; why++ {
		for i := range n {
			if (why != named || name(i) == wanted) && fits(i, why) {
				return i
			}
		}
		if q.Variant != "" {
			break
		}
	}
	return -1
}

func (q *request) noVariant(m any) error {
	if q.Variant == "" {
		return unsupported("the target cannot run any variant for %v", m)
	}
	return unsupported("there is no variant %q that suits %v", q.Variant, m)
}

// able is a specialisation that a request may name even for sizes for which it would not be chosen.
type able[M any] interface{ can(m M, t *Target) bool }

func (q *request) tuned() string {
	if q.Tuning == nil {
		return ""
	}
	return q.Tuning[Key(&q.Request)]
}
