package ptx

import (
	"bytes"
	"testing"
)

// quick compares the fast encoder of the frequent instructions with the encoder of all
// instructions.
func (k *Kernel) quick(t *testing.T) {
	tab := names()
	room := make([]byte, 0, 4*spare)
	for _, code := range [][]instr{k.prologue, k.code} {
		for i := range code {
			in := code[i]
			in.guard = 0
			fast := k.appendCode(room, tab, []instr{in})
			if slow := k.appendOne(nil, tab, &in); !bytes.Equal(fast, slow) {
				t.Fatalf("%s: %q, not %q", k.name, fast, slow)
			}
		}
	}
}

// Quick compares both encoders of instructions on a module.
func (m *Module) Quick(t *testing.T) {
	for _, k := range m.kernels[:m.n] {
		k.quick(t)
	}
}

// TestQuick checks that both encoders of instructions write the same text, for registers
// and numbers within the tables of the fast one and beyond them.
func TestQuick(t *testing.T) {
	m := NewModule(SM90a)
	for o := range descs {
		d := &descs[o]
		if d.layout != layoutPlain {
			continue
		}
		k := m.Kernel("k", func(k *Kernel) {})
		k.consts = []uint64{0x3f800000, 1 << 40}
		for _, n := range []int{0, 7, 99, 999, 1000, 1023, 1024, 123456} {
			in := instr{op: code(o)}
			at := []*val{&in.d, &in.a, &in.b, &in.c}
			for i, kd := range d.kinds {
				if kd == kNone {
					continue
				}
				*at[i] = kinds[kd].class.reg(uint32(n))
			}
			k.code = append(k.code, in)
			if in.a != 0 && in.d != 0 {
				for _, v := range []val{tagged(tagSmall, n), tagged(tagF32, 0), tagged(tagBig, 1), tagged(tagSigned, 1)} {
					one := in
					one.a = v
					k.code = append(k.code, one)
				}
			}
		}
		k.quick(t)
		m.Reset()
	}
}
