package ir

import "reflect"

// Kernel is what the packages of this module use of a kernel.Kernel. Package kernel embeds it under a name
// that is not exported: godoc then does not list its methods, because users cannot name their types.
type Kernel struct {
	Programs
	// Text, if not nil, completes the program of a user's text.
	Text *KernelText
}

// Programs makes the program of a kernel.
type Programs interface {
	// Program returns the program, which nobody may change.
	Program() (*Program, error)
	// Positions returns the program with the place of every instruction in the author's source, if it has one.
	Positions() (*Program, error)
}

// Fixed is a program, or the mistake in one, that no build function makes: it implements [Programs].
type Fixed struct {
	P   *Program
	Err error
}

// Program implements [Programs].
func (f Fixed) Program() (*Program, error) { return f.P, f.Err }

// Positions implements [Programs].
func (f Fixed) Positions() (*Program, error) { return f.P, f.Err }

// KernelText says about a user's text what its [Program] does not.
type KernelText struct {
	// Params appends the block of parameters.
	Params func(dst []byte, params any) ([]byte, error)
	// Elements returns an error if values of a Go type cannot be the elements of buffer i without conversion.
	Elements func(i int, t reflect.Type) error
	// Folded is why the text cannot run over a grid that is folded into two dimensions, "" if it can.
	Folded string
}
