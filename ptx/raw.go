package ptx

import "strings"

// Operand is a value that [Kernel.Raw] accepts. Every type of value implements it.
type Operand interface {
	operand() (handle, kind)
}

// Raw appends an instruction for which this package has no method, without its semicolon. Each $$
// in the text is replaced by the next operand:
//
//	k.Raw("st.global.wt.u32 [$$], $$", address, x)
//
// Its effects are unknown: [Module.Verify] assumes that it reads its operands. Declare its
// requirements by [Kernel.Require].
func (k *Kernel) Raw(text string, operands ...Operand) {
	k.owner().raw(text, 0, operands)
}

// RawResult is [Kernel.Raw] for an instruction with a result; $= in the text is replaced by the
// result.
func RawResult[T Value](k *Kernel, text string, operands ...Operand) T {
	k = k.owner()
	if !k.ready() {
		return T(handle{k: k, c: k.age})
	}
	d := k.fresh(kinds[kindFor[T]()].class)
	k.raw(text, d, operands)
	return T(handle{k, d, k.age})
}

func (k *Kernel) raw(text string, d val, operands []Operand) {
	if !k.ready() {
		return
	}
	rest := strings.ReplaceAll(text, "$$", "")
	results := strings.Count(rest, "$=")
	switch marks := strings.Count(text, "$$"); {
	case strings.TrimSpace(text) == "" || strings.ContainsAny(text, "\n\r;\x00") || strings.Contains(text, "//") || strings.Contains(text, "/*"):
		k.fail("%q is not a single instruction", text)
		return
	case marks != len(operands):
		k.fail("there are %d operands for %d marks $$", len(operands), marks)
		return
	case (d != 0) != (results == 1) || strings.Count(rest, "$") != results:
		k.fail("one $= stands for the result, and $$ for each operand")
		return
	case len(operands) > 1<<10:
		k.failure(ErrLimit, "%d operands are too many", len(operands))
		return
	}
	v := make([]val, len(operands))
	for i, x := range operands {
		if x == nil {
			k.fail("operand %d is nil", i)
			return
		}
		h, kd := x.operand()
		v[i] = k.reg(h, kd)
	}
	k.raws = append(k.raws, text)
	k.startList()
	k.listVals(v...)
	k.put(opRaw, uint16(len(v)), d, k.endList(), val(len(k.raws)-1), 0)
}

// Require declares that the kernel needs a PTX version and a target, for instructions that
// [Kernel.Raw] appends: Require(8, 0, ptx.SM90).
func (k *Kernel) Require(major, minor int, t Target) {
	k = k.owner()
	if !k.ready() {
		return
	}
	if major < 6 || major > 20 || minor < 0 || minor > 9 || t.version() == 0 {
		k.fail("there is no PTX %d.%d for %v", major, minor, t)
		return
	}
	if t > k.m.target {
		k.failure(ErrTarget, "the kernel needs %v, the module is for %v", t, k.m.target)
		return
	}
	k.version = max(k.version, uint8(10*major+minor))
}
