//go:build (js || wazero) && !noasm

package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/wasm"
	wasmframe "github.com/rayo-go/rayo/internal/wasm/frame"
	"github.com/rayo-go/rayo/internal/wasm/host"
	"github.com/rayo-go/rayo/internal/wasm/kernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// linkChains enables chains for programs with more than one instruction.
func linkChains() { newChain = chainOf }

// chainOf implements [newChain]. Chains support only elements of 32 bits.
func chainOf(b *builder, f *driver.Fused, out []driver.Operand, loaded []int) *chain {
	p := b.p
	if simd.Active() != simd.SIMD128 || len(p.block) < 2 || len(f.In)+len(out) > wasmframe.NumPointers || f.Round != op.InvalidType {
		return nil
	}
	g := &chainGenerator{f: f}
	types := make([]op.DType, 0, len(f.In)+len(f.Body))
	for i := range f.In {
		v := b.vals[loaded[i]]
		at := b.entry(loaded[i])
		if at < 1 || p.streams[i].spelt {
			return nil
		}
		g.in, g.single = append(g.in, at), append(g.single, v.when != block)
		types = append(types, f.In[i].Type)
	}
	for i := range f.Body {
		types = append(types, f.Body[i].Type)
	}
	if slices.ContainsFunc(types, func(t op.DType) bool { return register(t) != t }) {
		return nil
	}
	for k, v := range f.Out {
		if out[k].Type != types[v] {
			return nil
		}
		g.out = append(g.out, int32(1+p.inputs+k))
	}
	g.types = types
	return &chain{generate: g.generate}
}

// chainGenerator has the data from which the kernel of a chain is generated.
type chainGenerator struct {
	f       *driver.Fused
	types   []op.DType // of operands and instructions
	in, out []int32    // entries of the table
	single  []bool     // whether each operand is a single number
	params  []float32
}

// chainHosts caches instances by the text of their modules. Programs that differ only in parameters
// and operands share an instance.
var chainHosts struct {
	sync.Mutex
	byModule map[string]*host.Host
}

// chainCodes is the maximum number of expression codes for each instruction of a chain. With longer
// expressions, calls are a small part of the time, and engines run long code for about a second
// before they optimise it. Tests raise it.
var chainCodes = 4

// mostChains is the maximum number of modules, because engines free them late.
const mostChains = 256

// generate returns the kernel. It returns nil if an instruction has no vector expression that is as
// accurate as its kernel, or if the engine or the policy of the page rejects the module.
func (g *chainGenerator) generate() chainKernel {
	links, ok := g.links()
	if !ok {
		return nil
	}
	module := kernels.Chain(g.single, links, g.f.Out)
	chainHosts.Lock()
	defer chainHosts.Unlock()
	h, known := chainHosts.byModule[string(module)]
	if !known {
		if len(chainHosts.byModule) == mostChains {
			return nil
		}
		if chainHosts.byModule == nil {
			chainHosts.byModule = make(map[string]*host.Host)
		}
		h, _ = host.Start(module) // nil if the module is rejected
		chainHosts.byModule[string(module)] = h
	}
	if h == nil {
		return nil
	}
	return func(table []*float32, n int) { g.call(h, table, n) }
}

// call computes n elements.
func (g *chainGenerator) call(h *host.Host, table []*float32, n int) {
	c := h.Begin(0)
	for i, at := range g.out {
		c.Write(i, unsafe.Pointer(table[at]), 4*n)
	}
	for i, at := range g.in {
		size := 4 * n
		if g.single[i] {
			size = 4
		}
		c.Read(len(g.out)+i, unsafe.Pointer(table[at]), size)
	}
	copy(c.Floats[:], g.params)
	c.Ints[0] = n
	c.Run()
}

// links returns the instructions for [kernels.Chain]. Each computes the same as its kernel, so that
// a chain has the same results as calls.
func (g *chainGenerator) links() ([]kernels.Link, bool) {
	links := make([]kernels.Link, 0, len(g.f.Body))
	codes := 0
	for i := range g.f.Body {
		in := &g.f.Body[i]
		types := make([]op.DType, len(in.Args))
		for j, a := range in.Args {
			types[j] = g.types[a]
		}
		e, err := irhook.Expression(in.Op, &in.Attrs, types)
		if err != nil || !sameAlone(e, in.Op.ID() >= 0) {
			return nil, false
		}
		x, err := wasm.Lower(e)
		if err != nil || ofIR(x.Type()) != in.Type {
			return nil, false
		}
		if codes += x.Len(); codes > chainCodes*len(g.f.Body) {
			return nil, false
		}
		links = append(links, kernels.Link{Expression: x, Args: in.Args, Param: len(g.params)})
		for k := range x.Params() {
			g.params = append(g.params, in.Attrs.Float(k))
		}
	}
	return links, len(g.params) <= wasmframe.NumFloats
}

// sameAlone reports whether computing the expression as a whole gives the results of kernels. It
// does not for sines and cosines, whose expressions are accurate only near 0, and for users'
// operations whose kernels round intermediate results.
func sameAlone(e *ir.Node, builtIn bool) bool {
	list, _ := ir.Flatten(e)
	return !slices.ContainsFunc(list, func(n *ir.Node) bool {
		return n.Code == ir.Sin || n.Code == ir.Cos || n.Code == ir.Fma && !builtIn
	})
}
