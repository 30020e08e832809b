// Package errtree finds errors by type without the reflection of errors.As, which pages would load.
package errtree

// As returns the first error of type T in the tree of err, in the order of errors.As. It does not call
// methods As.
func As[T error](err error) (found T, ok bool) {
	if e, ok := err.(T); ok {
		return e, true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return As[T](e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			if found, ok := As[T](x); ok {
				return found, true
			}
		}
	}
	return found, false
}
