package wgsl

// A text can load large values without naming their types: let p = y[i] loads a whole structure.
// The checker therefore tracks the types of module variables, of pointer targets, and of paths from
// them. Other expressions need no tracking: a value computed from values has a type that is named
// in the text, or is small.

// place is memory, or a pointer to memory, with its type if that is known.
type place struct {
	typ     *Type
	pointer bool
}

// placeOf returns the place that a name denotes.
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

// under returns the place that results from a prefix operator on x.
func (x place) under(operator string) place {
	switch operator {
	case "&":
		return place{x.typ, true}
	case "*":
		return place{typ: x.typ}
	}
	return place{} // an operator on numbers gives no place
}

// element returns an element of x. x may be a pointer.
func (x place) element() place {
	if x.typ == nil {
		return place{}
	}
	return place{typ: x.typ.Elem}
}

// member returns a member of x. x may be a pointer.
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

// load records that the value of x is loaded. The expression begins at token at.
func (c *checker) load(x place, at int) {
	if c.large == nil && x.typ != nil && !x.pointer && x.typ.Size > maxOwn {
		c.large = c.fail(at, "the value has %d bytes, and a lane has room for at most %d: use its elements or a pointer to it", x.typ.Size, maxOwn)
	}
}
