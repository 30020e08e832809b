package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// statement prints an instruction that is a statement.
func (w *printer) statement(in *ir.Instr, v ir.Value) {
	switch in.Code {
	case ir.Else, ir.End:
		w.indent--
	case ir.For, ir.Loop:
		if in.Flag != ir.Bounded {
			w.iterations(v)
		}
	case ir.Barrier:
		w.barrier(v)
		return
	}
	w.begin(w.indent)
	switch in.Code {
	case ir.Store:
		w.assign(w.buffers[in.Imm], in)
		w.finish(v, buffer, in.Imm)
	case ir.StoreShared:
		w.assign(w.arrays[in.Imm], in)
		w.finish(v, array, in.Imm)
	case ir.StoreVar:
		if w.scopes[in.Imm].first == v {
			w.s("var ")
		}
		w.s(w.vars[in.Imm])
		w.s(" = ")
		w.expr(in.Args[0], anything)
		w.finish(v, variable, in.Imm)
	case ir.AtomicOp:
		w.atomic(in, v, w.buffers[in.Imm])
		w.finish(v, buffer, in.Imm)
	case ir.AtomicOpShared:
		w.atomic(in, v, w.arrays[in.Imm])
		w.finish(v, array, in.Imm)
	case ir.UniformLoad:
		w.result(v)
		w.s("workgroupUniformLoad(&")
		w.element(w.arrays[in.Imm], in.Args[0])
		w.c(')')
		w.values[v].how, w.values[v].weight = asName, 1
		w.finish(v, memory, 0)
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupXor, ir.SubgroupFirst, ir.SubgroupShuffle:
		w.result(v)
		w.subgroup(in)
		w.values[v].how, w.values[v].weight = asName, 1
		w.finish(v, nothing, 0)
	default:
		w.controlFlow(in, v)
	}
}

// controlFlow prints the beginning or the end of a block, or a jump.
func (w *printer) controlFlow(in *ir.Instr, v ir.Value) {
	switch in.Code {
	case ir.If:
		w.s("if ")
		w.expr(in.Args[0], anything)
		w.s(" {")
		w.flush(all, 0)
		w.end(v)
		w.indent++
	case ir.Else:
		w.s("} else {")
		w.end(v)
		w.indent++
	case ir.For:
		w.forLoop(in, v)
	case ir.Loop:
		w.s("loop {")
		w.flush(all, 0)
		w.end(v)
		w.indent++
		w.depth++
		if in.Flag != ir.Bounded {
			w.budget(v)
		}
	case ir.End:
		if w.p.Code[in.Imm].Code != ir.If {
			w.depth--
		}
		w.c('}')
		w.end(v)
	case ir.Break:
		w.s("break;")
		w.end(v)
	case ir.Continue:
		w.s("continue;")
		w.end(v)
	case ir.Return:
		w.s("return;")
		w.end(v)
	}
}

// finish ends a statement with the given effect.
func (w *printer) finish(v ir.Value, e effect, which uint32) {
	w.c(';')
	w.flush(e, which)
	w.end(v)
}

// element prints name[index].
func (w *printer) element(name string, index ir.Value) {
	w.s(name)
	w.c('[')
	w.expr(index, operand)
	w.c(']')
}

// assign prints name[Args[0]] = Args[1].
func (w *printer) assign(name string, in *ir.Instr) {
	w.element(name, in.Args[0])
	w.s(" = ")
	w.expr(in.Args[1], anything)
}

// result prints the beginning of the declaration of v.
func (w *printer) result(v ir.Value) {
	w.s("let v")
	w.u(uint32(v))
	w.s(" = ")
}

var atomicNames = [...]string{
	ir.AtomicLoad: "atomicLoad", ir.AtomicStore: "atomicStore", ir.AtomicAdd: "atomicAdd", ir.AtomicSub: "atomicSub",
	ir.AtomicMin: "atomicMin", ir.AtomicMax: "atomicMax", ir.AtomicAnd: "atomicAnd", ir.AtomicOr: "atomicOr",
	ir.AtomicXor: "atomicXor", ir.AtomicExchange: "atomicExchange",
}

// atomic prints an atomic operation on an element of the array with the given name.
func (w *printer) atomic(in *ir.Instr, v ir.Value, name string) {
	if w.values[v].uses > 0 {
		w.result(v)
		w.values[v].how, w.values[v].weight = asName, 1
	}
	if in.Flag == ir.AtomicCompareExchange {
		w.s(w.exchange(in, name))
		w.c('(')
		w.expr(in.Args[0], operand)
		w.s(", ")
	} else {
		w.s(atomicNames[in.Flag])
		w.s("(&")
		w.element(name, in.Args[0])
	}
	_, n := in.Operands()
	for k := 1; k < n; k++ {
		if k > 1 || in.Flag != ir.AtomicCompareExchange {
			w.s(", ")
		}
		w.expr(in.Args[k], operand)
	}
	w.c(')')
}

// exchange returns the name of the function that compares and exchanges an element. The language
// has only an operation that may fail spuriously.
func (w *printer) exchange(in *ir.Instr, name string) string {
	shared := in.Code == ir.AtomicOpShared
	for i := range w.exchanges {
		if e := &w.exchanges[i]; e.shared == shared && e.index == in.Imm {
			return e.name
		}
	}
	e := exchange{shared, in.Imm, w.identify("exchange_"+name, "exchange")}
	w.exchanges = append(w.exchanges, e)
	return e.name
}

// barrier prints a barrier for the workgroup. It covers the kinds of memory that the program can
// see changes of.
func (w *printer) barrier(v ir.Value) {
	storage := false
	for i := range w.p.Bindings {
		storage = storage || w.p.Bindings[i].Access >= ir.ReadWrite
	}
	w.begin(w.indent)
	w.flush(memory, 0)
	if storage {
		w.s("storageBarrier();")
	}
	if !storage || len(w.p.Shared) > 0 {
		if storage {
			w.end(v)
			w.begin(w.indent)
		}
		w.s("workgroupBarrier();")
	}
	w.end(v)
}

// iterations declares the iteration counter of a loop that may not end.
func (w *printer) iterations(v ir.Value) {
	w.begin(w.indent)
	w.flush(all, 0)
	w.s("var turns")
	w.u(uint32(v))
	w.s(" = 0u;")
	w.end(v)
}

// budget prints code that ends the loop after too many iterations.
func (w *printer) budget(v ir.Value) {
	w.begin(w.indent)
	w.s("if turns")
	w.u(uint32(v))
	w.s(" == ")
	w.u(w.p.Budget)
	w.s("u { break; }")
	w.end(v)
	w.begin(w.indent)
	w.s("turns")
	w.u(uint32(v))
	w.s("++;")
	w.end(v)
}

// forLoop prints the head of a counted loop. The loop must end if counter + step overflows; this
// needs no code if the bound is known to leave room.
func (w *printer) forLoop(in *ir.Instr, v ir.Value) {
	x := &w.values[v]
	x.how, x.weight = asName, 1
	if w.depth < loopNames {
		x.name = uint8(1 + w.depth)
	}
	lo, hi := in.Args[0], in.Args[1]
	w.s("for (var ")
	w.name(v)
	w.s(" = ")
	w.expr(lo, anything)
	w.s("; ")
	w.name(v)
	w.s(" < ")
	w.expr(hi, arithmeti)
	w.s("; ")
	w.name(v)
	w.increment(in, v)
	w.s(") {")
	w.flush(all, 0)
	w.end(v)
	w.indent++
	w.depth++
	if in.Flag != ir.Bounded {
		w.budget(v)
	}
}

// increment prints the step of a counted loop, after the name of the counter.
func (w *printer) increment(in *ir.Instr, v ir.Value) {
	hi, step := in.Args[1], in.Args[2]
	s := &w.p.Code[step]
	switch {
	case s.Code == ir.Const && s.Imm == 1 && w.values[step].how != asName:
		w.s("++")
	case w.incrementFits(hi, step):
		w.s(" += ")
		w.expr(step, anything)
	case in.Type == ir.U32:
		w.s(" += min(")
		w.expr(step, operand)
		w.s(", ")
		w.expr(hi, summand)
		w.s(" - ")
		w.name(v)
		w.c(')')
	case s.Code == ir.Const && int32(s.Imm) > 0:
		w.s(" += i32(min(u32(")
		w.expr(step, operand)
		w.s("), u32(")
		w.expr(hi, summand)
		w.s(" - ")
		w.name(v)
		w.s(")))")
	default:
		// The step may be negative. The counter has overflowed if the sum is below the counter and
		// the step is not negative, or if the sum is above the counter and the step is negative.
		w.s(" = select(")
		w.expr(hi, operand)
		w.s(", ")
		w.name(v)
		w.s(" + ")
		w.expr(step, summand)
		w.s(", (")
		w.name(v)
		w.s(" + ")
		w.expr(step, summand)
		w.s(" < ")
		w.name(v)
		w.s(") == (")
		w.expr(step, arithmeti)
		w.s(" < 0i))")
	}
}

// incrementFits reports whether a counter below hi can be increased by step without overflow.
func (w *printer) incrementFits(hi, step ir.Value) bool {
	s := &w.p.Code[step]
	if s.Code != ir.Const {
		return false
	}
	most := uint64(1<<32 - 1)
	if s.Type == ir.I32 {
		if int32(s.Imm) <= 0 {
			return false
		}
		most = 1<<31 - 1
	}
	return w.upper(hi, 4)+uint64(s.Imm) <= most
}

// upper returns an upper bound of an integer. It follows the operands of v up to the given depth.
func (w *printer) upper(v ir.Value, depth int) uint64 {
	in := &w.p.Code[v]
	most := uint64(1<<32 - 1)
	if in.Type == ir.I32 {
		most = 1<<31 - 1
	}
	if depth == 0 {
		return most
	}
	constant := func(k int) (uint64, bool) {
		c := &w.p.Code[in.Args[k]]
		return uint64(c.Imm), c.Code == ir.Const && (c.Type == ir.U32 || int32(c.Imm) >= 0)
	}
	switch in.Code {
	case ir.Const:
		if in.Type == ir.I32 && int32(in.Imm) < 0 {
			return 0
		}
		return uint64(in.Imm)
	case ir.Len:
		return 1 << 31 // elements have at least two bytes
	case ir.BuiltIn:
		l := w.t.limits()
		if in.Flag <= ir.BuiltInLocalZ || in.Flag >= ir.BuiltInLane {
			return uint64(max(l.Invocations, 128))
		}
		return uint64(l.Grid)
	case ir.Min:
		return min(w.upper(in.Args[0], depth-1), w.upper(in.Args[1], depth-1))
	case ir.Max:
		return max(w.upper(in.Args[0], depth-1), w.upper(in.Args[1], depth-1))
	case ir.Shr:
		if n, ok := constant(1); ok {
			return w.upper(in.Args[0], depth-1) >> (n & 31)
		}
	case ir.IDiv:
		if n, ok := constant(1); ok && n > 0 {
			return w.upper(in.Args[0], depth-1) / n
		}
	case ir.IMod:
		if n, ok := constant(1); ok && n > 0 {
			return n - 1
		}
	case ir.And:
		if n, ok := constant(1); ok {
			return n
		}
	case ir.Add:
		if s := w.upper(in.Args[0], depth-1) + w.upper(in.Args[1], depth-1); s <= most && in.Type == ir.U32 {
			return s
		}
	case ir.Mul:
		x, y := w.upper(in.Args[0], depth-1), w.upper(in.Args[1], depth-1)
		if p := x * y; in.Type == ir.U32 && p <= most && (x|y) <= 1<<32-1 {
			return p
		}
	}
	return most
}
