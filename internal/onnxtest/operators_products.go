package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var productOperators = map[string]mapping{
	"Attention": attention,
	"Conv":      conv,
	"Gemm":      gemm,
	"MatMul":    matmul,
}

// attention without a mask, a past and what else rayo's lacks.
func attention(r *recorder) []batch.Value {
	q, k := r.shape(0), r.shape(1)
	causal := r.int("is_causal", 0) != 0
	switch {
	case r.has(3) || r.has(4) || r.has(5) || r.has(6):
		return r.refuse("with a mask, a past or lengths")
	case len(q) != 4:
		return r.refuse("of heads side by side")
	case r.float("softcap", 0) != 0:
		return r.refuse("with softcap")
	case causal && q[2] != k[2]:
		return r.refuse("causal from the first key on")
	}
	return one(r.Attention(r.x(0), r.x(1), r.x(2), op.AttentionOpts{Causal: causal, Scale: r.float("scale", 0)}))
}

func conv(r *recorder) []batch.Value {
	pair := func(name string, otherwise int) [2]int {
		list := r.ints(name)
		if list == nil {
			return [2]int{otherwise, otherwise}
		}
		return [2]int{list[0], list[1]}
	}
	if a := r.text("auto_pad", "NOTSET"); a != "NOTSET" {
		return r.refuse("auto_pad %s", a)
	}
	pads := r.ints("pads")
	if pads != nil && (len(pads) != 4 || pads[0] != pads[2] || pads[1] != pads[3]) {
		return r.refuse("pads %v", pads)
	}
	o := op.Conv2DOpts{Stride: pair("strides", 1), Dilation: pair("dilations", 1), Pad: pair("pads", 0), Groups: r.int("group", 1)}
	if r.has(2) {
		return one(r.Conv2DBias(r.x(0), r.x(1), r.x(2), o))
	}
	return one(r.Conv2D(r.x(0), r.x(1), o))
}

func gemm(r *recorder) []batch.Value {
	o := op.MatMulOpts{TransA: r.int("transA", 0) != 0, TransB: r.int("transB", 0) != 0}
	y := r.Scale(r.MatMul(r.x(0), r.x(1), o), r.float("alpha", 1))
	if r.has(2) {
		y = r.Add(y, r.Scale(r.x(2), r.float("beta", 1)))
	}
	return one(y)
}

// matmul makes matrices of vectors, as NumPy does.
func matmul(r *recorder) []batch.Value {
	return one(r.product(r.x(0), r.x(1)))
}

func (r *recorder) product(a, b batch.Value) batch.Value {
	s, t := a.Shape(), b.Shape()
	if r.Err() != nil {
		return batch.Value{}
	}
	if len(s) == 0 || len(t) == 0 {
		r.refuse("product of scalars")
		return batch.Value{}
	}
	out := append(op.Shape{}, s[:len(s)-1]...)
	if len(s) == 1 {
		a = r.Reshape(a, 1, s[0])
	}
	if len(t) == 1 {
		b = r.Reshape(b, t[0], 1)
	}
	y := r.MatMul(a, b)
	if len(s) > 1 && len(t) > 1 {
		return y
	}
	if len(t) > 1 {
		out = append(append(op.Shape{}, t[:len(t)-2]...), t[len(t)-1])
	}
	return r.Reshape(y, out...)
}
