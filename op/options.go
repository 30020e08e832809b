package op

// OptionOf returns the option struct of a call that takes at most one as its
// variadic argument, the zero value, which stands for the defaults, if there
// is none, and an ErrShape if there are several.
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

// AttrsOf returns the parameters that [OptionOf] finds. If there are several
// option structs [Attrs.Err] says so, which whoever takes Attrs from a caller
// asks.
func AttrsOf[T interface{ Attrs() Attrs }](opts []T) Attrs {
	o, err := OptionOf(opts)
	if err != nil {
		return Attrs{given: len(opts)}
	}
	return o.Attrs()
}

// Err returns what is wrong with the parameters whatever the operation, or nil.
func (a *Attrs) Err() error {
	if a.given == 0 {
		return nil
	}
	return tooMany(a.given)
}

func tooMany(n int) error { return mismatch("%d option structs, not one", n) }
