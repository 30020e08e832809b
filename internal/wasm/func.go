package wasm

// Func is a function under construction. Its methods append instructions.
// WebAssembly is a stack machine: an instruction takes its operands from the
// stack, the last one from the top, and leaves its result there.
type Func struct {
	m         *Module
	index     int
	signature int
	params    int
	types     []Type // the types of the parameters and the local variables
	code      []byte
	depth     int // the nesting depth of blocks
}

// Local is a parameter or a local variable of a function.
type Local int

// Label names a block that a branch leaves, or a loop that a branch repeats.
type Label int

// Param returns parameter i.
func (f *Func) Param(i int) Local { return Local(i) }

// Local returns a new local variable, which is zero.
func (f *Func) Local(t Type) Local {
	f.types = append(f.types, t)
	return Local(len(f.types) - 1)
}

// bytes returns the body: the types of the variables, and the code.
func (f *Func) bytes() []byte {
	locals := f.types[f.params:]
	var runs []byte
	n := 0
	for i := 0; i < len(locals); n++ {
		j := i
		for j < len(locals) && locals[j] == locals[i] {
			j++
		}
		runs = append(appendUint(runs, uint64(j-i)), byte(locals[i]))
		i = j
	}
	b := append(appendUint(nil, uint64(n)), runs...)
	return append(append(b, f.code...), 0x0b)
}

func (f *Func) put(b ...byte)     { f.code = append(f.code, b...) }
func (f *Func) putUint(v uint64)  { f.code = appendUint(f.code, v) }
func (f *Func) Get(l Local)       { f.put(0x20); f.putUint(uint64(l)) } // Get pushes a variable.
func (f *Func) Set(l Local)       { f.put(0x21); f.putUint(uint64(l)) } // Set pops it.
func (f *Func) Tee(l Local)       { f.put(0x22); f.putUint(uint64(l)) } // Tee sets it and leaves the value.
func (f *Func) Int(v int32)       { f.put(0x41); f.code = appendInt(f.code, int64(v)) }
func (f *Func) Float(v float32)   { f.put(0x43); f.code = appendF32(f.code, v) }
func (f *Func) Return()           { f.put(0x0f) }
func (f *Func) Call(g *Func)      { f.put(0x10); f.putUint(uint64(g.index)) }
func (f *Func) BrIf(l Label)      { f.put(0x0d); f.putUint(uint64(f.depth - int(l))) } // BrIf branches if the top is not 0.
func (f *Func) Br(l Label)        { f.put(0x0c); f.putUint(uint64(f.depth - int(l))) }
func (f *Func) open(op byte)      { f.depth++; f.put(op, 0x40) }
func (f *Func) close()            { f.depth--; f.put(0x0b) }
func (f *Func) vector(op Op)      { f.put(0xfd); f.putUint(uint64(op & 0xffff)) }
func (f *Func) memory(offset int) { f.put(0); f.putUint(uint64(offset)) } // no alignment is promised

// CallIndirect calls the function of the table whose index is on top of the stack, above
// its arguments.
func (f *Func) CallIndirect(s Signature) {
	f.put(0x11)
	f.putUint(uint64(f.m.signature(s)))
	f.put(0)
}

// Op appends an instruction without immediates.
func (f *Func) Op(ops ...Op) {
	for _, op := range ops {
		if op>>16 == vectorPrefix {
			f.vector(op)
		} else {
			f.put(byte(op))
		}
	}
}

// Load loads from the address on the stack plus offset.
func (f *Func) Load(op Op, offset int) {
	f.Op(op)
	f.memory(offset)
}

// Store stores the value on top of the stack at the address below plus offset.
func (f *Func) Store(op Op, offset int) { f.Load(op, offset) }

// LoadLane and StoreLane access one lane of a vector: [V128Load32Lane] and the like.
func (f *Func) LoadLane(op Op, offset, lane int) {
	f.Load(op, offset)
	f.put(byte(lane))
}

// Lane appends an instruction on one lane: [F32x4ExtractLane] and the like.
func (f *Func) Lane(op Op, lane int) {
	f.Op(op)
	f.put(byte(lane))
}

// Shuffle replaces two vectors by 16 of their bytes. Bytes 16 to 31 are those of the second vector.
func (f *Func) Shuffle(bytes [16]byte) {
	f.Op(I8x16Shuffle)
	f.put(bytes[:]...)
}

// ShuffleWords is [Func.Shuffle] for lanes of 32 bits. Lanes 4 to 7 are those of the second vector.
func (f *Func) ShuffleWords(a, b, c, d byte) {
	var bytes [16]byte
	for i, w := range [4]byte{a, b, c, d} {
		for j := range byte(4) {
			bytes[4*byte(i)+j] = 4*w + j
		}
	}
	f.Shuffle(bytes)
}

// Splat pushes a vector with the same 32 bits in all lanes.
func (f *Func) Splat(bits uint32) {
	f.Int(int32(bits))
	f.Op(I32x4Splat)
}

// MulAdd replaces two vectors of float32 by their product plus the variable c. The product may be rounded or
// not: the nop after it marks the two instructions, which [frame.Relaxed] may replace by one.
func (f *Func) MulAdd(c Local) {
	f.Op(F32x4Mul, Nop)
	f.Get(c)
	f.Op(F32x4Add)
}

// Block appends a block with the instructions that body appends. A branch to the label leaves the block.
func (f *Func) Block(body func(end Label)) {
	f.open(0x02)
	body(Label(f.depth))
	f.close()
}

// Loop appends a loop with the instructions that body appends. A branch to the label repeats the loop.
func (f *Func) Loop(body func(again Label)) {
	f.open(0x03)
	body(Label(f.depth))
	f.close()
}

// If appends the instructions that body appends, which run if the top of the stack is not 0.
func (f *Func) If(body func()) {
	f.open(0x04)
	body()
	f.close()
}

// IfElse appends the instructions of yes, which run if the top of the stack is not 0, and those of no, which run
// if it is 0.
func (f *Func) IfElse(yes, no func()) {
	f.open(0x04)
	yes()
	f.put(0x05)
	no()
	f.close()
}

// Add adds a constant to a variable.
func (f *Func) Add(l Local, v int) {
	f.Get(l)
	f.Int(int32(v))
	f.Op(I32Add)
	f.Set(l)
}

// AddLocal adds a variable to another.
func (f *Func) AddLocal(l, by Local) {
	f.Get(l)
	f.Get(by)
	f.Op(I32Add)
	f.Set(l)
}

// While appends the instructions of body, which repeat while variable l, as a signed number, is at least v.
func (f *Func) While(l Local, v int, body func()) {
	test := func() {
		f.Get(l)
		f.Int(int32(v))
		f.Op(I32GeS)
	}
	test()
	f.If(func() {
		f.Loop(func(again Label) {
			body()
			test()
			f.BrIf(again)
		})
	})
}
