package op

import "math"

// OptionOf returns the option struct of a call that takes at most one, as a variadic argument. If
// there is none, it returns the zero value, which means the defaults. If there are several, it returns
// an ErrShape.
func OptionOf[T any](opts []T) (o T, err error) {
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		err = tooMany(len(opts))
	}
	return o, err
}

// AttrsOf returns the parameters of the option struct that [OptionOf] finds. If opts holds
// several, [Attrs.Err] of the result returns the error; code that takes Attrs from a caller
// must call it.
func AttrsOf[T interface{ Attrs() Attrs }](opts []T) Attrs {
	o, err := OptionOf(opts)
	if err != nil {
		return Attrs{given: len(opts)}
	}
	return o.Attrs()
}

// Err returns an error for parameters that are invalid for every operation, or nil.
func (a *Attrs) Err() error {
	if a.given == 0 {
		return nil
	}
	return tooMany(a.given)
}

// Zero, in a float field of an option struct, means the number 0 if a field of 0 means the default:
//
//	err = dev.LeakyRelu(ctx, dst, x, op.LeakyReluOpts{Slope: op.Zero})
const Zero float32 = math.SmallestNonzeroFloat32

// written encodes the field v of an option struct for Attrs: [Zero] becomes -0, because 0 means the
// default there too, as in the zero Attrs.
func written(v, otherwise float32) float32 {
	switch v {
	case 0:
		return otherwise
	case Zero:
		return float32(math.Copysign(0, -1))
	}
	return v
}

// read returns float parameter i of Attrs; 0 means the given default.
func (a *Attrs) read(i int, otherwise float32) float32 {
	switch v := a.Float(i); {
	case a.F[i] == 0:
		return otherwise
	case v == 0:
		return 0
	default:
		return v
	}
}

// field decodes float parameter i of Attrs to the value of a field of an option struct, which
// writes the number 0 as [Zero].
func (a *Attrs) field(i int, otherwise float32) float32 {
	v := a.read(i, otherwise)
	if v == 0 && a.F[i] != 0 {
		return Zero
	}
	return v
}

func tooMany(n int) error { return mismatch("%d option structs: at most one is accepted", n) }
