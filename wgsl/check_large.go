package wgsl

// A text can load large values without naming their types: let p = y[i] loads a whole structure.
// The checker therefore tracks the types of module variables, of pointer targets, and of paths from
// them. Other expressions need no tracking: a value computed from values has a type that is named
// in the text, or is small.

// place is memory, or a pointer to it, with its type where that is known.
type place struct {
	typ     *Type
	pointer bool
}

// placeOf returns the meaning of a name.
func (c *checker) placeOf(name string) place {
	for i := len(c.scopes) - 1; i >= 0; i-- {
		if l := c.scopes[i][name]; l != nil {
			return place{l.pointer, l.pointer != nil}
		}
	}
	d := c.decls[name]
	if d == nil || d.kind != varDecl || d.typ == 0 {
		return place{}
	}
	t, err := c.typeAt(d.typ)
	if err != nil {
		return place{}
	}
	return place{typ: t}
}

// pointee returns the target type of the pointer type at token i, or nil for another type.
func (c *checker) pointee(i int) *Type {
	end, ok := c.lists[i+1]
	if !ok || !c.toks[i].is("ptr") {
		return nil
	}
	for i += 2; i < end && !c.toks[i].is(","); i++ {
	}
	t, err := c.typeAt(i + 1)
	if err != nil {
		return nil
	}
	return t
}

// under returns the operand of an operator as the operator makes it.
func (x place) under(operator string) place {
	switch operator {
	case "&":
		return place{x.typ, true}
	case "*":
		return place{typ: x.typ}
	}
	return place{} // of numbers
}

// element returns an element of x, also of what x points to.
func (x place) element() place {
	if x.typ == nil {
		return place{}
	}
	return place{typ: x.typ.Elem}
}

// member returns a member of x, likewise.
func (x place) member(name string) place {
	if x.typ == nil {
		return place{}
	}
	for i := range x.typ.Fields {
		if f := &x.typ.Fields[i]; f.Name == name {
			return place{typ: f.Type}
		}
	}
	return place{}
}

// load notes that the value of x, which begins at token at, is used.
func (c *checker) load(x place, at int) {
	if c.large == nil && x.typ != nil && !x.pointer && x.typ.Size > maxOwn {
		c.large = c.fail(at, "a value of %d bytes, of at most %d that a lane has: use its elements, or a pointer to it", x.typ.Size, maxOwn)
	}
}
