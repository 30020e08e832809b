//go:build !js

package device

// A group is operations that pages link together. Other programs have the kernels of all groups.
type group struct{}

func (group) use() {}

var reductions, rowwises, products, conv2Ds, attentions, orders, moves, launches, programs, everything group
