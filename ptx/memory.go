package ptx

import (
	"fmt"
)

// address is a pointer to memory. It has few fields, so that the Go compiler keeps it in registers.
// The speed of building depends on this.
type address struct {
	handle
	off int32 // bytes, added by the instruction that uses the address
	how how
}

// how describes an address in four bytes: kind, space, hint, and the size of an element.
type how uint32

func newHow(kd kind, in space, h Hint) how {
	return how(kd) | how(in)<<8 | how(h)<<16 | how(kinds[kd].size)<<24
}

func (h how) kind() kind  { return kind(h) }
func (h how) in() space   { return space(h >> 8) }
func (h how) hint() Hint  { return Hint(h >> 16) }
func (h how) size() int32 { return int32(h >> 24) }

type space uint8

const (
	inGlobal space = iota
	inShared
	inCluster
)

// Global points to elements in the memory of the device.
type Global[T Element] address

// Shared points to elements in the memory that the threads of a block share.
type Shared[T Element] address

// Hint says how an access uses the caches.
type Hint uint8

// The hints, in the order of the instructions that they choose.
const (
	Cached   Hint = iota // normal caching
	ReadOnly             // loads of memory that does not change while the kernel runs
	Stream               // for data that are used once: first to leave the caches
	L2Only               // not in L1, so that loads see the writes of other blocks
	Once                 // loads as ReadOnly; loads and stores do not allocate lines in L1
	Volatile             // never cached and never merged
	Ahead                // loads also bring 128 bytes to L2; needs sm_75
	Ordered              // loads acquire and stores release, for the device
	numHints
)

// Scalar lists the types of parameters.
type Scalar interface {
	U32 | S32 | B32 | F16x2 | BF16x2 | U64 | S64 | F32 | F64
}

// Param declares the next parameter of the kernel.
func Param[T Scalar](k *Kernel, name string) T {
	return T(k.owner().param(name, kindFor[T]()))
}

// GlobalParam declares the next parameter of the kernel: the address of elements in the memory of
// the device. Launches pass generic addresses. Generic addresses of global memory equal the global
// addresses, so no conversion is needed.
func GlobalParam[T Element](k *Kernel, name string) Global[T] {
	k = k.owner()
	g := newAddress(k, kindFor[T](), inGlobal)
	g.v = k.param(name, kU64).v
	return Global[T](g)
}

func (k *Kernel) param(name string, kd kind) handle {
	r := handle{k: k, c: k.age}
	if !k.ready() {
		return r
	}
	n := len(k.params)
	if n == cap(k.params) {
		k.params = append(make([]param, 0, 2*n+8), k.params...)
	}
	// Reused memory nearly always has a parameter of the same name.
	next := &k.params[:n+1][n]
	if next.hash == 0 || next.name != name {
		hash := nameHash(name)
		if hash == 0 {
			k.fail("%q is not a valid name of a parameter", name)
			return r
		}
		// The parameter after this one was not compared, so its old hash must not be used.
		if k.changed = true; n+1 < cap(k.params) {
			k.params[:n+2][n+1].hash = 0
		}
		*next = param{name: name, hash: hash, decl: newWord("p_"+name, 0), tail: newWord(", [p_"+name+"];\n", 0)}
	}
	next.kind = kd
	if k.changed { // otherwise the names were compared before
		for i := range k.params {
			if k.params[i].hash == next.hash && k.params[i].name == name {
				next.hash = 0 // invalidates the name
				k.fail("two parameters are called %s", name)
				return r
			}
		}
	}
	if n == maxParams {
		k.failure(ErrLimit, "the kernel has more than %d parameters", maxParams)
		return r
	}
	k.params = k.params[:n+1]
	if kd == kNone {
		return r
	}
	r.v = k.fresh(kinds[kd].class)
	k.first(opLoadParam, memoryAux(kd, 1), r.v, tagged(tagParam, n))
	return r
}

// Align makes the arrays of shared memory that are declared from now on begin at multiples of n
// bytes, a power of two up to 1024. The default is 16; copies of tensors need 128, and swizzled
// ones 1024.
func (k *Kernel) Align(n int) {
	k = k.owner()
	if !k.ready() {
		return
	}
	if n < 16 || n > 1024 || n&(n-1) != 0 {
		k.failure(ErrLimit, "an alignment of %d bytes is invalid: it must be a power of two up to 1024", n)
		return
	}
	k.align = uint32(n)
}

func newAddress(k *Kernel, kd kind, in space) address {
	return address{handle: handle{k: k, c: k.age}, how: newHow(kd, in, Cached)}
}

// SharedArray declares an array of n elements in shared memory. Its elements are undefined until
// they are written. [Kernel.Align] sets its alignment.
func SharedArray[T Element](k *Kernel, name string, n int) Shared[T] {
	return Shared[T](k.owner().sharedArray(name, kindFor[T](), n))
}

func (k *Kernel) sharedArray(name string, kd kind, n int) address {
	r := newAddress(k, kd, inShared)
	if !k.ready() {
		return r
	}
	at := len(k.shared)
	if at == cap(k.shared) {
		k.shared = append(make([]sharedArray, 0, 2*at+4), k.shared...)
	}
	// Reused memory nearly always has an array of the same name.
	next := &k.shared[:at+1][at]
	if next.tail.n == 0 || next.name != name {
		if nameHash(name) == 0 {
			k.fail("%q is not a valid name of an array", name)
			return r
		}
		*next = sharedArray{name: name, tail: newWord(", s_"+name+";\n", 0)}
	}
	for i := range k.shared {
		if k.shared[i].name == name {
			k.fail("two arrays are called %s", name)
			return r
		}
	}
	bytes, ok := k.arrayBytes(name, kd, n, MaxStaticShared, k.static)
	if !ok || n == 0 {
		k.fail("array %s has no elements", name)
		return r
	}
	k.static = k.aligned(k.static) + bytes
	if next.decl == nil || next.bytes != uint32(bytes) || next.align != k.align {
		next.bytes, next.align = uint32(bytes), k.align
		next.decl = fmt.Appendf(nil, "\t.shared .align %d .b8 s_%s[%d];\n", k.align, name, bytes)
	}
	k.shared = k.shared[:at+1]
	r.v = k.fresh(classR)
	k.first(opSymbol, 0, r.v, tagged(tagShared, at))
	return r
}

// aligned returns the first offset from n on at which an array may begin.
func (k *Kernel) aligned(n uint64) uint64 {
	return (n + uint64(k.align) - 1) &^ (uint64(k.align) - 1)
}

func (k *Kernel) arrayBytes(name string, kd kind, n int, limit, used uint64) (bytes uint64, ok bool) {
	size := uint64(kinds[kd].size)
	if n < 0 || uint64(n) > limit/size || k.aligned(used)+uint64(n)*size > limit {
		k.failure(ErrLimit, "array %s with %d elements of %d bytes does not fit: a block has %d bytes for such arrays", name, n, size, limit)
		return 0, false
	}
	return uint64(n) * size, true
}

// DynamicShared declares an array of n elements in dynamic shared memory. [Kernel.SharedBytes]
// reports the size that the launch must provide, and [Kernel.Align] sets the alignment. With n = 0,
// the array has all memory that the launch provides beyond this size, and it must be the last
// dynamic array.
func DynamicShared[T Element](k *Kernel, n int) Shared[T] {
	return Shared[T](k.owner().dynamicShared(kindFor[T](), n))
}

func (k *Kernel) dynamicShared(kd kind, n int) address {
	r := newAddress(k, kd, inShared)
	if !k.ready() {
		return r
	}
	if k.rest {
		k.fail("a dynamic array follows the one with n = 0, which takes the rest of the memory: declare that one last")
		return r
	}
	bytes, ok := k.arrayBytes("of dynamic memory", kd, n, MaxShared, k.dynamic)
	if !ok {
		return r
	}
	if k.pointer == 0 {
		k.pointer = k.fresh(classR)
		k.first(opSymbol, 0, k.pointer, tagged(tagShared, dynamicSymbol))
	}
	r.v = k.pointer
	k.extern = max(k.extern, k.align)
	r.off = int32(k.aligned(k.dynamic))
	k.dynamic = uint64(r.off) + bytes
	k.rest = n == 0
	return r
}

// dynamicSymbol is the number of the dynamic shared memory among the arrays.
const dynamicSymbol = payload

// At returns the address of element i, relative to p. A constant i costs no instruction.
func (p Global[T]) At(i U32) Global[T] { return Global[T](address(p).at(handle(i))) }

// At64 returns the address of element i, relative to p, for arrays of 2**32 elements and more.
func (p Global[T]) At64(i U64) Global[T] { return Global[T](address(p).at64(handle(i))) }

// Offset returns the address of the element n elements after p, at no cost.
func (p Global[T]) Offset(n int) Global[T] {
	off := int64(n)*int64(p.how.size()) + int64(p.off)
	if off != int64(int32(off)) || n != int(int32(n)) || p.k == nil {
		return Global[T](address(p).tooFar(n))
	}
	p.off = int32(off)
	return p
}

// Hint returns the same address with the cache hint h.
func (p Global[T]) Hint(h Hint) Global[T] { return Global[T](address(p).hinted(h)) }

// Load returns the element.
func (p Global[T]) Load() T { return T(address(p).load1()) }

// Load2 loads two elements in one access. The address must be a multiple of the size of both.
func (p Global[T]) Load2() [2]T {
	h := address(p).load(2)
	return [2]T{T(h), T(h.next(1))}
}

// Load4 loads four elements of up to 4 bytes in one access. The address must be a multiple of the
// size of all four.
func (p Global[T]) Load4() [4]T {
	h := address(p).load(4)
	return [4]T{T(h), T(h.next(1)), T(h.next(2)), T(h.next(3))}
}

// LoadTo loads the element into v. Within [Kernel.When], v keeps its value in the other threads.
func (p Global[T]) LoadTo(v Var[T]) { address(p).loadTo(v.h) }

// Store writes the element.
func (p Global[T]) Store(v T) { address(p).store1(handle(v)) }

// Store2 writes two elements: see [Global.Load2].
func (p Global[T]) Store2(v [2]T) {
	address(p).store2(handle(v[0]), handle(v[1]))
}

// Store4 writes four elements: see [Global.Load4].
func (p Global[T]) Store4(v [4]T) {
	address(p).store4(handle(v[0]), handle(v[1]), handle(v[2]), handle(v[3]))
}

// At returns the address of element i, relative to p. A constant i costs no instruction.
func (p Shared[T]) At(i U32) Shared[T] { return Shared[T](address(p).at(handle(i))) }

// Offset returns the address of the element n elements after p, at no cost.
func (p Shared[T]) Offset(n int) Shared[T] {
	off := int64(n)*int64(p.how.size()) + int64(p.off)
	if off != int64(int32(off)) || n != int(int32(n)) || p.k == nil {
		return Shared[T](address(p).tooFar(n))
	}
	p.off = int32(off)
	return p
}

// Hint returns the same address with the hint h: Cached or Volatile.
func (p Shared[T]) Hint(h Hint) Shared[T] { return Shared[T](address(p).hinted(h)) }

// Load returns the element.
func (p Shared[T]) Load() T { return T(address(p).load1()) }

// Load2 returns two elements: see [Global.Load2].
func (p Shared[T]) Load2() [2]T {
	h := address(p).load(2)
	return [2]T{T(h), T(h.next(1))}
}

// Load4 returns four elements: see [Global.Load4].
func (p Shared[T]) Load4() [4]T {
	h := address(p).load(4)
	return [4]T{T(h), T(h.next(1)), T(h.next(2)), T(h.next(3))}
}

// LoadTo loads the element into v: see [Global.LoadTo].
func (p Shared[T]) LoadTo(v Var[T]) { address(p).loadTo(v.h) }

// Store writes the element.
func (p Shared[T]) Store(v T) { address(p).store1(handle(v)) }

// Store2 writes two elements: see [Global.Load2].
func (p Shared[T]) Store2(v [2]T) {
	address(p).store2(handle(v[0]), handle(v[1]))
}

// Store4 writes four elements: see [Global.Load4].
func (p Shared[T]) Store4(v [4]T) {
	address(p).store4(handle(v[0]), handle(v[1]), handle(v[2]), handle(v[3]))
}

// Cast returns the same address for elements of another type.
func Cast[U Element, T Element](p Global[T]) Global[U] {
	a := address(p)
	a.how = newHow(kindFor[U](), a.how.in(), a.how.hint())
	return Global[U](a)
}

// CastShared returns the same address for elements of another type.
func CastShared[U Element, T Element](p Shared[T]) Shared[U] {
	a := address(p)
	a.how = newHow(kindFor[U](), a.how.in(), a.how.hint())
	return Shared[U](a)
}
