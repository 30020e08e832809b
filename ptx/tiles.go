package ptx

// CheckTiles finds tiles in arrays of shared memory that begin at less of a
// multiple of bytes than tensor copies (128) and products of warpgroups (the bytes
// of 8 rows that are swizzled together) take: see [Kernel.Align].
var CheckTiles = Pass{"tiles", checkTiles}

// atoms holds the bytes after which a swizzle repeats.
var atoms = [4]uint32{NoSwizzle: 16, Swizzle128: 1024, Swizzle64: 512, Swizzle32: 256}

func checkTiles(b *body) {
	k := b.k
	for i := range k.code {
		in := &k.code[i]
		switch d := &descs[in.op]; {
		case d.layout == layoutWgmma:
			list := k.lists[in.a+in.c:]
			if n := wgmmaInputs(in); n == 2 {
				b.tile(i, list[0])
				b.tile(i, list[1])
			} else {
				b.tile(i, list[n-1])
			}
		case in.op >= opTensorLoad1 && in.op < opTensorLoad1+5*tensorForms:
			switch (in.op - opTensorLoad1) % tensorForms {
			case opTensorPrefetch1 - opTensorLoad1:
			case opTensorStore1 - opTensorLoad1, opTensorAdd1 - opTensorLoad1:
				b.array(i, k.lists[int(in.a)+int(in.aux)-2], 128)
			default:
				b.array(i, k.lists[in.a], 128)
			}
		}
	}
}

// tile looks at a tile that a product reads.
func (b *body) tile(i int, v val) {
	need := atoms[NoSwizzle]
	for range 1000 { // see array
		in := b.origin(v)
		if in == nil {
			return
		}
		if in.op == opOrU64 && in.b.tag() == tagBig || in.op == opOrU64 && in.b.tag() == tagSigned {
			need = atoms[b.k.consts[in.b.n()]>>62]
		}
		if in.op == opU64U32 { // the number of 16 bytes
			break
		}
		v = in.a
	}
	b.array(i, v, need)
}

// origin returns the instruction that alone writes v, or nil.
func (b *body) origin(v val) *instr {
	if _, ok := v.class(); !ok || !b.once(v) {
		return nil
	}
	f := b.registers()
	if first := f.first[f.number(v)]; first >= 0 {
		return &b.k.code[first]
	}
	for i := range b.k.prologue {
		if b.k.prologue[i].d == v {
			return &b.k.prologue[i]
		}
	}
	return nil
}

// array looks at the array that v, an address, was computed from.
func (b *body) array(i int, v val, need uint32) {
	for range 1000 { // a chain of single writes has an end, but nobody has checked them yet
		in := b.origin(v)
		if in == nil {
			return
		}
		switch in.op {
		case opSymbol:
			name, align := "dynamic shared memory", b.k.extern
			if n := in.a.n(); n != dynamicSymbol {
				name, align = "array "+b.k.shared[n].name, b.k.shared[n].align
			}
			if align < need {
				b.report(i, "%s is aligned to %d bytes, the tile in it needs %d", name, align, need)
			}
			return
		case opMulAddU32:
			v = in.c
		case opAddU32, opShrU32, opAndU32, opU64U32:
			v = in.a
		default:
			return
		}
	}
}
