package wgsl

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Consumer is the compiler that reads the text. Compilers require different directives and have
// different defects.
type Consumer uint8

const (
	// Naga is the compiler of wgpu and wgpu-native. It always supports subgroup operations, and
	// rejects the directive that enables them.
	Naga Consumer = iota
	// Tint is the compiler of Dawn and Chromium. It requires a directive for each feature, and
	// checks that barriers are in uniform control flow.
	Tint
	// NagaGo is the translation of naga to Go, by gogpu. The text avoids functions that this
	// compiler translates incorrectly: countLeadingZeros and countTrailingZeros. It has no half
	// floats.
	NagaGo

	numConsumers
)

// String returns the name of the consumer.
func (c Consumer) String() string {
	if c < numConsumers {
		return [...]string{"naga", "tint", "naga-go"}[c]
	}
	return fmt.Sprintf("Consumer(%d)", uint8(c))
}

// Feature is an optional feature of an adapter.
type Feature uint8

const (
	// Half means half floats in storage, workgroup memory and arithmetic.
	Half Feature = 1 << iota
	// Subgroups means operations between the lanes of a subgroup. Without them a subgroup has one
	// lane, and these operations are printed as the identity.
	Subgroups
	// Dot4 means the built-in functions on four bytes packed in a word. Without them, the printer
	// uses shifts and sums.
	Dot4
)

// Limits are the limits of an adapter. A limit of 0 means the value in [DefaultLimits].
type Limits struct {
	Invocations    uint32    // lanes of a workgroup
	Size           [3]uint32 // lanes of a workgroup along each axis
	WorkgroupBytes uint32    // bytes of workgroup memory
	Bindings       int       // storage buffers of a kernel
	Grid           uint32    // workgroups along each axis of a grid
}

// DefaultLimits are the limits that every adapter guarantees.
var DefaultLimits = Limits{Invocations: 256, Size: [3]uint32{256, 256, 64}, WorkgroupBytes: 16 << 10, Bindings: 8, Grid: 65535}

// Target describes the compiler and the device for which a text is printed.
type Target struct {
	Consumer Consumer
	Features Feature
	// Limits of 0 mean the values in [DefaultLimits].
	Limits Limits
	// Unfused says that the device's fma rounds the product, as the software of Mesa and
	// SwiftShader does. Fma is then printed as a compensated sum, and MulAdd as fma. Few of the
	// functions of the text need Fma.
	Unfused bool
	// Approximate says that the device computes exp2 and 1/x within the bounds of the
	// approximate codes of package ir, and does not simplify the addition and subtraction of
	// a large number; subnormal results may be 0. The text then has shorter functions. WGSL
	// does not promise these properties, so they have to be measured.
	Approximate bool
	// Narrows says that the device can convert float32 to half floats, and that the conversion
	// rounds to nearest even, gives infinities beyond the range and keeps NaN. The text then uses
	// it to round values to half floats. WGSL does not promise these properties, so they have to be
	// measured.
	Narrows bool
	// SubgroupSize is the least and the greatest number of lanes of a subgroup, or 0 if
	// unknown. If both are equal, the size is printed as a number.
	SubgroupSize [2]uint32
}

func (t *Target) has(f Feature) bool { return t.Features&f != 0 }

// limits returns the limits, with defaults for limits of 0.
func (t *Target) limits() Limits {
	l, d := t.Limits, &DefaultLimits
	if l.Invocations == 0 {
		l.Invocations = d.Invocations
	}
	for i := range l.Size {
		if l.Size[i] == 0 {
			l.Size[i] = d.Size[i]
		}
	}
	if l.WorkgroupBytes == 0 {
		l.WorkgroupBytes = d.WorkgroupBytes
	}
	if l.Bindings == 0 {
		l.Bindings = d.Bindings
	}
	if l.Grid == 0 {
		l.Grid = d.Grid
	}
	return l
}

// allows returns an error if p needs more than t has.
func (t *Target) allows(p *ir.Program) error {
	if t.Consumer >= numConsumers {
		return fmt.Errorf("wgsl: unknown compiler %v: %w", t.Consumer, op.ErrUnsupported)
	}
	if t.Consumer == NagaGo && t.has(Half) {
		return fmt.Errorf("wgsl: compiler %v does not support half floats: %w", t.Consumer, op.ErrUnsupported)
	}
	l := t.limits()
	lanes := uint64(1)
	for i, n := range p.Local {
		if n > l.Size[i] {
			return tooMuch(p, "%d lanes along axis %d of a workgroup; the device allows at most %d", n, i, l.Size[i])
		}
		if lanes *= uint64(n); lanes > uint64(l.Invocations) {
			return tooMuch(p, "%d lanes of a workgroup; the device allows at most %d", lanes, l.Invocations)
		}
	}
	if n := len(p.Bindings); n > l.Bindings {
		return tooMuch(p, "%d buffers; the device allows at most %d", n, l.Bindings)
	}
	if n := sharedBytes(p); n > uint64(l.WorkgroupBytes) {
		return tooMuch(p, "%d bytes of workgroup memory; the device has %d", n, l.WorkgroupBytes)
	}
	return nil
}

// limitError is the error of a program that exceeds a limit of the target. It wraps both
// [op.ErrUnsupported] and [kernel.ErrLimit].
type limitError string

func (e limitError) Error() string { return string(e) }

func (e limitError) Is(target error) bool {
	return target == op.ErrUnsupported || target == kernel.ErrLimit
}

func tooMuch(p *ir.Program, format string, args ...any) error {
	return limitError(fmt.Sprintf("wgsl: %s uses "+format, append([]any{p.Name}, args...)...))
}

// sharedBytes returns the bytes of workgroup memory that p uses. The arrays follow one another,
// each aligned to the size of its elements.
func sharedBytes(p *ir.Program) uint64 {
	if p.Text != nil {
		return p.Text.SharedBytes
	}
	total := uint64(0)
	for i := range p.Shared {
		a := &p.Shared[i]
		size := uint64(elementBytes(a.Type, a.Width))
		total = (total+size-1)/size*size + size*uint64(a.Len)
	}
	return total
}

// elementBytes returns the size of a scalar or vector in memory, which is also its alignment. For
// other types it returns the size of the largest element.
func elementBytes(t ir.Type, width uint8) uint32 {
	if width != 1 && width != 2 {
		width = 4
	}
	if t == ir.F16 {
		return 2 * uint32(width)
	}
	return 4 * uint32(width)
}
