//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/op"

// family is the portable kernels of one or more operations.
type family struct {
	plan      func(q *request) (*Plan, error)
	variants  []string
	quantised bool // takes operands of quantised types
}

// families are the registered families of this package. The key nil is for elementwise programs,
// which implement all elementwise operations.
var families = map[*op.Operation]*family{}

// register enters the kernels of operations.
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

// Variants returns the names of the ways to compute o, in the order in which
// they are preferred; nil where there is one way. o is nil for elementwise
// programs.
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

// A table lists variants, from the one that is preferred.
type table[M, S any] []variant[M, S]

func (vs table[M, S]) names() []string {
	s := make([]string, len(vs))
	for i := range vs {
		s[i] = vs[i].name
	}
	return s
}

// choose returns the variant that q names or that is the first to fit.
func (vs table[M, S]) choose(q *request, m M) (S, string, error) {
	return vs.prefer(q, m, func(*S) bool { return true })
}

// prefer is choose where, if nobody names a variant, one that is good is taken
// before others that fit.
func (vs table[M, S]) prefer(q *request, m M, good func(s *S) bool) (S, string, error) {
	first := func(is func(v *variant[M, S]) bool) *variant[M, S] {
		for i := range vs {
			if v := &vs[i]; is(v) {
				return v
			}
		}
		return nil
	}
	fits := func(v *variant[M, S]) bool { return v.fits(m, &q.Target) }
	name := q.Variant
	if name == "" {
		name = q.tuned()
	}
	v := first(func(v *variant[M, S]) bool {
		if c, is := any(v.spec).(able[M]); is && v.name == name {
			return c.can(m, &q.Target)
		}
		return v.name == name && fits(v)
	})
	if v == nil && q.Variant == "" {
		v = first(func(v *variant[M, S]) bool { return good(&v.spec) && fits(v) })
	}
	if v == nil && q.Variant == "" {
		v = first(fits)
	}
	if v != nil {
		return v.spec, v.name, nil
	}
	var none S
	if q.Variant == "" {
		return none, "", unsupported("no variant that the target can run for %+v", m)
	}
	return none, "", unsupported("no variant %s for %+v", q.Variant, m)
}

// able is a specialisation that can be asked for by name where it would not be
// chosen.
type able[M any] interface{ can(m M, t *Target) bool }

func (q *request) tuned() string {
	if q.Tuning == nil {
		return ""
	}
	return q.Tuning[Key(&q.Request)]
}
