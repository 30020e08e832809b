package wgsl

// Check reports errors of a text that can be found without type checking: errors of syntax; names
// that are undeclared or used before their declaration; declarations that use themselves
// (constants, aliases, structures, functions); unknown attributes and built-in values; and entry
// points with parameters that are not built-in values. It returns nil or a [*CompileError] with
// line and column. The error wraps [kernel.ErrLimit] if the text is correct but too large, for
// example if a lane would load a value of more than 64 KiB. A compiler, which checks types, may
// still reject a text that Check accepts.
// accepts.
//
// Some compilers assume that texts are correct. One of them overflows its stack on a constant that
// is defined in terms of itself. It also accepts an unknown built-in value, and the driver then
// aborts the process.
func Check(text string) error {
	m, err := parse(text)
	if err != nil {
		return err
	}
	return m.check()
}

// checker reads all declarations of a module completely, and resolves the names in them.
type checker struct {
	parser
	lists  map[int]int // template lists: the token after a name at which a list begins, and the token that closes it
	closes map[int]bool
	uses   map[*decl][]use
	inside *decl // the declaration that the checker is reading
	scopes []map[string]*local
	depth  int
	// lenient is set in template lists whose names are not checked, such as texel formats.
	lenient bool
	// large is the first value that is too large for a lane. It is reported only if there is no
	// other error.
	large *CompileError
}

// local is a name that a function declares.
type local struct {
	pointer *Type // target type of a pointer, if it is known and too large for a lane
}

// use is a use of a module-scope name in a declaration: the name and its token.
type use struct {
	of *decl
	at int
}

// maxChecked is the maximum nesting depth of blocks and expressions.
const maxChecked = 512

// check reads the declarations of m. It reports a size limit only if there is no other error.
func (m *module) check() error {
	c := &checker{parser: parser{module: m}, uses: map[*decl][]use{}}
	c.lists, c.closes = m.templates()
	switch err := c.all(); {
	case err != nil:
		return err
	case c.large != nil:
		return costly{c.large}
	}
	return nil
}

// all reads the declarations, and then looks for cycles.
func (c *checker) all() *CompileError {
	for _, d := range c.order {
		if err := c.declaration(d); err != nil {
			return err
		}
	}
	for _, a := range c.asserts {
		c.i = a
		if _, err := c.expression(); err != nil {
			return err
		}
		if err := c.expect(";"); err != nil {
			return err
		}
	}
	return c.cycles()
}

// deeper increments the nesting depth. The caller must decrement it at the end of the level.
func (c *checker) deeper() *CompileError {
	if c.depth++; c.depth > maxChecked {
		return c.fail(c.i, "blocks or expressions are nested deeper than %d levels", maxChecked)
	}
	return nil
}

// declaration reads one declaration of the module.
func (c *checker) declaration(d *decl) *CompileError {
	c.inside, c.scopes = d, nil
	if err := c.attributesOf(d.attrs, onDeclaration[d.kind]); err != nil {
		return err
	}
	switch d.kind {
	case structDecl:
		for _, m := range d.members {
			if err := c.attributesOf(m.attrs, onMember); err != nil {
				return err
			}
			if err := c.typeHere(m.typ); err != nil {
				return err
			}
		}
		return nil
	case aliasDecl:
		if err := c.typeHere(d.typ); err != nil {
			return err
		}
		return c.expect(";")
	case funcDecl:
		return c.function(d)
	}
	c.i = d.at + 1
	if c.accept(":") {
		if err := c.name(false); err != nil {
			return err
		}
	}
	if c.accept("=") {
		return c.closing()
	}
	return c.expect(";") // also reached by an override without a value, which has become a constant without a value
}

// typeHere reads the type at token i.
func (c *checker) typeHere(i int) *CompileError {
	c.i = i
	return c.name(false)
}

// function reads a function.
func (c *checker) function(d *decl) *CompileError {
	entry := find(d.attrs, "compute") != nil
	c.i = d.at + 1
	c.scopes = []map[string]*local{{}}
	if err := c.expect("("); err != nil {
		return err
	}
	for !c.accept(")") {
		if err := c.parameter(entry); err != nil {
			return err
		}
		if !c.accept(",") && !c.tok().is(")") {
			return c.expect(")")
		}
	}
	if c.tok().is("-") && c.toks[c.i+1].is(">") {
		if entry {
			return c.fail(c.i, "entry point %s has a result; a @compute function must not have one", d.name)
		}
		c.i += 2
		attrs, err := c.attributes()
		if err != nil {
			return err
		}
		if err := c.attributesOf(attrs, onValue); err != nil {
			return err
		}
		if err := c.name(false); err != nil {
			return err
		}
	}
	attrs, err := c.attributes()
	if err != nil {
		return err
	}
	if err := c.attributesOf(attrs, onBlock); err != nil {
		return err
	}
	return c.body()
}

// parameter reads a parameter of a function.
func (c *checker) parameter(entry bool) *CompileError {
	attrs, err := c.attributes()
	if err != nil {
		return err
	}
	if err := c.attributesOf(attrs, onValue); err != nil {
		return err
	}
	at := c.i
	own, err := c.declare()
	if err != nil {
		return err
	}
	if err := c.expect(":"); err != nil {
		return err
	}
	typ := c.i
	if err := c.name(false); err != nil {
		return err
	}
	if !entry {
		own.pointer = c.pointee(typ)
		return nil
	}
	if a := find(attrs, "builtin"); a != nil {
		return c.builtIn(a, typ)
	}
	t, err := c.typeAt(typ)
	if err != nil {
		return err
	}
	if t.Kind != Struct {
		return c.fail(at, "parameter %s of the entry point has no @builtin attribute", c.toks[at].text)
	}
	s := c.decls[t.Name]
	if s == nil {
		return c.fail(at, "structure %s is not declared", t.Name)
	}
	for _, m := range s.members {
		a := find(m.attrs, "builtin")
		if a == nil {
			return c.fail(m.typ, "member %s of %s has no @builtin attribute, but an entry point takes %[2]s as a parameter", m.name, t.Name)
		}
		if err := c.builtIn(a, m.typ); err != nil {
			return err
		}
	}
	return nil
}

// builtIns maps the built-in values of @compute functions to their types.
var builtIns = map[string]string{
	"global_invocation_id": "vec3<u32>", "local_invocation_id": "vec3<u32>", "workgroup_id": "vec3<u32>", "num_workgroups": "vec3<u32>",
	"local_invocation_index": "u32", "subgroup_size": "u32", "subgroup_invocation_id": "u32", "subgroup_id": "u32", "num_subgroups": "u32",
}

// drawing has the built-in values of other shader stages.
var drawing = map[string]bool{
	"vertex_index": true, "instance_index": true, "position": true, "front_facing": true, "frag_depth": true, "sample_index": true, "sample_mask": true,
	"clip_distances": true, "primitive_index": true, "view_index": true,
}

// builtIn checks the built-in value of a parameter of a @compute function. typ is the token of the
// parameter's type.
func (c *checker) builtIn(a *attribute, typ int) *CompileError {
	name := c.toks[a.lo].text
	want, ok := builtIns[name]
	if !ok {
		return c.fail(a.lo, "%s is not a built-in value of @compute functions", name)
	}
	t, err := c.typeAt(typ)
	if err != nil {
		return err
	}
	if t.String() != want {
		return c.fail(typ, "built-in value %s must have type %s, not %v", name, want, t)
	}
	return nil
}

// The places in which an attribute may be used.
const (
	onConstant = 1 << iota
	onVariable
	onFunction
	onMember
	onValue // a parameter or a result
	onBlock // or a statement
)

var onDeclaration = map[declKind]int{constDecl: 0, overrideDecl: onConstant, varDecl: onVariable, structDecl: 0, aliasDecl: 0, funcDecl: onFunction}

// known lists the attributes with their positions and numbers of arguments.
var knownAttributes = map[string]struct{ on, least, most int }{
	"align": {onMember, 1, 1}, "size": {onMember, 1, 1}, "binding": {onVariable, 1, 1}, "group": {onVariable, 1, 1}, "id": {onConstant, 1, 1},
	"builtin": {onMember | onValue, 1, 1}, "location": {onMember | onValue, 1, 1}, "interpolate": {onMember | onValue, 1, 2},
	"invariant": {onMember | onValue, 0, 0}, "blend_src": {onMember | onValue, 1, 1}, "compute": {onFunction, 0, 0}, "vertex": {onFunction, 0, 0},
	"fragment": {onFunction, 0, 0}, "workgroup_size": {onFunction, 1, 3}, "must_use": {onFunction, 0, 0}, "diagnostic": {onFunction | onBlock, 2, 2},
}

// wordArguments are the attributes whose arguments are words instead of expressions.
var wordArguments = map[string]bool{"builtin": true, "interpolate": true, "diagnostic": true}

// attributesOf checks the attributes at one place.
func (c *checker) attributesOf(as []attribute, on int) *CompileError {
	for i := range as {
		a := &as[i]
		k, ok := knownAttributes[a.name]
		switch {
		case !ok:
			return c.fail(a.at, "unknown attribute @%s", a.name)
		case k.on&on == 0:
			return c.fail(a.at, "attribute @%s is not allowed here", a.name)
		case find(as[:i], a.name) != nil:
			return c.fail(a.at, "attribute @%s is given twice", a.name)
		case k.least == 0 && a.lo != 0:
			return c.fail(a.at, "attribute @%s takes no arguments", a.name)
		}
		if err := c.arguments(a, k.least, k.most); err != nil {
			return err
		}
	}
	return nil
}

// arguments checks the arguments of an attribute.
func (c *checker) arguments(a *attribute, least, most int) *CompileError {
	old, n := c.i, 0
	for c.i = a.lo; c.i < a.hi; n++ {
		if wordArguments[a.name] {
			if _, err := c.word(); err != nil {
				return err
			}
			if c.accept(".") {
				if _, err := c.word(); err != nil {
					return err
				}
			}
		} else if _, err := c.expression(); err != nil {
			return err
		}
		if c.i < a.hi && !c.accept(",") {
			return c.expect(",")
		}
	}
	if a.lo == 0 {
		n = 0
	}
	if n < least || n > most {
		return c.fail(a.at, "@%s has %d arguments", a.name, n)
	}
	if a.name == "builtin" {
		if name := c.toks[a.lo].text; builtIns[name] == "" && !drawing[name] {
			return c.fail(a.lo, "unknown built-in value %s", name)
		}
	}
	c.i = old
	return nil
}

// cycles returns an error if a declaration uses itself, directly or through other declarations.
func (c *checker) cycles() *CompileError {
	// The path from a declaration is a list instead of recursive calls, because it may be long.
	type step struct {
		d    *decl
		next int
	}
	done, open := map[*decl]bool{}, map[*decl]bool{}
	for _, root := range c.order {
		for mode := []step{{d: root}}; len(mode) > 0; {
			s := &mode[len(mode)-1]
			if s.next == 0 {
				open[s.d] = true
			}
			if done[s.d] || s.next == len(c.uses[s.d]) {
				done[s.d], open[s.d] = true, false
				mode = mode[:len(mode)-1]
				continue
			}
			u := c.uses[s.d][s.next]
			s.next++
			if open[u.of] {
				return c.fail(u.at, "%s is defined in terms of itself", u.of.name)
			}
			if !done[u.of] {
				mode = append(mode, step{d: u.of})
			}
		}
	}
	return nil
}
