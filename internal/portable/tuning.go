package portable

import (
	"math/bits"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Tuning maps a [Key] to the name of the variant that was measured to be fastest on one device. A
// variant that does not suit the request is ignored.
type Tuning map[string]string

// Key returns the key of r in a [Tuning]: the operation, and the types and extents of its operands.
// It rounds extents up to powers of two, because requests of similar sizes have the same best
// variant.
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
