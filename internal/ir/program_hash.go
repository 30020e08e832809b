package ir

import "encoding/binary"

// Hash returns a key that two programs share if they are the same but for
// positions: what caches of compiled kernels are keyed by.
func (p *Program) Hash() [32]byte {
	b := make([]byte, 0, 256+20*len(p.Code))
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	num := func(vs ...uint32) {
		for _, v := range vs {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	text(p.Name)
	num(p.Local[:]...)
	preferRegisters := uint32(0)
	if p.PreferRegisters {
		preferRegisters = 1
	}
	num(preferRegisters, p.Budget, uint32(len(p.Bindings)), uint32(len(p.Uniforms)), uint32(len(p.Shared)), uint32(len(p.Vars)))
	for _, x := range p.Bindings {
		text(x.Name)
		num(uint32(x.Type), uint32(x.Width), uint32(x.Access))
	}
	for _, x := range p.Uniforms {
		text(x.Name)
		num(uint32(x.Type), x.Offset)
	}
	for _, x := range p.Shared {
		text(x.Name)
		atomic := uint32(0)
		if x.Atomic {
			atomic = 1
		}
		num(uint32(x.Type), uint32(x.Width), x.Len, atomic)
	}
	for _, x := range p.Vars {
		text(x.Name)
		num(uint32(x.Type), uint32(x.Width))
	}
	for i := range p.Code {
		in := &p.Code[i]
		b = append(b, byte(in.Code), byte(in.Type), in.Width, in.Flag)
		num(uint32(in.Args[0]), uint32(in.Args[1]), uint32(in.Args[2]), in.Imm)
	}
	if t := p.Text; t != nil {
		text(t.Source)
		text(t.Entry)
		num(uint32(t.Language), t.ParamBytes, uint32(t.SharedBytes), t.Features)
		for _, b := range t.Blocks {
			num(b.Offset, b.Bytes)
		}
	}
	return digest(b)
}
