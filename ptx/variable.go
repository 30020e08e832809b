package ptx

// Var is a register that changes: it carries values around loops and out of
// branches.
type Var[T Value] struct {
	h    handle
	kind kind
}

// NewVar returns a variable with the initial value x.
func NewVar[T Value](k *Kernel, x T) Var[T] {
	k = k.owner()
	kd := kindFor[T]()
	return Var[T]{k.variable(handle(x), kd), kd}
}

func (k *Kernel) variable(x handle, kd kind) handle {
	if x.k == nil && (kd == kF16 || kd == kBF16 || kd == kF16x2 || kd == kBF16x2) {
		return handle{k, k.constant(x, kd), k.age}
	}
	return k.result(kinds[kd].mov, k.use(x, kd), 0, 0)
}

// Get returns the current value of the variable; the value does not change when the variable does.
func (v Var[T]) Get() T {
	k := v.h.k.owner()
	return T(k.result(kinds[v.kind].mov, k.use(v.h, v.kind), 0, 0))
}

// Live returns the variable itself as a value: an instruction that uses it reads the value that the
// variable has at that point. Unlike [Var.Get], it costs no instruction.
func (v Var[T]) Live() T { return T(v.h) }

// Set sets the variable to x.
func (v Var[T]) Set(x T) {
	k := v.h.k.owner()
	k.put(kinds[v.kind].mov, 0, k.use(v.h, v.kind), k.use(handle(x), v.kind), 0, 0)
}

func varHandle[T Value](v Var[T]) handle { return v.h }

// number holds the types with sums and products of their own.
type number interface {
	U32 | S32 | U64 | S64 | F32 | F64 | F16 | F16x2 | BF16 | BF16x2
}

var (
	addCodes = [numKinds]code{kU32: opAddU32, kS32: opAddS32, kU64: opAddU64, kS64: opAddS64, kF32: opAddF32, kF64: opAddF64,
		kF16: opAddF16, kF16x2: opAddF16x2, kBF16: opAddBF16, kBF16x2: opAddBF16x2}
	subCodes = [numKinds]code{kU32: opSubU32, kS32: opSubS32, kU64: opSubU64, kS64: opSubS64, kF32: opSubF32, kF64: opSubF64,
		kF16: opSubF16, kF16x2: opSubF16x2, kBF16: opSubBF16, kBF16x2: opSubBF16x2}
	maxCodes = [numKinds]code{kU32: opMaxU32, kS32: opMaxS32, kU64: opMaxU64, kS64: opMaxS64, kF32: opMaxF32, kF64: opMaxF64,
		kF16: opMaxF16, kF16x2: opMaxF16x2, kBF16: opMaxBF16, kBF16x2: opMaxBF16x2}
	minCodes = [numKinds]code{kU32: opMinU32, kS32: opMinS32, kU64: opMinU64, kS64: opMinS64, kF32: opMinF32, kF64: opMinF64,
		kF16: opMinF16, kF16x2: opMinF16x2, kBF16: opMinBF16, kBF16x2: opMinBF16x2}
	mulAddCodes = [numKinds]code{kU32: opMulAddU32, kS32: opMulAddS32, kU64: opMulAddU64, kS64: opMulAddS64, kF32: opFmaF32, kF64: opFmaF64,
		kF16: opFmaF16, kF16x2: opFmaF16x2, kBF16: opFmaBF16, kBF16x2: opFmaBF16x2}
)

// AddTo adds x to v.
func AddTo[T number](v Var[T], x T) { inPlace(&addCodes, v.h, v.kind, handle(x)) }

// SubTo subtracts x from v.
func SubTo[T number](v Var[T], x T) { inPlace(&subCodes, v.h, v.kind, handle(x)) }

// MaxTo sets v to the greater of v and x, as Max does.
func MaxTo[T number](v Var[T], x T) { inPlace(&maxCodes, v.h, v.kind, handle(x)) }

// MinTo sets v to the lesser of v and x, as Min does.
func MinTo[T number](v Var[T], x T) { inPlace(&minCodes, v.h, v.kind, handle(x)) }

func inPlace(codes *[numKinds]code, v handle, kd kind, x handle) {
	k := v.k.owner()
	if v.c == k.age && x.k == k && x.c == k.age {
		k.put(codes[kd], 0, v.v, v.v, x.v, 0)
		return
	}
	d := k.use(v, kd)
	k.put(codes[kd], 0, d, d, k.use(x, kd), 0)
}

// MulAddTo adds x*y to v. For floating-point types the result is rounded once.
func MulAddTo[T number](v Var[T], x, y T) { mulAddTo(v.h, v.kind, handle(x), handle(y)) }

// ScaleAddTo sets v to v*x + y. For floating-point types the result is rounded once. It continues a
// sum that must be scaled down.
func ScaleAddTo[T number](v Var[T], x, y T) {
	scaleAddTo(v.h, v.kind, handle(x), handle(y))
}

func scaleAddTo(v handle, kd kind, x, y handle) {
	k := v.k.owner()
	if v.c != k.age || x.k != k || x.c != k.age || y.k != k || y.c != k.age {
		v.v = k.use(v, kd)
		x.v = k.use(x, kd)
		y.v = k.use(y, kd)
	}
	k.put(mulAddCodes[kd], 0, v.v, v.v, x.v, y.v)
}

func mulAddTo(v handle, kd kind, x, y handle) {
	k := v.k.owner()
	if v.c != k.age || x.k != k || x.c != k.age || y.k != k || y.c != k.age {
		v.v = k.use(v, kd)
		x.v = k.use(x, kd)
		y.v = k.use(y, kd)
	}
	k.put(mulAddCodes[kd], 0, v.v, x.v, y.v, v.v)
}
