package emu

import (
	"fmt"
	"strings"
)

// routine is a function that is compiled as part of a kernel, or the kernel itself, which has the
// number 0.
type routine struct {
	f      *function
	number int
	err    error // the reason why it cannot run, or nil
	entry  int   // its position in the code
	arrays map[string]int

	places []int // offsets of the function's variables in its frame
	frame  int   // bytes of the frame
	align  int   // alignment of the frame

	planes    []int32 // planes of registers; each call has its own copy
	preds     []int32
	addresses []frameAddress
	calls     []*routine // functions that it calls directly
}

// frameAddress is a plane that holds the address of a variable in the frame.
type frameAddress struct {
	plane int32
	place int
}

// frameGap separates the addressable variables of a frame from the memory after it.
const frameGap = 64

// layFrame lays out the frame of a function: its results and parameters, the arguments of its
// calls, and its arrays.
func layFrame(f *function, number int) *routine {
	rt := &routine{f: f, number: number, align: 16}
	for _, v := range f.vars {
		rt.align = max(rt.align, v.align)
		rt.frame = (rt.frame + v.align - 1) &^ (v.align - 1)
		rt.places = append(rt.places, rt.frame)
		if rt.frame += v.bytes; v.space == spaceLocal {
			rt.frame += frameGap
		}
	}
	return rt
}

// parameter returns the number of a parameter among the variables of the function.
func (rt *routine) parameter(i int) int { return len(rt.f.results) + i }

// broken returns the error of the routine, or of a routine that it calls by name.
func (rt *routine) broken(seen map[*routine]bool) error {
	todo := []*routine{rt}
	for len(todo) > 0 {
		rt := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[rt] {
			continue
		}
		seen[rt] = true
		if rt.err != nil {
			return rt.err
		}
		todo = append(todo, rt.calls...)
	}
	return nil
}

// The addresses of functions are outside of all memory.
const (
	functionBase = windowFunction << windowShift
	functionStep = 16
)

func (f *function) address() uint64 { return functionBase + uint64(f.index+1)*functionStep }

// site is a call instruction.
type site struct {
	to      *routine // nil for an indirect call
	results []int    // variables of the caller for the results
	args    []int
	byIndex []*routine // routines, indexed by the numbers of their functions
}

// isCall reports whether a statement is a call.
func isCall(name string) bool { return name == "call" || name == "call.uni" }

// callee returns the operand of a call that names the callee.
func (st *statement) callee() *operand {
	for i := range st.args {
		if i < 2 && st.args[i].kind != operandGroup {
			return &st.args[i]
		}
	}
	return nil
}

func (st *statement) callsIndirectly() bool {
	if !isCall(st.name) {
		return false
	}
	o := st.callee()
	return o != nil && o.kind == operandRegister
}

// call executes the instruction call. Its operands are the results, the function and the arguments.
// An indirect call also has a prototype, which is ignored because the function has the same
// declaration.
func (c *compiler) call(in *inst) {
	if !isCall(c.st.name) {
		c.fail(unsupported)
	}
	args, s := c.args(1, 4), &site{}
	if args[0].kind == operandGroup {
		s.results, args = c.passed(&args[0]), args[1:]
	}
	if len(args) == 0 {
		c.fail("a call needs the name of a function, or a register with the address of one")
	}
	target := &args[0]
	if args = args[1:]; len(args) > 0 && args[0].kind == operandGroup {
		s.args, args = c.passed(&args[0]), args[1:]
	}
	if len(args) > 1 || len(args) == 1 && args[0].kind != operandName {
		c.fail("a call takes only lists of results and parameters, and a prototype")
	}
	in.kind, in.x, in.run = kindJump, &extra{site: s}, (*warp).call
	if target.kind == operandRegister {
		in.a = c.value(target, 8)
		s.byIndex = make([]*routine, len(c.src.functions))
		for _, rt := range c.k.routines[1:] {
			s.byIndex[rt.f.index] = rt
		}
		return
	}
	f := c.src.called[target.name]
	if target.kind != operandName || f == nil || f.kernel {
		c.fail("no function is called %s", target.name)
	}
	s.to = c.routines[f]
	c.rt.calls = append(c.rt.calls, s.to)
	if why := s.fits(c.rt, s.to); why != "" {
		c.fail("%s", why)
	}
}

// passed returns the variables that a call passes or receives.
func (c *compiler) passed(o *operand) (vs []int) {
	for i := range o.list {
		if o.list[i].kind != operandVariable || c.f.vars[o.list[i].reg].space != spaceParam {
			c.fail("passing variables that are not in .param is %s", unsupported)
		}
		vs = append(vs, o.list[i].reg)
	}
	return vs
}

// passed returns a result or a parameter. Results and parameters are numbered together.
func (f *function) passed(i int) *variable {
	if i < len(f.results) {
		return &f.results[i]
	}
	return &f.params[i-len(f.results)]
}

// fits returns an error message for a call of to by from, or "".
func (s *site) fits(from, to *routine) string {
	f := to.f
	if len(s.args) != len(f.params) || len(s.results) != len(f.results) {
		return fmt.Sprintf("function %s has %d parameters and %d results, but the call has %d and %d", f.name, len(f.params), len(f.results), len(s.args), len(s.results))
	}
	for i, v := range append(append([]int(nil), s.results...), s.args...) {
		if want := f.passed(i); from.f.vars[v].bytes != want.bytes {
			return fmt.Sprintf("%s of function %s has %d bytes, but the variable that the call passes has %d", want.name, f.name, want.bytes, from.f.vars[v].bytes)
		}
	}
	return ""
}

// ret executes ret: it ends the thread in a kernel, and the call in a function.
func (c *compiler) ret(in *inst) {
	c.args(0, 0)
	in.kind = kindReturn
	if strings.HasPrefix(c.st.name, "ret") && !c.f.kernel {
		in.kind, in.run = kindJump, (*warp).leave
	}
}

// jump compiles brx.idx, which jumps to the label with the index in an operand.
func (c *compiler) jump(in *inst) {
	if c.st.name != "brx.idx" && c.st.name != "brx.idx.uni" {
		c.fail(unsupported)
	}
	args := c.args(2, 2)
	in.a = c.value(&args[0], 4)
	list, ok := c.targets(&args[1])
	if !ok {
		c.fail("%s is not the name of a list of labels", args[1].name)
	}
	places := make([]int, len(list))
	for i := range list {
		places[i] = c.label(&list[i])
	}
	in.kind, in.run = kindJump, func(w *warp, in *inst, mask uint32) bool {
		w.need(in, in.a, mask, "the index of the label was not computed in this thread")
		for m := mask; m != 0; m &= m - 1 {
			i := w.regs[in.a][lowest(m)]
			if i >= uint64(len(places)) {
				w.stop(BadOperand, w.pcOf(in), lowest(m), fmt.Sprintf("the index of the label is %d, but the list has %d labels", i, len(places)))
				return false
			}
			w.send(places[i], lowest(m), w.depth)
		}
		return true
	}
}

// targets returns the labels of the list with the given name.
func (c *compiler) targets(o *operand) ([]operand, bool) {
	for _, inner := range o.list {
		if list, ok := c.f.targets[inner.name]; ok {
			return list, true
		}
	}
	list, ok := c.f.targets[o.name]
	return list, ok && o.kind == operandName
}

// frameAddress returns the plane that holds the address of a variable of the function.
func (c *compiler) frameAddress(v int) int32 {
	p, ok := c.framed[v]
	if !ok {
		p = int32(c.k.planes)
		c.k.planes++
		c.framed[v] = p
	}
	return p
}
