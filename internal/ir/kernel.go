package ir

import "reflect"

// Kernel is the part of a kernel.Kernel that other packages of this module use. Package kernel
// embeds it under a name that is not exported, so that godoc does not list its methods: users
// cannot name their types.
type Kernel struct {
	Programs
	// Text, if not nil, completes the program of a text that a user wrote.
	Text *KernelText
}

// Programs makes the program of a kernel.
type Programs interface {
	// Program returns the program. Callers must not change it.
	Program() (*Program, error)
	// Positions returns the program with the position of every instruction in the author's source,
	// if known.
	Positions() (*Program, error)
}

// Fixed is a program without a build function, or its error. It implements [Programs].
type Fixed struct {
	P   *Program
	Err error
}

// Program implements [Programs].
func (f Fixed) Program() (*Program, error) { return f.P, f.Err }

// Positions implements [Programs].
func (f Fixed) Positions() (*Program, error) { return f.P, f.Err }

// KernelText describes a text that a user wrote, beyond its [Program].
type KernelText struct {
	// Params appends the block of parameters.
	Params func(dst []byte, params any) ([]byte, error)
	// Elements returns an error if values of a Go type cannot be the elements of buffer i without conversion.
	Elements func(i int, t reflect.Type) error
	// Folded is the reason why the text cannot run over a folded grid, or "" if it can.
	Folded string
}
