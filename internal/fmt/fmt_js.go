package fmt

import "io"

// Errorf returns an error with the text of [Sprintf], which wraps the operands of %w.
func Errorf(format string, args ...any) error { return compactError(format, args...) }

// Sprintf returns the text of the operands by the format. It is not inlined, which makes pages smaller.
//
//go:noinline
func Sprintf(format string, args ...any) string { return string(compact(format, args...)) }

// Sprint returns the operands as %v, separated by spaces where neither neighbour is a string.
func Sprint(args ...any) string { return string(compactList(args)) }

// Fprintf writes the text of [Sprintf] to w.
//
//go:noinline
func Fprintf(w io.Writer, format string, args ...any) { w.Write(compact(format, args...)) }

// Fprint writes the text of [Sprint] to w.
func Fprint(w io.Writer, args ...any) { w.Write(compactList(args)) }
