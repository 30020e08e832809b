package main

import (
	"slices"
	"testing"
)

// uploads is a recorder that notes the addresses of uploaded arrays.
type uploads struct {
	exact
	at []*float32
}

func (u *uploads) Upload(data []float32, shape ...int) value {
	u.at = append(u.at, &data[0])
	return u.exact.Upload(data, shape...)
}

// TestNeonUploadsTheSame checks that recording again uploads the same arrays, so that devices can reuse earlier work.
func TestNeonUploadsTheSame(t *testing.T) {
	p := picture{5, 7, make([]float32, 3*5*7)}
	padded := p.extend(margin)
	var first, second uploads
	neon[value](&first, p, padded)
	neon[value](&second, p, padded)
	if len(first.at) < 5 || !slices.Equal(first.at, second.at) {
		t.Errorf("%v, then %v", first.at, second.at)
	}
}
