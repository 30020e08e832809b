package wgsl

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Source is a kernel that a user wrote in WGSL. Device.Kernel of package device prepares it for
// running on WebGPU devices.
//
//	k, err := dev.Kernel(ctx, wgsl.Source{Text: `
//		struct Params { scale: f32, n: u32 }
//		@group(0) @binding(0) var<storage, read> x: array<f32>;
//		@group(0) @binding(1) var<storage, read_write> y: array<f32>;
//		@group(0) @binding(2) var<uniform> params: Params;
//
//		@compute @workgroup_size(64)
//		fn scale(@builtin(global_invocation_id) id: vec3u) {
//			if id.x < params.n { y[id.x] = params.scale * x[id.x]; }
//		}`})
//	err = k.Run(ctx, k.GridFor(len(x)), struct{ Scale float32; N uint32 }{2, uint32(len(x))}, device.In(x), device.Out(y))
//
// # Buffers
//
// The buffers are the storage variables that the entry point or its callees use, in the order of
// group and binding; the numbers need not be consecutive. Pass a variable that is declared read by
// In, and a read_write variable by Out or InOut. An array whose elements consist of only one of the
// types f32, i32, u32 and f16 takes a Go slice of that type; the elements may be scalars, vectors,
// matrices or structures (a vec3 has an unused fourth component in memory). An array of structures
// that mix types takes a slice of any type of four bytes. InStructs, OutStructs and InOutStructs
// take slices of a Go struct whose fields have WGSL's offsets; otherwise the error reports both
// offsets. The length of a slice must be a nonzero multiple of the length of an element.
//
// # Parameters
//
// The uniform variables are the parameters. A single variable corresponds to the whole parameter
// struct; several variables correspond to its fields. A WGSL structure corresponds to a Go struct
// with the same fields in any order; a field has the name of the member, ignoring case and
// underscores (MaxSteps is max_steps), or as its tag wgsl:"name" says. f32, i32 and u32 are
// float32, int32 and uint32, f16 is [op.Float16]; vectors and arrays are Go arrays, matrices arrays
// of columns. The values are copied to WGSL's offsets, so the Go struct needs no padding. Members
// whose names begin with an underscore may be missing in Go and are then 0; fields named _ are
// ignored.
//
// # Safety and features
//
// rayo does not trust the text: indices out of bounds do not access other buffers, and mistakes
// give a [*CompileError] with line and column. Overrides become constants before compilation. The
// directive "enable subgroups;" is optional: rayo adds or removes it for each compiler.
type Source struct {
	Text string
	// Name is used in messages; by default it is the name of the entry point.
	Name string
	// Entry is the name of the entry point. It may be "" if the text has only one @compute
	// function.
	Entry string
	// Constants are the values of overrides. A bool is 0 or 1.
	Constants map[string]float64
}

// Interface describes the bindings and parameters of a [Source].
type Interface struct {
	Entry       string
	Local       [3]uint32 // lanes of a workgroup along x, y and z
	Buffers     []Variable
	Uniforms    []Variable
	Params      *Variable // the uniforms: one variable, or a structure of several; nil without uniforms
	SharedBytes uint64    // bytes of workgroup memory
	Needs       Feature
}

// Variable is a buffer or the parameters.
type Variable struct {
	Name           string
	Group, Binding uint32 // the numbers in the text
	Access         Access
	Type           *Type
}

// Interface parses the declarations of the text and returns its bindings. An error in a declaration
// is a [*CompileError]. Interface does not find other errors.
func (s Source) Interface() (*Interface, error) {
	u, err := s.use()
	if err != nil {
		return nil, err
	}
	return &u.Interface, nil
}

// usage describes the use of a text by one entry point.
type usage struct {
	Interface
	m        *module
	name     string
	vars     []*decl // declarations of Buffers
	uniforms []*decl
	edits    []edit
	blank    map[*decl]bool // declarations whose names are not in the edited text
	unfolds  bool           // the text reads the number of workgroups, so it may support folded grids
	declared []string
}

// edit replaces bytes of the text.
type edit struct {
	at, end int
	text    string
}

func (s Source) name() string { return cmp.Or(s.Name, s.Entry, "wgsl") }

// label adds the name of the source to an error.
func (s Source) label(err *CompileError) error {
	err.Label = s.name()
	return err
}

func (s Source) use() (*usage, error) {
	m, cerr := parse(s.Text)
	if cerr != nil {
		return nil, s.label(cerr)
	}
	u := &usage{m: m}
	entry, err := s.entry(m)
	if err != nil {
		return nil, err
	}
	u.Entry, u.name = entry.name, cmp.Or(s.Name, entry.name)
	s.Name = u.name
	used := m.reached(entry)
	u.others(entry, used)
	if err := u.constants(s.Constants, used); err != nil {
		return nil, s.label(err)
	}
	if err := u.local(entry); err != nil {
		return nil, s.label(err)
	}
	u.features()
	if err := u.variables(entry); err != nil {
		if c, ok := err.(*CompileError); ok {
			return nil, s.label(c)
		}
		return nil, fmt.Errorf("wgsl: %s: %w", u.name, err)
	}
	if err := u.bounded(entry); err != nil {
		return nil, costly{s.label(err).(*CompileError)}
	}
	if err := m.check(); err != nil {
		var mistake *CompileError
		if errors.As(err, &mistake) {
			mistake.Label = s.name()
		}
		return nil, err
	}
	return u, nil
}

// entry returns the entry point.
func (s Source) entry(m *module) (*decl, error) {
	var all []string
	var found *decl
	for _, d := range m.order {
		if d.kind != funcDecl || find(d.attrs, "compute") == nil {
			continue
		}
		all = append(all, d.name)
		if s.Entry == "" || s.Entry == d.name {
			found = d
		}
	}
	switch {
	case len(all) == 0:
		return nil, s.label(&CompileError{Message: "the text has no @compute function"})
	case found == nil:
		return nil, s.label(&CompileError{Message: fmt.Sprintf("the text has no @compute function %s; it has %s", s.Entry, strings.Join(all, ", "))})
	case s.Entry == "" && len(all) > 1:
		return nil, s.label(&CompileError{Message: "the text has several @compute functions, " + strings.Join(all, ", ") + ": name the entry point in Source.Entry"})
	}
	return found, nil
}

// others blanks the declarations that this entry point does not use, because their bindings may
// equal its own bindings and their overrides may have no values. It keeps functions that no entry
// point calls, so that the compiler checks them.
func (u *usage) others(entry *decl, used map[*decl]bool) {
	m := u.m
	called := map[*decl]bool{}
	for _, d := range m.order {
		if d.kind == funcDecl && (find(d.attrs, "compute") != nil || find(d.attrs, "vertex") != nil || find(d.attrs, "fragment") != nil) {
			for x := range m.reached(d) {
				called[x] = true
			}
		}
	}
	kept := maps.Clone(used)
	for _, d := range m.order {
		if d.kind == funcDecl && !called[d] {
			maps.Copy(kept, m.reached(d))
		}
	}
	for _, at := range m.asserts {
		end := at
		for !m.toks[end].is(";") && m.toks[end].kind != endToken {
			end++
		}
		maps.Copy(kept, m.reached(&decl{lo: at, hi: end}))
	}
	u.blank = map[*decl]bool{}
	for _, d := range m.order {
		if kept[d] || d.kind != funcDecl && d.kind != varDecl && d.kind != overrideDecl {
			continue
		}
		u.blank[d] = true
		first := d.lo
		if len(d.attrs) > 0 {
			first = d.attrs[0].at
		}
		at, end := m.toks[first].at, m.toks[d.hi-1].end()
		u.edits = append(u.edits, edit{at, end, blanks(m.text[at:end])})
	}
}

// blanks returns the text with a space for each character except line feeds.
func blanks(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// constants replaces overrides by constants.
func (u *usage) constants(values map[string]float64, used map[*decl]bool) *CompileError {
	m := u.m
	for _, d := range m.order {
		if d.kind != overrideDecl || u.blank[d] {
			continue
		}
		// The edits keep the columns of a line if possible.
		word := m.toks[d.lo]
		u.edits = append(u.edits, edit{word.at, word.end(), "const   "})
		for _, a := range d.attrs {
			at, end := m.toks[a.at].at, m.toks[a.end-1].end()
			u.edits = append(u.edits, edit{at, end, strings.Repeat(" ", end-at)})
		}
		v, ok := values[d.name]
		switch {
		case ok:
		case d.init != 0:
			continue
		case used[d]:
			return m.fail(d.at, "%s has no value: give it one in Source.Constants", d.name)
		default:
			v = 1 // the override belongs to a function that is never called, so any value is fine
		}
		text, err := m.literal(d, v)
		if err != nil {
			return err
		}
		last := m.toks[d.hi-1] // the semicolon
		if d.init != 0 {
			u.edits = append(u.edits, edit{m.toks[d.init].at, last.at, text})
		} else {
			u.edits = append(u.edits, edit{last.at, last.at, " = " + text})
		}
		d.evaluated = v == math.Trunc(v) && math.Abs(v) <= maxConstant
		d.value = int64(v)
		if !d.evaluated {
			d.init = 0 // no size depends on the value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if d := m.decls[name]; d == nil || d.kind != overrideDecl {
			return &CompileError{Message: fmt.Sprintf("Source.Constants has a value for %s, but the text has no override of that name", name)}
		}
	}
	return nil
}

// literal returns v as a literal of the type of an override.
func (m *module) literal(d *decl, v float64) (string, *CompileError) {
	name := ""
	switch {
	case d.typ != 0:
		t, err := m.typeAt(d.typ)
		if err != nil {
			return "", err
		}
		name = t.String()
	case d.init != 0:
		i := d.init
		if m.toks[i].is("-") {
			i++
		}
		if m.toks[i+1].is(";") {
			name = literalType(m.toks[i].text)
		}
	}
	fail := func() (string, *CompileError) {
		return "", m.fail(d.at, "%v is not a valid value for override %s of type %s", v, d.name, name)
	}
	switch name {
	case "f32", "f16":
		if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > math.MaxFloat32 || name == "f16" && math.Abs(v) > 65504 {
			return fail()
		}
		text := strconv.FormatFloat(v, 'e', -1, 64)
		return text + map[string]string{"f32": "f", "f16": "h"}[name], nil
	case "i32":
		if v != math.Trunc(v) || v < math.MinInt32 || v > math.MaxInt32 {
			return fail()
		}
		return fmt.Sprintf("i32(%d)", int64(v)), nil
	case "u32":
		if v != math.Trunc(v) || v < 0 || v > math.MaxUint32 {
			return fail()
		}
		return fmt.Sprintf("%du", int64(v)), nil
	case "bool":
		if v != 0 && v != 1 {
			return fail()
		}
		return strconv.FormatBool(v == 1), nil
	case "":
		return "", m.fail(d.at, "the type of override %s is unknown: declare it", d.name)
	}
	return fail()
}

// literalType returns the type of an override whose initialiser is a single token, or "".
func literalType(word string) string {
	switch {
	case word == "true", word == "false":
		return "bool"
	case strings.HasSuffix(word, "u"):
		return "u32"
	case strings.HasSuffix(word, "h"):
		return "f16"
	}
	if _, err := strconv.ParseInt(strings.TrimSuffix(word, "i"), 0, 64); err == nil {
		return "i32"
	}
	if _, err := strconv.ParseFloat(strings.TrimSuffix(word, "f"), 64); err == nil {
		return "f32"
	}
	return ""
}

// local computes the size of a workgroup.
func (u *usage) local(entry *decl) *CompileError {
	a := find(entry.attrs, "workgroup_size")
	if a == nil {
		return u.m.fail(entry.at, "%s has no @workgroup_size", entry.name)
	}
	u.Local = [3]uint32{1, 1, 1}
	r := u.m.at(a.lo)
	for i := 0; r.i < a.hi; i++ {
		at := r.i
		if i == 3 {
			return r.fail(at, "@workgroup_size has more than three arguments")
		}
		n, err := r.count(false)
		if err != nil {
			return err
		}
		if n == 0 {
			return r.fail(at, "the workgroup has no lanes: @workgroup_size must not be 0")
		}
		u.Local[i] = n
		if r.i < a.hi {
			if err := r.expect(","); err != nil {
				return err
			}
		}
	}
	return nil
}

// features finds the features that the text enables.
func (u *usage) features() {
	for _, e := range u.m.enables {
		for _, name := range e.names {
			switch name {
			case "f16":
				u.Needs |= Half
			case "subgroups":
				u.Needs |= Subgroups
			}
		}
	}
	for i := range u.m.toks {
		t := &u.m.toks[i]
		if t.kind != wordToken {
			continue
		}
		if rest, ok := strings.CutPrefix(t.text, "subgroup"); ok && rest != "" && (rest[0] >= 'A' && rest[0] <= 'Z' || t.text == "subgroup_size" ||
			t.text == "subgroup_invocation_id") && u.m.decls[t.text] == nil {
			u.Needs |= Subgroups
		}
		u.unfolds = u.unfolds || t.text == "num_workgroups"
	}
}

// edited returns the text after the edits.
func (u *usage) edited() string {
	slices.SortStableFunc(u.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	at := 0
	for _, e := range u.edits {
		b.WriteString(u.m.text[at:e.at])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(u.m.text[at:])
	return b.String()
}

// Kernel returns the kernel of the text. [kernel.Kernel.Err] returns an error in the text, which is
// mostly a [*CompileError].
func (s Source) Kernel() *kernel.Kernel {
	p, t, err := s.program()
	k := new(kernel.Kernel)
	k.Text, k.Programs = t, ir.Fixed{P: p, Err: err}
	return k
}

func (s Source) program() (*ir.Program, *ir.KernelText, error) {
	textPrinterMade.Do(useTexts)
	u, err := s.use()
	if err != nil {
		return nil, nil, err
	}
	p := &ir.Program{Name: u.name, Local: u.Local, Text: &ir.Text{Language: ir.WGSL, Source: u.edited(), Entry: u.Entry,
		SharedBytes: u.SharedBytes, Features: uint32(u.Needs)}}
	for i := range u.Buffers {
		b, l, err := binding(&u.Buffers[i])
		if err != nil {
			return nil, nil, fmt.Errorf("wgsl: %s: %w", u.name, err)
		}
		p.Bindings = append(p.Bindings, b)
		p.Text.Layouts = append(p.Text.Layouts, l)
	}
	e := &encoder{name: u.name}
	if u.Params != nil {
		e.typ = u.Params.Type
		p.Text.ParamBytes = uint32(roundUp(e.typ.Size, 16))
		p.Uniforms = []ir.Uniform{{Name: u.Params.Name, Type: ir.U32}}
		p.Text.Blocks = []ir.Block{{Bytes: p.Text.ParamBytes}}
		if len(u.Uniforms) > 1 {
			p.Text.Blocks = nil
			for _, f := range e.typ.Fields {
				p.Text.Blocks = append(p.Text.Blocks, ir.Block{Offset: uint32(f.Offset), Bytes: uint32(roundUp(f.Type.Size, 16))})
			}
		}
	}
	t := &ir.KernelText{Params: e.encode, Elements: func(i int, t reflect.Type) error { return elements(&u.Buffers[i], t) }}
	if !u.unfolds {
		t.Folded = "does not look at num_workgroups: workgroup (x, y) of a folded grid is number x + y*num_workgroups.x"
	}
	return p, t, nil
}

// binding returns the description of a buffer for the planner.
func binding(v *Variable) (ir.Binding, ir.Layout, error) {
	b := ir.Binding{Name: v.Name, Type: ir.U32, Width: 1, Access: ir.ReadOnly}
	if v.Access == ReadWrite {
		b.Access = ir.ReadWrite
	}
	l := ir.Layout{}
	switch v.Type.set {
	case setF32:
		b.Type = ir.F32
	case setI32:
		b.Type = ir.I32
	case setU32:
	case setF16:
		b.Type = ir.F16
	default:
		l.Mixed = true
		if v.Type.set&setBool != 0 {
			return b, l, fmt.Errorf("%s has bools, which cannot be stored in a buffer: %w", v.Name, op.ErrUnsupported)
		}
	}
	head, stride := v.Type.Size, uint64(0)
	if v.Type.runtime() {
		last := v.Type
		head = 0
		if last.Kind == Struct {
			f := &last.Fields[len(last.Fields)-1]
			head, last = f.Offset, f.Type
		}
		stride = last.Stride
	}
	if head >= 1<<31 || stride >= 1<<31 {
		return b, l, fmt.Errorf("%s has elements of %d bytes, which is too large: %w", v.Name, max(head, stride), op.ErrUnsupported)
	}
	l.Head, l.Stride = uint32(head), uint32(stride)
	return b, l, nil
}
