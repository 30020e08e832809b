// Package devicehook lets the packages of this module reach what the types of package device
// hold. These are no exported methods, because their arguments and results are of internal
// types, which users cannot name. Package device sets the variables when it is initialised, and
// Launch and Fits when it makes the first kernel; each takes or returns, as any, the type of package device that its comment names.
package devicehook

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

var (
	// Engine returns the engine of a *device.Device. That of the zero Device returns
	// ErrNoDevice.
	Engine func(device any) *engine.Engine

	// Memory returns the memory of a *device.Buffer, nil for the zero Buffer.
	Memory func(buffer any) *engine.Buffer

	// Launch returns what a node of a graph runs for a *device.Kernel, and its block of
	// parameters.
	Launch func(k any, grid kernel.Size, params any) (*graph.Kernel, []byte, error)

	// Fits checks that n elements of type t can be bound to buffer i of a kernel.
	Fits func(p *ir.Program, i int, t op.DType, n int) error

	// NewPending returns a *device.Pending that is done when c is. explain completes its
	// errors; nil leaves them as they are.
	NewPending func(c *driver.Completion, explain func(error) error) any
)
