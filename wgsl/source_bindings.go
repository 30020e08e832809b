package wgsl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// An entry point binds the variables that it uses, in order and with consecutive numbers.

// reached returns the declarations that d uses, directly or indirectly, including d.
func (m *module) reached(d *decl) map[*decl]bool {
	seen := map[*decl]bool{d: true}
	for list := []*decl{d}; len(list) > 0; {
		d, list = list[len(list)-1], list[:len(list)-1]
		from := d.lo
		if len(d.attrs) > 0 {
			from = d.attrs[0].at
		}
		for i := from; i < d.hi; i++ {
			t := &m.toks[i]
			if t.kind != wordToken || i > from && m.toks[i-1].is(".") {
				continue
			}
			if x := m.decls[t.text]; x != nil && !seen[x] {
				seen[x] = true
				list = append(list, x)
			}
		}
	}
	return seen
}

// space returns the address space and the access of a variable, empty if it gives none.
func (m *module) space(d *decl) (space, access string) {
	if d.list == 0 {
		return "", ""
	}
	if m.toks[d.list+1].is(",") {
		access = m.toks[d.list+2].text
	}
	return m.toks[d.list].text, access
}

// variables finds the buffers, the parameters and the size of the workgroup memory.
func (u *usage) variables(entry *decl) error {
	m := u.m
	used := m.reached(entry)
	for _, d := range m.order {
		if d.kind != varDecl {
			continue
		}
		space, access := m.space(d)
		if space == "storage" || space == "uniform" {
			u.declared = append(u.declared, d.name)
		}
		if !used[d] || space == "private" {
			continue
		}
		if space != "workgroup" && space != "storage" && space != "uniform" {
			what := "variables of textures and samplers"
			if space != "" {
				what = "variables of address space " + space
			}
			return fmt.Errorf("%s: %s are not supported: %w", d.name, what, op.ErrUnsupported)
		}
		if d.typ == 0 {
			return m.fail(d.at, "%s has no type", d.name)
		}
		t, err := m.typeAt(d.typ)
		if err != nil {
			return err
		}
		if space == "workgroup" {
			if t.runtime() {
				return m.fail(d.at, "%s has no fixed size", d.name)
			}
			u.SharedBytes += roundUp(t.Size, 16)
			continue
		}
		if err := u.bind(d, t, space, access); err != nil {
			return err
		}
	}
	return u.number()
}

// bind adds a buffer or a block of parameters.
func (u *usage) bind(d *decl, t *Type, space, access string) error {
	m := u.m
	var err *CompileError
	v := Variable{Name: d.name, Type: t}
	if v.Group, err = m.location(d, "group"); err != nil {
		return err
	}
	if v.Binding, err = m.location(d, "binding"); err != nil {
		return err
	}
	switch {
	case space == "uniform":
		if t.runtime() {
			return m.fail(d.at, "%s has no fixed size", d.name)
		}
		if t.Size > maxParamBytes {
			return fmt.Errorf("%s has %d bytes of parameters; at most %d are supported: %w", d.name, t.Size, maxParamBytes, op.ErrUnsupported)
		}
		u.Uniforms, u.uniforms = append(u.Uniforms, v), append(u.uniforms, d)
		return nil
	case access == "read_write":
		v.Access = ReadWrite
	case access != "" && access != "read":
		return m.fail(d.list+2, "the access of a buffer must be read or read_write")
	}
	u.Buffers, u.vars = append(u.Buffers, v), append(u.vars, d)
	return nil
}

// Every device supports these numbers of bytes of uniform memory, and of uniform buffers of a
// kernel.
const (
	maxParamBytes = 64 << 10
	maxUniforms   = 12
)

// location returns the number of a group or binding.
func (m *module) location(d *decl, name string) (uint32, *CompileError) {
	a := find(d.attrs, name)
	if a == nil {
		return 0, m.fail(d.at, "%s has no @%s", d.name, name)
	}
	r := m.at(a.lo)
	n, err := r.count(false)
	if err == nil {
		r.accept(",")
		if r.i != a.hi {
			return 0, r.fail(r.i, "expected \")\", found %s", r.found())
		}
	}
	return n, err
}

// number sorts the buffers and the uniforms, and numbers them in the text from 0 on. The uniforms
// come last.
func (u *usage) number() error {
	u.Buffers, u.vars = inOrder(u.Buffers, u.vars)
	u.Uniforms, u.uniforms = inOrder(u.Uniforms, u.uniforms)
	all, decls := slices.Concat(u.Buffers, u.Uniforms), slices.Concat(u.vars, u.uniforms)
	at := map[uint64]string{}
	for i := range all {
		p := all[i].place()
		if other := at[p]; other != "" {
			return u.m.fail(decls[i].at, "%s and %s are both binding %d of group %d", other, all[i].Name, all[i].Binding, all[i].Group)
		}
		at[p] = all[i].Name
		u.renumber(decls[i], "group", 0)
		u.renumber(decls[i], "binding", i)
	}
	return u.parameters()
}

// place returns a number that orders variables by group and binding.
func (v *Variable) place() uint64 { return uint64(v.Group)<<32 | uint64(v.Binding) }

// inOrder sorts variables together with their declarations.
func inOrder(vars []Variable, decls []*decl) ([]Variable, []*decl) {
	order := make([]int, len(vars))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(vars[i].place(), vars[j].place()) })
	var sorted []Variable
	var with []*decl
	for _, from := range order {
		sorted, with = append(sorted, vars[from]), append(with, decls[from])
	}
	return sorted, with
}

// parameters sets Params from the uniforms.
func (u *usage) parameters() error {
	switch n := len(u.Uniforms); {
	case n == 0:
		return nil
	case n == 1:
		u.Params = &u.Uniforms[0]
		return nil
	case n > maxUniforms:
		return fmt.Errorf("the text has %d uniform variables; at most %d are supported: %w", n, maxUniforms, op.ErrUnsupported)
	}
	t := &Type{Kind: Struct, Name: "the uniforms", Align: ir.BlockAlign}
	for i := range u.Uniforms {
		v := &u.Uniforms[i]
		t.Fields = append(t.Fields, Field{v.Name, v.Type, roundUp(t.Size, ir.BlockAlign)})
		t.Size = roundUp(t.Size, ir.BlockAlign) + v.Type.Size
	}
	if t.Size > maxParamBytes {
		return fmt.Errorf("the uniform variables have %d bytes of parameters; at most %d are supported: %w", t.Size, maxParamBytes, op.ErrUnsupported)
	}
	u.Params = &Variable{Name: t.Name, Type: t}
	return nil
}

func (u *usage) renumber(d *decl, name string, n int) {
	a := find(d.attrs, name)
	at, end := u.m.toks[a.lo].at, u.m.toks[a.hi-1].end()
	text := strconv.Itoa(n)
	u.edits = append(u.edits, edit{at, end, text + strings.Repeat(" ", max(0, end-at-len(text)))})
}
