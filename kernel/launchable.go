package kernel

import (
	"reflect"

	"github.com/rayo-go/rayo/internal/ir"
)

// Source is what Device.Kernel of package device makes ready: a [Kernel], for
// every device, or a text in the language of one kind of device, as wgsl.Source.
type Source interface {
	// Launchable returns what devices need.
	Launchable() (Launchable, error)
}

// Launchable is a [Source] as devices take it.
type Launchable struct {
	// Program is what runs. Nobody may change it.
	Program *ir.Program
	// Params appends the block of parameters.
	Params func(dst []byte, params any) ([]byte, error)
	// Grid returns why the program cannot be launched over a grid, or nil.
	Grid func(Size) error
	// Elements, if not nil, returns an error if values of a Go type cannot be the elements of
	// buffer i without conversion.
	Elements func(i int, t reflect.Type) error
	// Positions, if not nil, returns the program with positions in the author's
	// Go source.
	Positions func() (*ir.Program, error)
}

// Launchable implements [Source].
func (k *Kernel) Launchable() (Launchable, error) {
	p, err := k.Program()
	return Launchable{Program: p, Params: k.AppendParams, Grid: k.CheckGrid, Positions: k.Positions}, err
}
