package ptx

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Group is a module with many instructions of the table.
type Group struct {
	Name   string
	Target Target
	Text   []byte
}

// TableGroups returns modules that together contain every instruction: one for each
// target with all its instructions, and one for each pair of minimum PTX version and
// minimum target that an instruction has, declared with that version and target.
func TableGroups() []Group {
	var groups []Group
	for _, t := range Targets() {
		// ptxas fails with many consecutive products, so they are in a separate group.
		groups = append(groups, tableGroup("all", t, func(o code) bool { return descs[o].layout != layoutWgmma }))
	}
	for _, p := range pairs() {
		groups = append(groups, tableGroup(fmt.Sprint("PTX ", p.version), p.target, p.has))
	}
	return groups
}

// pair is a minimum PTX version and a minimum target.
type pair struct {
	version uint8
	target  Target
}

func (p pair) has(o code) bool { return descs[o].version == p.version && descs[o].target == p.target }

// pairs returns the pairs of all instructions.
func pairs() (all []pair) {
	for o := range descs {
		if p := (pair{descs[o].version, descs[o].target}); !slices.Contains(all, p) && descs[o].layout != layoutNone && o > 0 {
			all = append(all, p)
		}
	}
	return all
}

// Lower is a group whose every line ptxas must reject, and the names of the instructions
// in these lines.
type Lower struct {
	Group
	Names map[string]bool
}

// LowerGroups returns the groups of pairs, declared as a version or a target below.
func LowerGroups() []Lower {
	var groups []Lower
	for _, p := range pairs() {
		g := tableGroup(fmt.Sprint("PTX ", p.version), p.target, p.has)
		l := Lower{g, map[string]bool{}}
		for o := range descs {
			if p.has(code(o)) && o > 0 {
				l.Names[descs[o].name()] = true
			}
		}
		if version := p.target.version(); p.version > version && p.version > 60 {
			before := map[uint8]uint8{62: 61, 63: 62, 65: 64, 70: 65, 71: 70, 74: 73, 77: 76, 78: 77, 80: 78, 81: 80, 84: 83}[p.version]
			v := l
			v.Names = maps.Clone(l.Names)
			// The manual requires a later version for these instructions than ptxas.
			delete(v.Names, "mbarrier.test_wait.parity.shared.b64")
			delete(v.Names, "nanosleep.u32")
			if len(v.Names) == 0 {
				continue
			}
			v.Name += " lower"
			v.Text = bytes.Replace(l.Text, append([]byte(".version "), appendVersion(nil, p.version)...), append([]byte(".version "), appendVersion(nil, before)...), 1)
			groups = append(groups, v)
		}
		i := slices.Index(Targets(), p.target)
		if i > 0 {
			t := Targets()[i-1]
			v := l
			v.Target = t
			v.Name += " target"
			v.Text = bytes.Replace(l.Text, []byte(".target "+p.target.String()), []byte(".target "+t.String()), 1)
			groups = append(groups, v)
		}
	}
	return groups
}

// tableGroup writes a module of the instructions that include names and the
// target has, with operands of the right kinds that mean nothing.
func tableGroup(name string, t Target, include func(code) bool) Group {
	m := NewModule(t)
	m.Kernel("all", func(k *Kernel) {
		k.Block(128, 1, 1)
		k.MinBlocks(1)
		GlobalParam[F32](k, "x")
		x := SharedArray[F32](k, "x", 1024)
		address, shared := k.fresh(classD), address(x).v
		k.put(opMovU64, 0, address, k.integer(0), 0, 0)
		for o := code(1); o < numCodes; o++ {
			ds := &descs[o]
			if ds.layout == layoutNone || ds.target > k.target || !include(o) {
				continue
			}
			k.tableInstruction(o, ds, address, shared)
		}
	})
	text, err := m.PTX()
	if err != nil {
		panic(err)
	}
	return Group{fmt.Sprintf("%v %s", t, name), t, []byte(text)}
}

// operandOf returns a register of the kind.
func (k *Kernel) operandOf(kd kind) val {
	if kd == kNone {
		return 0
	}
	return k.fresh(kinds[kd].class)
}

func (k *Kernel) tableInstruction(o code, ds *desc, global, shared val) {
	var v [4]val
	for i, kd := range ds.kinds {
		v[i] = k.operandOf(kd)
	}
	base := global
	if strings.Contains(ds.text, "shared") {
		base = shared
	}
	switch ds.layout {
	case layoutPlain:
		switch o {
		case opBarrierU32, opBarrierCountU32, opBarrierArriveU32:
			v[1] = tagged(tagSmall, 1)
			if o != opBarrierU32 {
				v[2] = tagged(tagSmall, 64)
			}
		}
		if ds.kinds[0] == kNone {
			v[0] = 0
		}
		k.put(o, 0, v[0], v[1], v[2], v[3])
	case layoutName, layoutParam, layoutLabel, layoutBranch:
		// Every kernel has them.
	case layoutAux:
		k.put(o, 0x96, v[0], v[1], v[2], v[3])
	case layoutShuffle:
		k.put(o, 31, v[0], v[1], v[2], v[3])
	case layoutPack:
		k.put(o, 0, v[0], v[1], v[2], 0)
	case layoutUnpack:
		k.put(o, 0, v[0], k.operandOf(ds.kinds[0]), v[1], 0)
	case layoutImmediate:
		n := uint16(7)
		if o == opRaiseRegisters || o == opDropRegisters {
			n = 96
		}
		k.put(o, n, 0, 0, 0, 0)
	case layoutLoad, layoutStore:
		k.tableAccess(o, ds, base)
	case layoutAtomic:
		k.put(o, 0, v[0], base, 8, v[1])
	case layoutReduction:
		k.put(o, 0, 0, base, 8, v[1])
	case layoutExchange:
		k.startList()
		k.lists = append(k.lists, v[1], v[2])
		k.put(o, 0, v[0], base, 8, k.endList())
	case layoutCopy:
		k.startList()
		k.lists = append(k.lists, 16, 32)
		k.put(o, 16, shared, global, 0, k.endList())
	case layoutMatrix:
		k.tableMatrix(o, shared)
	case layoutMma:
		n, ok := mmaCounts[o]
		if !ok {
			panic("nobody counted the registers of " + ds.text)
		}
		k.startList()
		for i, kd := range ds.kinds[:3] {
			for range n[i] {
				k.lists = append(k.lists, k.operandOf(kd))
			}
		}
		k.mma(o, n[0], n[1], n[2])
	case layoutWgmma:
		k.tableWgmma(o, ds)
	case layoutForm:
		k.tableForm(o, ds, v[0])
	case layoutRaw:
		k.Raw("trap")
	default:
		panic("no operands for " + ds.text)
	}
}

// tableAccess puts a load or a store of each type and number of elements.
func (k *Kernel) tableAccess(o code, ds *desc, base val) {
	for kd := kNone + 1; kd < numKinds; kd++ {
		for n := 1; n <= 4; n *= 2 {
			if size := int(kinds[kd].size); size == 0 || n*size > 16 {
				continue
			}
			d := k.operandOf(kd)
			for range n - 1 {
				k.operandOf(kd)
			}
			switch {
			case ds.layout == layoutLoad:
				k.put(o, memoryAux(kd, n), d, base, 16, 0)
			case n == 1:
				k.put(o, memoryAux(kd, n), 0, base, 16, d)
			default:
				k.startList()
				for i := range n {
					k.lists = append(k.lists, d+val(i))
				}
				k.put(o, memoryAux(kd, n), 0, base, 16, k.endList())
			}
		}
	}
}

// tableMatrix puts a load of matrices.
func (k *Kernel) tableMatrix(o code, shared val) {
	n := 1
	switch o {
	case opLoadMatrix2, opLoadMatrixTrans2:
		n = 2
	case opLoadMatrix4, opLoadMatrixTrans4:
		n = 4
	}
	d := k.fresh(classR)
	k.regs[classR] += uint32(n)
	k.put(o, uint16(n), d, shared, 16, 0)
}

// tableWgmma puts a product of warpgroups of each number of columns, with each flag.
func (k *Kernel) tableWgmma(o code, ds *desc) {
	for columns := 8; columns <= 256; columns *= 2 {
		n := columns / wgmmaColumns(o, 1)
		var flags []uint16
		switch trans, sign := ds.kinds[1] != kB32, ds.kinds[0] != kS32; {
		case trans:
			flags = []uint16{0, wgmmaTransA, wgmmaTransB, wgmmaNegateA, wgmmaNegateB, wgmmaRegisters | wgmmaTransB}
		case sign:
			flags = []uint16{0, wgmmaNegateA, wgmmaNegateB, wgmmaRegisters}
		default:
			flags = []uint16{0, wgmmaRegisters}
		}
		for _, f := range flags {
			k.startList()
			for range n {
				k.listVals(k.operandOf(ds.kinds[0]))
			}
			k.listVals(k.operandOf(kU64))
			if f&wgmmaRegisters != 0 {
				k.lists = k.lists[:len(k.lists)-1]
				for range 4 {
					k.listVals(k.operandOf(kB32))
				}
			}
			k.listVals(k.operandOf(kU64))
			k.put(o, uint16(columns/8)|f, 0, k.endList(), k.operandOf(kPred), val(n))
		}
	}
}

// tableForm puts an instruction with the operands that its text names.
func (k *Kernel) tableForm(o code, ds *desc, d val) {
	k.startList()
	for i, c := range []byte(ds.text) {
		if c != '$' {
			continue
		}
		switch ds.text[i+1] {
		case 'i':
			k.listVals(k.integer(128))
		case 'r':
			k.listVals(k.operandOf(kU32))
		case 'd':
			k.listVals(k.operandOf(kU64))
		case 'h':
			k.listVals(k.operandOf(kF16))
		case '=':
		default:
			panic(ds.text)
		}
	}
	k.put(o, uint16(len(k.lists)-k.listed), d, k.endList(), 0, 0)
}

// mmaCounts has the numbers of registers of D, A and B.
var mmaCounts = map[code][3]int{
	opMmaF16K8: {4, 2, 1}, opMmaF16: {4, 4, 2}, opMmaF16Half: {2, 4, 2}, opMmaBF16: {4, 4, 2}, opMmaTF32: {4, 4, 2},
	opMmaE4M3: {4, 4, 2}, opMmaE5M2: {4, 4, 2}, opMmaS8: {4, 4, 2}, opMmaU8: {4, 4, 2},
	opMmaS8K16: {4, 2, 1}, opMmaU8S8: {4, 4, 2},
}
