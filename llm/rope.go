package llm

import "math"

func reciprocalRoot(n int) float32 { return float32(1 / math.Sqrt(float64(n))) }

// frequencies returns the angle between one position and the next for each pair, and the factor of
// the rotated elements. factors, if not nil, divide the frequencies.
func (r *Rope) frequencies(base float32, scaled bool, factors []float32) (f []float32, magnitude float32) {
	n := r.Dimensions
	f, magnitude = make([]float32, n/2), 1
	s := &r.Scaling
	kind := s.Type
	if !scaled {
		kind = ""
	}
	low, high := r.corrections(base)
	for i := range f {
		x := math.Pow(float64(base), -2*float64(i)/float64(n))
		if factors != nil {
			x /= float64(factors[i])
		}
		switch kind {
		case "linear", "longrope":
			x /= float64(s.Factor)
		case "yarn":
			// Short wavelengths do not change, long ones are stretched, with a ramp in between.
			ramp := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
			keep := ramp * float64(s.ExtFactor)
			x = x/float64(s.Factor)*(1-keep) + x*keep
		}
		f[i] = float32(x)
	}
	if kind == "yarn" && s.ExtFactor != 0 {
		magnitude = s.growth(1)
		if s.LogMultiplier != 0 {
			magnitude /= s.growth(s.LogMultiplier)
		}
	}
	if scaled && s.AttentionFactor > 0 {
		magnitude *= s.AttentionFactor
	}
	return f, magnitude
}

// growth returns the growth of magnitudes for yarn.
func (s *Scaling) growth(multiplier float32) float32 {
	return float32(1 + 0.1*float64(multiplier)*math.Log(max(1, float64(s.Factor))))
}

// corrections returns the first and the last pair of yarn's ramp.
func (r *Rope) corrections(base float32) (low, high float64) {
	n := float64(r.Dimensions)
	at := func(beta float32) float64 {
		return n * math.Log(float64(r.Scaling.OriginalContext)/(2*math.Pi*float64(beta))) / (2 * math.Log(float64(base)))
	}
	return max(0, math.Floor(at(r.Scaling.BetaFast))), min(n-1, math.Ceil(at(r.Scaling.BetaSlow)))
}

// plain reports whether the frequencies are powers of the base.
func (r *Rope) plain(scaled bool, factors []float32) bool {
	s := &r.Scaling
	return factors == nil && (!scaled || s.Type == "" && (s.AttentionFactor <= 0 || s.AttentionFactor == 1))
}
