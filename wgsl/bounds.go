package wgsl

import "github.com/rayo-go/rayo/kernel"

// Drivers inline functions, and put private arrays into registers or spill slots, element by
// element. For a short text this can take minutes and gigabytes, and nothing can interrupt it.
// These limits prevent such compilations. They are far above the sizes of practical kernels.
const (
	// maxExpanded limits the number of tokens of the entry point with all calls inlined. Lavapipe
	// takes about ten seconds for this many.
	maxExpanded = 1 << 19
	// maxOwn limits the bytes of the variables of one function, and of the private variables. The
	// language guarantees 8 KiB.
	maxOwn = 64 << 10
	// maxUnknown limits the unknown types in a function. Beyond it, the check leaves errors to the
	// compiler, so that its time stays linear in the text.
	maxUnknown = 256
)

// costly is the error of a text that exceeds these limits: a [*CompileError] and [kernel.ErrLimit].
type costly struct{ *CompileError }

func (e costly) Unwrap() []error { return []error{e.CompileError, kernel.ErrLimit} }

// bounded returns an error if the text exceeds the limits, and nil otherwise.
func (u *usage) bounded(entry *decl) *CompileError {
	m := u.m
	used := m.reached(entry)
	private := uint64(0)
	for _, d := range m.order {
		if !used[d] || d.kind != funcDecl && (d.kind != varDecl || d.list == 0 || m.toks[d.list].text != "private") {
			continue
		}
		sum := uint64(0)
		if d.kind == varDecl {
			sum = private
		}
		at, n := m.own(d, sum)
		if n > maxOwn {
			return m.fail(at, "%s has %d bytes of variables for each lane; at most %d are allowed: use a buffer instead", d.name, n, maxOwn)
		}
		if d.kind == varDecl {
			private = n
		}
	}
	if m.expanded(entry, map[*decl]uint64{}) > maxExpanded {
		return m.fail(entry.at, "%s is too long: with all calls inlined, it has more than %d tokens", entry.name, maxExpanded)
	}
	return nil
}

// own returns the total bytes of the variables of a declaration and those before it, and the token
// at which the limit is exceeded. It counts variables with a declared type, and any other value
// whose type alone exceeds the limit. Other checks report invalid types.
func (m *module) own(d *decl, sum uint64) (at int, n uint64) {
	variable, unknown := d.kind == varDecl, 0
	for i := d.at; i < d.hi && unknown < maxUnknown; i++ {
		t := &m.toks[i]
		if t.kind != wordToken {
			variable = variable && !t.is(";")
			continue
		}
		if t.text == "var" {
			variable = true
			continue
		}
		if t.text == "ptr" && m.toks[i+1].is("<") { // a pointer needs no memory for its target
			p := &parser{module: m, i: i + 1}
			if p.skipList() == nil {
				i = p.i - 1
			}
			continue
		}
		declared := m.decls[t.text]
		if t.text != "array" && (declared == nil || declared.kind != structDecl && declared.kind != aliasDecl) || m.toks[i-1].is(".") {
			continue
		}
		r := m.at(i)
		typ, err := r.typ()
		if err != nil {
			unknown++
			continue
		}
		if variable {
			sum += typ.Size
			variable = false
		}
		if n := max(sum, typ.Size); n > maxOwn {
			return i, n
		}
		i = max(i, r.i-1)
	}
	return d.at, sum
}

// expanded returns the number of tokens of a function after inlining all its calls.
func (m *module) expanded(d *decl, known map[*decl]uint64) uint64 {
	if n, ok := known[d]; ok {
		return n
	}
	known[d] = 0 // the value for a function that calls itself; compilers reject it
	n := uint64(d.hi - d.lo)
	for i := d.at + 1; i < d.hi; i++ {
		if t := &m.toks[i]; t.kind == wordToken && m.toks[i+1].is("(") && !m.toks[i-1].is(".") {
			if f := m.decls[t.text]; f != nil && f.kind == funcDecl {
				n = min(n+m.expanded(f, known), 2*maxExpanded)
			}
		}
	}
	known[d] = n
	return n
}
