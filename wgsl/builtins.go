package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// The indices of the entry point's parameters in printer.builtIns.
const (
	useLocal = iota
	useGroup
	useGroups
	useLane
	useSubgroupSize
	useSubgroupLane
	numBuiltIns
)

var builtInWords = [numBuiltIns][3]string{
	useLocal:        {wordLocal, "local_invocation_id", "vec3u"},
	useGroup:        {wordGroup, "workgroup_id", "vec3u"},
	useGroups:       {wordGroups, "num_workgroups", "vec3u"},
	useLane:         {wordLane, "local_invocation_index", "u32"},
	useSubgroupSize: {wordSubgroupSize, "subgroup_size", "u32"},
	useSubgroupLane: {wordSubgroupLane, "subgroup_invocation_id", "u32"},
}

// subgroupSize returns the number of lanes of a subgroup, and reports whether it is known.
func (w *printer) subgroupSize() (n uint32, known bool) {
	if !w.t.has(Subgroups) {
		return 1, true
	}
	n = w.t.SubgroupSize[0]
	return n, n != 0 && n == w.t.SubgroupSize[1]
}

// literalBuiltIn reports whether the built-in value is printed as a number.
func (w *printer) literalBuiltIn(flag uint8) bool {
	switch flag {
	case ir.BuiltInSubgroupSize:
		_, known := w.subgroupSize()
		return known
	case ir.BuiltInSubgroupLane:
		return !w.t.has(Subgroups)
	}
	return false
}

func (w *printer) use(b int) {
	w.builtIns |= 1 << b
	w.s(builtInWords[b][0])
	if b >= useSubgroupSize {
		w.needs |= Subgroups
	}
}

func (w *printer) builtIn(flag uint8) {
	switch {
	case flag <= ir.BuiltInGroupsZ:
		w.use(useLocal + int(flag)/3)
		w.c('.')
		w.c("xyz"[flag%3])
	case flag == ir.BuiltInLane:
		w.use(useLane)
	case flag == ir.BuiltInSubgroupSize:
		if n, known := w.subgroupSize(); known {
			w.u(n)
			w.c('u')
			break
		}
		w.use(useSubgroupSize)
	case flag == ir.BuiltInSubgroupLane:
		if !w.t.has(Subgroups) {
			w.s("0u")
			break
		}
		w.use(useSubgroupLane)
	default: // BuiltInSubgroup
		w.use(useLane)
		if w.t.has(Subgroups) {
			w.s(" / ")
			w.builtIn(ir.BuiltInSubgroupSize)
		}
	}
}

var reduceNames = [...]string{
	ir.ReduceAdd: "subgroupAdd", ir.ReduceMin: "subgroupMin", ir.ReduceMax: "subgroupMax", ir.ReduceAnd: "subgroupAnd", ir.ReduceOr: "subgroupOr",
}

// subgroupName returns the function of an operation between the lanes of a subgroup.
func subgroupName(in *ir.Instr) string {
	switch in.Code {
	case ir.SubgroupOp:
		switch {
		case in.Type != ir.Bool || in.Width > 1:
			return reduceNames[in.Flag]
		case in.Flag == ir.ReduceOr:
			return "subgroupAny"
		}
		return "subgroupAll"
	case ir.SubgroupScan:
		return "subgroupExclusiveAdd"
	case ir.SubgroupShuffle:
		return "subgroupShuffle"
	case ir.SubgroupXor:
		return "subgroupShuffleXor"
	}
	return "subgroupBroadcastFirst"
}

// subgroup prints an operation between the lanes of a subgroup. Without subgroups, it prints the
// result for a subgroup of one lane.
func (w *printer) subgroup(in *ir.Instr) {
	a := in.Args[0]
	if !w.t.has(Subgroups) {
		if in.Code == ir.SubgroupScan {
			w.s(typeName(in.Type, in.Width))
			w.s("()")
			return
		}
		w.expr(a, anything)
		return
	}
	w.needs |= Subgroups
	// Subgroup operations have no booleans, so booleans and vectors of booleans are passed as
	// numbers.
	asNumber := in.Type == ir.Bool && (in.Code != ir.SubgroupOp || in.Width > 1)
	if asNumber {
		w.s(typeName(ir.Bool, in.Width))
		w.c('(')
	}
	w.s(subgroupName(in))
	w.c('(')
	if asNumber {
		w.s(typeName(ir.U32, in.Width))
		w.c('(')
	}
	w.expr(a, operand)
	if asNumber {
		w.c(')')
	}
	switch in.Code {
	case ir.SubgroupShuffle:
		w.s(", ")
		w.expr(in.Args[1], operand)
	case ir.SubgroupXor:
		w.s(", ")
		w.u(in.Imm)
		w.c('u')
	}
	w.c(')')
	if asNumber {
		w.c(')')
	}
}
