package devicetest

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// deviations are the differences from the rules of package op that a device is allowed.
// The zero value is for a device that follows these rules exactly.
//
// WGSL allows deviations in the section "Floating Point Evaluation" of its
// specification (W3C Candidate Recommendation Draft, 2026); each field names
// the passage. A device that deviates less is tested against tighter deviations.
type deviations struct {
	// flushes means that subnormal numbers may become 0 in operands, in results and in intermediate results
	// ("Differences from IEEE-754": "any inputs or outputs of operations listed in Floating Point Accuracy may
	// be flushed to zero"). Then a result that belongs to operands with zeros in place of subnormal numbers is
	// right too.
	flushes bool
	// slack is an additional absolute error that a result may have, whatever its size.
	slack float64
	// quotient is the additional error, in units in the last place, of a result that
	// contains a quotient or a root ("Accuracy of Concrete Floating Point
	// Expressions": x/y within 2.5 units for |y| from 2^-126 to 2^126, so that beyond
	// 2^126 nothing is promised; "… Builtin Functions": inverseSqrt within 2 units,
	// sqrt as 1/inverseSqrt, which is more than is granted here).
	quotient float64
	// rounding is a factor of the error bound of a result; 0 means 1. Sums and
	// products are "correctly rounded" in WGSL, which is to either neighbour, up to a
	// unit and not half a one ("Floating Point Accuracy"; "no rounding mode is
	// specified"), and compilers may take them in another order ("Reassociation and
	// Fusion"). This would allow a factor of 2, but no tested device needs that much.
	rounding float64
	// finite means that compilers may assume that there are no infinities and NaNs ("implementations may assume
	// that overflow, infinities, and NaNs are not present"). Then they may replace x/x by 1 and √x·√x by x.
	finite bool
}

// whatWGSLAllows has the deviations of an unknown device that follows the WGSL specification. The tests
// determine at run time whether the device flushes subnormal numbers.
var whatWGSLAllows = deviations{slack: rounded, quotient: 2.5, rounding: 1.5, finite: true}

// better has the deviations of devices that deviate less, by a part of their names.
var better = []struct {
	name string
	deviations
}{
	// These devices compute quotients and roots with the processor's instructions. Mesa's compiler replaces √x-√x
	// by 0; SwiftShader flushes subnormal numbers.
	{"llvmpipe", deviations{slack: rounded, finite: true}},
	{"SwiftShader", deviations{flushes: true, slack: vanishing, finite: true}},
}

const (
	// vanishing bounds the error of a result if a subnormal number is replaced by 0: each operation of the
	// catalogue multiplies it by a smaller factor.
	vanishing = 0x1p-118
	// rounded is twice the smallest subnormal number. WGSL allows an fma that rounds the product ("Accuracy of
	// Concrete Floating Point Builtin Functions": as x*y+z). For such devices the WGSL text adds the rounding
	// error of the product, but the rounding error of a subnormal product is not representable.
	rounded = 0x1p-148
)

// deviationsOf returns the deviations of dev.
func deviationsOf(ctx context.Context, dev *device.Device) deviations {
	if dev.Info().Kind != device.WebGPU {
		return deviations{}
	}
	for _, b := range better {
		if strings.Contains(dev.Info().Name, b.name) {
			return b.deviations
		}
	}
	l := whatWGSLAllows
	x := []float32{0x1p-130}
	if dev.Scale(ctx, x, x, 1.5) == nil && x[0] == 0 {
		l.flushes, l.slack = true, vanishing
	}
	return l
}

// allowed holds the additional results of a case that a device with deviations may give.
type allowed struct {
	deviations
	results [][]*op.Array // alternative results
	units   float64       // additional error of each result, in units in the last place
}

// allows returns the results that a device with such deviations may give for the case.
func (c *Case) allows(l deviations) (allowed, error) {
	f := allowed{deviations: l, units: c.units(l)}
	if !l.flushes {
		return f, nil
	}
	without := []func(v float64) float64{func(v float64) float64 {
		if math.Abs(v) < 0x1p-126 {
			return math.Copysign(0, v)
		}
		return v
	}}
	if f.units > 0 {
		// The reciprocal of a number beyond 2^126 is subnormal.
		without = append(without, func(v float64) float64 {
			if math.Abs(v) > 0x1p126 {
				return math.Inf(int(math.Copysign(1, v)))
			}
			return without[0](v)
		})
	}
	for _, remove := range without {
		k := *c
		k.In = append([]Tensor(nil), c.In...)
		for i := range k.In {
			x := &k.In[i]
			if x.Type != op.F32 && x.Type != op.BF16 {
				continue
			}
			x.Data = append([]float64(nil), x.Data...)
			for at, v := range x.Data {
				x.Data[at] = remove(v)
			}
		}
		want, _, err := k.Reference()
		if err != nil {
			return f, err
		}
		f.results = append(f.results, want)
	}
	if c.Op == op.FloorDivide {
		want, err := c.uncorrected(f.units)
		if err != nil {
			return f, err
		}
		f.results = append(f.results, want)
	}
	return f, nil
}

// uncorrected returns the results of floor_divide if the device flushes remainders. A kernel corrects
// the floor of a quotient, which has an error of so many units in the last place and half a unit from
// rounding, by the sign of the remainder, unless that is a subnormal number.
func (c *Case) uncorrected(units float64) ([]*op.Array, error) {
	want, _, err := c.Reference()
	if err != nil {
		return nil, err
	}
	var at [2]op.Layout
	for i := range at {
		if at[i], err = op.Over(c.In[i].Shape, want[0].Shape); err != nil {
			return nil, err
		}
	}
	for i, exact := range want[0].Data {
		j, _ := at[0].At(i)
		k, _ := at[1].At(i)
		x, y := c.In[0].Data[j], c.In[1].Data[k]
		v := x / y
		q := math.Floor(v + math.Abs(v)*(units+0.5)*0x1p-23)
		if r := math.Abs(math.FMA(-q, y, x)); q != exact && 0 < r && r < 0x1p-126 {
			want[0].Data[i] = q
		}
	}
	return want, nil
}

// units returns the additional error, in units in the last place, of the results of the case.
func (c *Case) units(l deviations) float64 {
	if l.quotient > 0 && c.divides() {
		return l.quotient
	}
	return 0
}

// divides reports whether the operation is elementwise and its expression has a quotient or a root.
func (c *Case) divides() bool {
	types := make([]op.DType, len(c.In))
	for i := range c.In {
		types[i] = c.In[i].Type
	}
	a := c.Attrs()
	e, err := irhook.Expression(c.Op, &a, types)
	if err != nil {
		return false
	}
	list, _ := ir.Flatten(e)
	return slices.ContainsFunc(list, func(n *ir.Node) bool {
		return n.Type == ir.F32 && (n.Code == ir.Div || n.Code == ir.Sqrt || n.Code == ir.Rsqrt || n.Code == ir.Recip)
	})
}

// allows reports whether got is an allowed value of element i of result k, whose reference is want.
func (f *allowed) allows(o *op.Operation, k, i int, got, want, mag float64, t op.DType) bool {
	return f.near(o, got, want, mag, t) || slices.ContainsFunc(f.results, func(also []*op.Array) bool {
		return f.near(o, got, also[k].Data[i], mag, t)
	})
}

// near reports whether a device with these deviations may give got for want.
func (f *allowed) near(o *op.Operation, got, want, mag float64, t op.DType) bool {
	if got == want || !t.Float() || t == op.F16 {
		return got == want
	}
	tol := o.Tolerance()
	times := max(f.rounding, 1)
	if t == op.F32 && times > 1 && math.Abs(want) > math.MaxFloat32 && got == math.Copysign(math.MaxFloat32, want) {
		return true // rounded toward zero
	}
	tol.ULP = max(tol.ULP, 0.5) + f.units
	// If a unit in the last place is only a few times the smallest subnormal number, the rounding errors of
	// subnormal numbers count in addition to the rounding of the result.
	off := math.Abs(got - want)
	rest := math.Copysign(max(off-min(f.slack, rounded), 0), got-want)
	return off < f.slack || tol.Check(want+rest/times, want, mag, t) == nil
}
