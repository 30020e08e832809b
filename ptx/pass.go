package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Pass analyses the instructions of a finished kernel: it finds errors, or rewrites. See
// [Module.Apply].
type Pass struct {
	name string
	run  func(b *body)
}

// String returns the name of the pass.
func (p Pass) String() string { return p.name }

// Findings are the errors that passes find.
type Findings []*Error

// Error lists the findings, one in each line.
func (f Findings) Error() string {
	var w strings.Builder
	for i, e := range f {
		if i > 0 {
			w.WriteByte('\n')
		}
		w.WriteString(e.Error())
	}
	return w.String()
}

// Unwrap returns the findings as errors.
func (f Findings) Unwrap() []error {
	all := make([]error, len(f))
	for i, e := range f {
		all[i] = e
	}
	return all
}

// maxFindings is the maximum number of findings of a kernel.
const maxFindings = 100

// Apply runs passes over all kernels of the module, in order. It returns the module's first error
// if there is one, [Findings] if the passes find errors, and otherwise nil.
func (m *Module) Apply(passes ...Pass) error {
	if m.err != nil {
		return m.err
	}
	var found Findings
	for _, k := range m.kernels[:m.n] {
		if k.building {
			continue
		}
		b := &body{k: k}
		k.written, k.headAge = 0, 0 // passes may change the registers
		for _, p := range passes {
			if p.run != nil {
				p.run(b)
			}
		}
		slices.SortStableFunc(b.found, func(x, y finding) int { return x.at - y.at })
		for _, f := range b.found {
			found = append(found, f.err)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// Verify applies all passes that find errors: see [Checks].
func (m *Module) Verify() error { return m.Apply(Checks()...) }

// Checks returns the passes that find errors. They do not change the code.
func Checks() []Pass {
	return []Pass{CheckFlow, CheckDefinitions, CheckBarriers, CheckWarpgroups, CheckTiles, CheckShared}
}

// body is a kernel with the analyses of the passes.
type body struct {
	k           *Kernel
	g           *graph       // nil if it must be computed again
	registerUse *registerUse // nil if it must be computed again
	found       []finding
}

type finding struct {
	at  int
	err *Error
}

// report records an error at instruction i.
func (b *body) report(i int, format string, args ...any) {
	if len(b.found) >= maxFindings {
		return
	}
	e := &Error{Kernel: b.k.name, Msg: fmt.Sprintf(format, args...)}
	if i >= 0 && i < len(b.k.code) {
		e.Msg += ": " + b.text(i)
		e.Pos = b.position(i)
	}
	b.found = append(b.found, finding{i, e})
}

// text returns instruction i as it is printed.
func (b *body) text(i int) string {
	s := string(b.k.appendCode(make([]byte, 0, spare), names(), b.k.code[i:i+1]))
	s = strings.TrimSpace(strings.ReplaceAll(s, "\t", " "))
	if len(s) > 120 {
		s = s[:117] + "..."
	}
	return s
}

func (b *body) position(i int) Position {
	if i < len(b.k.pos) {
		return position(b.k.pos[i])
	}
	return Position{}
}

func (b *body) graph() *graph {
	if b.g == nil {
		b.g = newGraph(b.k)
	}
	return b.g
}

// registerUse counts the writes and reads of each register.
type registerUse struct {
	base   [numClasses]int // number of the first register of each class
	writes []int32         // number of instructions that write each register
	first  []int32         // first instruction that writes each register, -1 for the prologue
	reads  []int32         // number of instructions that read each register
}

// number returns the number of a register among the registers of all classes.
func (f *registerUse) number(v val) int { return f.base[v.tag()-1] + int(v.n()) }

func (b *body) registers() *registerUse {
	if b.registerUse != nil {
		return b.registerUse
	}
	f, n := &registerUse{}, 0
	for c, count := range b.k.regs {
		f.base[c] = n
		n += int(count)
	}
	f.writes, f.first, f.reads = make([]int32, n), make([]int32, n), make([]int32, n)
	var a access
	for i := range b.k.prologue {
		a.of(b.k, &b.k.prologue[i])
		f.count(&a, -1)
	}
	for i := range b.k.code {
		a.of(b.k, &b.k.code[i])
		f.count(&a, int32(i))
	}
	b.registerUse = f
	return f
}

func (f *registerUse) count(a *access, i int32) {
	for _, v := range a.reads {
		f.reads[f.number(v)]++
	}
	for _, v := range a.writes {
		n := f.number(v)
		if f.writes[n]++; f.writes[n] == 1 {
			f.first[n] = i
		}
	}
}

// changed discards the analyses after instructions changed.
func (b *body) changed() { b.g, b.registerUse = nil, nil }

// remove removes the instructions for which gone is true.
func (b *body) remove(gone []bool) {
	k, n := b.k, 0
	for i := range k.code {
		if gone[i] {
			continue
		}
		k.code[n] = k.code[i]
		if i < len(k.pos) {
			k.pos[n] = k.pos[i]
		}
		n++
	}
	k.code = k.code[:n]
	if k.pos != nil {
		k.pos = k.pos[:min(n, len(k.pos))]
	}
	b.changed()
}
