package kernels

import (
	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// A Link is one operation of a chain: an expression of operands and results of earlier links.
type Link struct {
	Expression *wasm.Expression
	Args       []int // for each operand, the number of an operand of the chain; link i has the number len(single)+i
	Param      int   // the index of its first parameter among the floats of the call
}

// Chain returns a module that runs a chain of elementwise operations in one pass. A call has the addresses of the
// results, one for each of out, then those of the operands, and the number of elements. A single operand is one number
// for all elements.
func Chain(single []bool, links []Link, out []int) []byte {
	m := &wasm.Module{}
	c := &chain{kernel: kernel{m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32}})}, links: links, out: out}
	for i := range out {
		c.dst = append(c.dst, c.pointer(i))
	}
	for i, one := range single {
		c.values = append(c.values, c.Local(wasm.V128))
		p := c.pointer(len(out) + i)
		if !one {
			c.src = append(c.src, p)
			c.moving = append(c.moving, c.values[i])
			continue
		}
		c.Get(p)
		c.Load(wasm.V128Load32Splat, 0)
		c.Set(c.values[i])
	}
	codes := 0
	for _, l := range links {
		floats := c.Local(wasm.I32)
		c.Get(c.Param(0))
		c.Int(int32(frame.Floats + 4*l.Param))
		c.Op(wasm.I32Add)
		c.Set(floats)
		c.bodies = append(c.bodies, l.Expression.Begin(c.Func, floats))
		c.values = append(c.values, c.Local(wasm.V128))
		codes += l.Expression.Len()
	}
	n := c.int(0)
	if codes <= shortBody {
		c.While(n, 16, func() { c.vectors(n, 4) })
	}
	c.While(n, 4, func() { c.vectors(n, 1) })
	c.Get(n)
	c.If(func() {
		for i, p := range c.src {
			loadPart(c.Func, c.moving[i], p, n, func() { c.Splat(0) })
		}
		c.compute()
		for i, v := range out {
			storePart(c.Func, c.values[v], c.dst[i], n)
		}
	})
	m.Export("run", c.Func)
	return m.Bytes()
}

// chain is a kernel of a chain that is being written.
type chain struct {
	kernel
	links  []Link
	bodies []*wasm.Body // the bodies of links
	out    []int
	values []wasm.Local // vectors of operands, then of links
	dst    []wasm.Local // addresses
	src    []wasm.Local // addresses of the operands that are not single
	moving []wasm.Local // the vectors of these operands
}

// vectors computes count vectors, the last one first as in [Set.Map], and advances the addresses.
func (c *chain) vectors(n wasm.Local, count int) {
	for i := count - 1; i >= 0; i-- {
		for j, p := range c.src {
			c.Get(p)
			c.Load(wasm.V128Load, 16*i)
			c.Set(c.moving[j])
		}
		c.compute()
		for j, v := range c.out {
			c.Get(c.dst[j])
			c.Get(c.values[v])
			c.Store(wasm.V128Store, 16*i)
		}
	}
	for _, ps := range [][]wasm.Local{c.dst, c.src} {
		for _, p := range ps {
			c.Add(p, 16*count)
		}
	}
	c.Add(n, -4*count)
}

// compute computes the values of all links.
func (c *chain) compute() {
	first := len(c.values) - len(c.links)
	for i, l := range c.links {
		c.bodies[i].EmitWord(func(operand int) { c.Get(c.values[l.Args[operand]]) })
		c.Set(c.values[first+i])
	}
}
