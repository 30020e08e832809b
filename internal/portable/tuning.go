package portable

import (
	"fmt"
	"math/bits"
	"strings"
)

// Tuning names variants that were measured to be fast on one device, by [Key].
// It is a preference: a variant that does not fit is passed over.
type Tuning map[string]string

// Key returns the text under which the best variant for r is kept: the
// operation, and types and extents of its operands, these rounded up to powers
// of two, as neighbours in size want the same variant.
func Key(r *Request) string {
	var b strings.Builder
	if r.Op == nil {
		b.WriteString("elementwise")
	} else {
		b.WriteString(r.Op.Key())
		for _, v := range r.Attrs.I {
			fmt.Fprintf(&b, ",%d", v)
		}
	}
	arrays := r.In
	if r.Op == nil {
		arrays = r.Out
	}
	for _, a := range arrays {
		fmt.Fprintf(&b, " %v", a.Type)
		for i, d := range a.Shape {
			fmt.Fprintf(&b, "%c%d", "[ "[min(i, 1)], 1<<bits.Len(uint(max(d, 1)-1)))
		}
		if len(a.Shape) > 0 {
			b.WriteByte(']')
		}
	}
	return b.String()
}
