package block

import "math"

// This file has the decoder that is derived from a [Layout].

// parts has the fields of one block.
type parts struct {
	scale, bias  [16]uint32 // in the encoding of the block
	sub, subBias [16]uint32
	code         [superElements]uint32
	sign         [superElements]uint32
	shift        [32]uint32
}

// numbers calls visit with each number of the layout and its place in p.
func (l *Layout) numbers(p *parts, visit func(n Number, v []uint32)) {
	for _, f := range []struct {
		n Number
		v []uint32
	}{
		{l.Scale.Number, p.scale[:]}, {l.Bias.Number, p.bias[:]},
		{l.Sub.Number, p.sub[:]}, {l.SubBias.Number, p.subBias[:]},
		{l.Level.Number, p.code[:]}, {l.Level.Signs, p.sign[:]}, {l.Level.Shift, p.shift[:]},
	} {
		if len(f.n) > 0 {
			visit(f.n, f.v[:f.n.Items()])
		}
	}
}

// unpack splits a block into its fields. b must have 8 extra bytes at the end.
func (l *Layout) unpack(p *parts, b []byte) {
	l.numbers(p, func(n Number, v []uint32) { n.unpack(v, b) })
}

// pack is the inverse of unpack.
func (l *Layout) pack(b []byte, p *parts) {
	clear(b)
	l.numbers(p, func(n Number, v []uint32) { n.pack(b, v) })
}

// value returns the factor that v encodes.
func (n *Integer) value(v uint32) float32 {
	i := int32(v)
	if n.Signed {
		unused := 32 - n.Number.bits()
		i = i << unused >> unused
	}
	return n.Mul*float32(i) + n.Add
}

// factors writes the products of the scales and their small factors, one for
// each of len(dst) groups of the block.
func (l *Layout) factors(dst []float32, f *Float, big []uint32, sub *Integer, small []uint32) {
	bigs := len(dst) / max(1, f.Number.Items())
	for i := range dst {
		dst[i] = f.Encoding.float(big[i/bigs])
		if sub.Number != nil {
			dst[i] *= sub.value(small[i])
		}
	}
}

// groups returns the number of groups of elements with a factor of their own.
func (f *Float) groups(sub *Integer) int {
	return max(1, f.Number.Items(), sub.Number.Items())
}

// levels writes the levels of a block.
func (l *Layout) levels(y []float32, p *parts) {
	v := &l.Level
	switch {
	case v.Number == nil:
		for i := range y {
			y[i] = 1
		}
	case v.Grid != nil:
		width := v.Grid.Width
		for i := range len(y) / width {
			for j, g := range v.Grid.row(int(p.code[i])) {
				y[i*width+j] = float32(g)
			}
		}
	case v.Table != nil:
		for i := range y {
			y[i] = float32(v.Table[p.code[i]])
		}
	case v.Signed:
		unused := 32 - v.Number.bits()
		for i := range y {
			y[i] = float32(int32(p.code[i]<<unused) >> unused)
		}
	default:
		for i := range y {
			y[i] = float32(int32(p.code[i]) + int32(v.Offset))
		}
	}
	if v.Signs != nil {
		v.negate(y, p)
	}
	if v.Shift != nil {
		each := len(y) / v.Shift.Items()
		for i := range y {
			y[i] += 0.125 - 0.25*float32(p.shift[i/each])
		}
	}
}

// negate applies the signs to the levels.
func (v *Level) negate(y []float32, p *parts) {
	if len(y) == v.Signs.Items() {
		for i := range y {
			if p.sign[i] != 0 {
				y[i] = -y[i]
			}
		}
		return
	}
	for i := range y {
		if evenSigns(p.sign[i/8])>>(i%8)&1 != 0 {
			y[i] = -y[i]
		}
	}
}

// evenSigns adds to 7 signs the eighth, which makes the number of negative elements
// even.
func evenSigns(v uint32) uint32 {
	p := v ^ v>>4
	p ^= p >> 2
	p ^= p >> 1
	return v | p&1<<7
}

// decode writes the numbers of one block, or, for [Format.Magnitudes], the sums
// of the magnitudes of their terms. b has 8 bytes more than the block.
func (l *Layout) decode(y []float32, b []byte, p *parts, magnitudes bool) {
	l.unpack(p, b)
	l.levels(y, p)
	var scales, biases [16]float32
	s := scales[:l.Scale.groups(&l.Sub)]
	l.factors(s, &l.Scale, p.scale[:], &l.Sub, p.sub[:])
	m := biases[:1]
	if l.Bias.Encoding != NoFloat {
		m = biases[:l.Bias.groups(&l.SubBias)]
		l.factors(m, &l.Bias, p.bias[:], &l.SubBias, p.subBias[:])
	}
	each, eachBias := len(y)/len(s), len(y)/len(m)
	for i := range s {
		scale, bias := s[i], m[i*each/eachBias]
		y := y[i*each:][:each]
		switch {
		case magnitudes:
			for j, v := range y {
				y[j] = magnitude(float32(scale*v)) + magnitude(bias)
			}
		case l.Bias.Encoding == NoFloat:
			for j, v := range y {
				y[j] = scale * v
			}
		default:
			for j, v := range y {
				y[j] = float32(scale*v) + bias
			}
		}
	}
}

// dequantize decodes whole blocks.
func (l *Layout) dequantize(dst []float32, src []byte, magnitudes bool) {
	var p parts
	var b [maxBytes + 8]byte
	for ; len(src) >= l.Bytes; src, dst = src[l.Bytes:], dst[l.Elements:] {
		copy(b[:], src[:l.Bytes])
		l.decode(dst[:l.Elements], b[:], &p, magnitudes)
	}
}

// top returns the greatest magnitude of a level times a small factor.
func (l *Layout) top() float32 {
	level := float32(0)
	switch v := &l.Level; {
	case v.Grid != nil:
		for _, g := range v.Grid.alphabet {
			level = max(level, magnitude(float32(g)))
		}
		level += 0.125
	case v.Table != nil:
		for _, t := range v.Table {
			level = max(level, magnitude(float32(t)))
		}
	case v.Number != nil:
		level = float32(math.Ldexp(1, v.Number.bits()))
	default:
		return 1
	}
	if l.Sub.Number != nil {
		level *= max(magnitude(l.Sub.value(0)), magnitude(l.Sub.value(1<<l.Sub.Number.bits()-1)), 128)
	}
	return level
}

// halves returns the byte offsets of the scales in a block, if each is a binary16 in
// two bytes.
func (l *Layout) halves() (at []int, ok bool) {
	for _, f := range []*Float{&l.Scale, &l.Bias} {
		n := f.Number
		if f.Encoding == NoFloat {
			continue
		}
		if f.Encoding != Binary16 || len(n) != 1 || n.Items() != 1 {
			return nil, false
		}
		at = append(at, n[0].At/8)
	}
	return at, len(at) > 0
}

// checkScales returns the index of the first block with a scale for which a number
// may not be finite, or -1.
func (l *Layout) checkScales(f Format, src []byte) int {
	var p parts
	var b [maxBytes + 8]byte
	var y [1]float32
	top := float64(l.top())
	for i := 0; i < len(src); i += l.Bytes {
		if l.Elements == 1 {
			if f.dequantize(y[:], src[i:][:l.Bytes]); y[0]-y[0] != 0 {
				return i / l.Bytes
			}
			continue
		}
		copy(b[:], src[i:][:l.Bytes])
		scales := p.scale[:l.Scale.Number.Items()]
		l.Scale.Number.unpack(scales, b[:])
		for _, s := range scales {
			if v := float64(l.Scale.Encoding.float(s)) * top; !(math.Abs(v) <= math.MaxFloat32) {
				return i / l.Bytes
			}
		}
	}
	return -1
}
