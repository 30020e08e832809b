package ptx

// Word lists the types of values that lanes can exchange.
type Word interface {
	U32 | S32 | B32 | F16x2 | BF16x2 | F32
}

// ShuffleXor returns x of the lane whose number is this lane's number XOR n. All lanes of the warp
// must execute it.
func ShuffleXor[T Word](x T, n U32) T {
	return T(shuffle(opShuffleXorU32, opShuffleXorF32, handle(x), handle(n), kindFor[T]()))
}

// ShuffleUp returns x of the lane n before this one, and x itself in the first n lanes. All lanes
// of the warp must execute it.
func ShuffleUp[T Word](x T, n U32) T {
	return T(shuffle(opShuffleUpU32, opShuffleUpF32, handle(x), handle(n), kindFor[T]()))
}

// ShuffleDown returns x of the lane n after this one, and x itself in the last n lanes. All lanes
// of the warp must execute it.
func ShuffleDown[T Word](x T, n U32) T {
	return T(shuffle(opShuffleDownU32, opShuffleDownF32, handle(x), handle(n), kindFor[T]()))
}

// ShuffleIndex returns x of lane n modulo 32. All lanes of the warp must execute it.
func ShuffleIndex[T Word](x T, n U32) T {
	return T(shuffle(opShuffleIndexU32, opShuffleIndexF32, handle(x), handle(n), kindFor[T]()))
}

func shuffle(o, float code, x, n handle, kd kind) handle {
	k := x.k
	if k == nil {
		return x // a constant is the same in every lane
	}
	if kd == kF32 {
		o = float
	}
	if n.k == nil && n.c <= payload && x.c == k.age && k.target != 0 {
		return k.result(o, x.v, tagged(tagSmall, int(n.c)), 0)
	}
	a := k.use(x, kd)
	return k.result(o, a, k.use(n, kU32), 0)
}

// Lop3 applies the three-input function table to each bit of x, y and z: the result for bits x, y
// and z is bit 4·x + 2·y + z of table.
func (x U32) Lop3(y, z U32, table uint8) U32 {
	k := x.k
	if k == nil {
		k = y.k
	}
	if k == nil {
		k = z.k
	}
	if k == nil {
		k = unfolded
	}
	if descs[opLop3U32].target > k.target && !k.admit(opLop3U32) {
		return U32{k: k, c: k.age}
	}
	a, b, c := k.use(handle(x), kU32), k.use(handle(y), kU32), k.use(handle(z), kU32)
	d := k.fresh(classR)
	k.put(opLop3U32, uint16(table), d, a, b, c)
	return U32{k, d, k.age}
}

// Halves returns the low and the high half.
func (x F16x2) Halves() (low, high F16) {
	l, h := unpack(opUnpackF16x2, handle(x))
	return F16(l), F16(h)
}

// Halves returns the low and the high half.
func (x BF16x2) Halves() (low, high BF16) {
	l, h := unpack(opUnpackBF16x2, handle(x))
	return BF16(l), BF16(h)
}

// Halves returns the low and the high half.
func (x U64) Halves() (low, high U32) {
	if x.k == nil {
		return U32{c: x.c}, U32{c: uint32(x.v)}
	}
	l, h := unpack(opUnpackU64, handle(x))
	return U32(l), U32(h)
}

func unpack(o code, x handle) (low, high handle) {
	k, kd := x.k, descs[o].kinds
	if k == nil {
		k = unfolded
	}
	if descs[o].target > k.target && !k.admit(o) {
		return handle{k: k, c: k.age}, handle{k: k, c: k.age}
	}
	v := k.use(x, kd[1])
	c := kinds[kd[0]].class
	l, h := k.fresh(c), k.fresh(c)
	k.put(o, 0, l, h, v, 0)
	return handle{k, l, k.age}, handle{k, h, k.age}
}

// F32 returns x as an F32.
func (x BF16) F32() F32 { return x.Bits().Shl(U(16)).B32().Float() }

// U8 returns the low byte.
func (x U32) U8() U8 { return U8(x.And(U(0xff))) }

// U16 returns the low two bytes.
func (x U32) U16() U16 { return U16(x.And(U(0xffff))) }
