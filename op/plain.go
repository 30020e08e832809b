package op

// Plain reports whether an elementwise operation takes float32 operands and
// gives a float32 result.
func (o *Operation) Plain() bool { return o.def().plain }

// setPlain sets the field plain, which Plain reports.
func (o *definition) setPlain() {
	if o.class != Elementwise || o.err != nil {
		return
	}
	var in [MaxInputs]DType
	for i := range in {
		in[i] = F32
	}
	a := o.defaults()
	rule := o.types
	if rule == nil {
		rule = floats
	}
	out, err := rule(&a, in[:o.arity[1]])
	o.plain = err == nil && out[0] == F32
}
