package ptx

import "bytes"

// Listing is the text of a module with the positions of its lines.
type Listing struct {
	Text []byte
	// Lines holds the author's position for each line of Text, zero if it is
	// unknown: see [Module.RecordPositions].
	Lines []Position
}

// At returns the author's position for a line of the text. Lines are counted from 1.
func (l *Listing) At(line int) Position {
	if line < 1 || line > len(l.Lines) {
		return Position{}
	}
	return l.Lines[line-1]
}

// Listing returns the text of the module with the author's positions, for tools
// that read or run it.
func (m *Module) Listing() (*Listing, error) {
	text, err := m.AppendPTX(nil)
	if err != nil {
		return nil, err
	}
	l := &Listing{Text: text, Lines: make([]Position, bytes.Count(text, []byte{'\n'})+1)}
	t, from := names(), 0
	for _, k := range m.kernels[:m.n] {
		head := k.appendHead(nil, t)
		at := bytes.Index(text[from:], head)
		if at < 0 {
			continue
		}
		at += from
		line := bytes.Count(text[:at], []byte{'\n'}) + bytes.Count(head, []byte{'\n'})
		one := make([]byte, 0, 2*spare)
		lines := func(code []instr) int { return bytes.Count(k.appendCode(one, t, code), []byte{'\n'}) }
		line += lines(k.prologue)
		for i := range k.code {
			n := lines(k.code[i : i+1])
			if i < len(k.pos) {
				p := position(k.pos[i])
				for j := range n {
					if line+j < len(l.Lines) {
						l.Lines[line+j] = p
					}
				}
			}
			line += n
		}
		from = at + len(head)
	}
	return l, nil
}

// Instruction describes one instruction of PTX.
type Instruction struct {
	// Text is the name, for example "add.u32". For loads and stores it excludes the vector and the
	// type.
	Text string
	// Memory says that the vector and the type follow the name.
	Memory bool
	// Types has the printed names of the types of the result and the operands. It is "" for an
	// absent operand, and for one with a special form.
	Types   [4]string
	Version int // first PTX version that has the instruction, times ten
	Target  Target
}

// Instructions returns all instructions that the builder can generate.
func Instructions() []Instruction {
	var all []Instruction
	for i := range descs {
		d := &descs[i]
		name := d.name()
		if name == "" {
			continue
		}
		in := Instruction{Text: name, Version: int(d.version), Target: d.target,
			Memory: d.layout == layoutLoad || d.layout == layoutStore || d.layout == layoutParam}
		for j, kd := range d.kinds {
			in.Types[j] = kinds[kd].name
		}
		all = append(all, in)
	}
	return all
}
