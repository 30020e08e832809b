package block

// LevelGroup is the number of elements for each factor that [Format.Levels] writes.
const LevelGroup = 16

// Levels decodes the blocks of src to small integers and factors, so that products can be integer
// sums. Element i is
//
//	scales[i/16]·levels[i] + biases[i/16]
//
// rounded to float32 after each operation, the same bits as [Format.Dequantize] writes. levels
// has the length of the elements of src, and scales and biases a sixteenth of it. biases may be nil
// for a format without biases: see [Format.Biased]. The error is [ErrFormat] for a scalar format, and
// a [SizeError] for lengths that do not match.
func (f Format) Levels(levels []int8, scales, biases []float32, src []byte) error {
	if err := f.check(len(levels), len(src)); err != nil {
		return err
	}
	groups := len(levels) / LevelGroup
	if f.Scalar() {
		return ErrFormat
	}
	if len(scales) != groups || len(biases) != groups && (f.Biased() || biases != nil) {
		return &SizeError{f, len(levels), len(src)}
	}
	l := f.layout()
	var p parts
	var b [maxBytes + 8]byte
	var y [superElements]float32
	each := l.Elements / LevelGroup
	for ; len(src) > 0; src, levels, scales = src[l.Bytes:], levels[l.Elements:], scales[each:] {
		copy(b[:], src[:l.Bytes])
		l.unpack(&p, b[:])
		l.levels(y[:l.Elements], &p)
		times := l.wholes()
		for i, v := range y[:l.Elements] {
			levels[i] = int8(v * times)
		}
		l.repeated(scales[:each], &l.Scale, p.scale[:], &l.Sub, p.sub[:], 1/times)
		if biases != nil {
			if l.Bias.Encoding != NoFloat {
				l.repeated(biases[:each], &l.Bias, p.bias[:], &l.SubBias, p.subBias[:], 1)
			} else {
				clear(biases[:each])
			}
			biases = biases[each:]
		}
	}
	return nil
}

// Biased reports whether the format adds a bias to the products of scales and levels.
func (f Format) Biased() bool { return f.layout().Bias.Encoding != NoFloat }

// Group returns the number of adjacent elements that share a scale and a summand; 0 for Invalid.
func (f Format) Group() int {
	l := f.layout()
	return l.Elements / max(l.Scale.groups(&l.Sub), l.Bias.groups(&l.SubBias))
}

// LevelRange returns the least and the greatest integer that [Format.Levels] may write; 0
// for a scalar format.
func (f Format) LevelRange() (least, most int) {
	l := f.layout()
	v := &l.Level
	levels := v.Table
	switch {
	case f.Scalar() || v.Number == nil:
		return 0, 0
	case v.Grid != nil:
		levels = v.Grid.alphabet
	case v.Table == nil && v.Signed:
		return -1 << (v.Number.bits() - 1), 1<<(v.Number.bits()-1) - 1
	case v.Table == nil:
		least, most = v.Offset, v.Offset+1<<v.Number.bits()-1
	}
	for _, w := range levels {
		least, most = min(least, int(w)), max(most, int(w))
	}
	if v.Signs != nil {
		most = max(most, -least)
		least = -most
	}
	if v.Shift != nil {
		return least*8 - 1, most*8 + 1
	}
	return least, most
}

// wholes returns the factor that makes levels integers.
func (l *Layout) wholes() float32 {
	if l.Level.Shift != nil {
		return 8 // levels are multiples of 1/8
	}
	return 1
}

// repeated writes factors times a power of two, each repeated for its groups of LevelGroup elements.
func (l *Layout) repeated(dst []float32, f *Float, big []uint32, sub *Integer, small []uint32, times float32) {
	var own [superElements / LevelGroup]float32
	n := f.groups(sub)
	l.factors(own[:n], f, big, sub, small)
	for i := range dst {
		dst[i] = own[i*n/len(dst)] * times
	}
}
