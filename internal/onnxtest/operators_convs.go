package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var convOperators = map[string]mapping{
	"CausalConvWithState": causalConv,
	"Col2Im":              col2Im,
	"Conv":                conv,
	"ConvTranspose":       convTranspose,
}

func conv(r *recorder) []batch.Value { return one(r.convolve(r.x(0), r.x(1), r.x(2))) }

// convolve pads by the operation where both sides have the same padding. The zero
// Value stands for no bias.
func (r *recorder) convolve(x, w, bias batch.Value) batch.Value {
	if len(w.Shape()) != 4 {
		r.refuse("of %v with %v", x.Shape(), w.Shape())
		return batch.Value{}
	}
	o := op.Conv2DOpts{Groups: r.int("group", 1)}
	for i, s := range r.slidings(x.Shape()[2:], w.Shape()[2:]) {
		o.Stride[i], o.Dilation[i] = s.stride, s.dilation
		if s.before == s.after {
			o.Pad[i] = s.before
		} else {
			x = r.Pad(x, 2+i, s.before, s.after, 0)
		}
	}
	if bias == (batch.Value{}) {
		return r.Conv2D(x, w, o)
	}
	return r.Conv2DBias(x, w, bias, o)
}

// causalConv is a convolution of each channel with what stands before: the state,
// which is zeros at first. The last elements are the next state.
func causalConv(r *recorder) []batch.Value {
	x, past := r.x(0), r.shape(1)[2]-1
	if r.has(3) {
		x = r.Concat(-1, r.x(3), x)
	} else {
		x = r.Pad(x, -1, past, 0, 0)
	}
	images, w, o := r.Unsqueeze(x, 2), r.Unsqueeze(r.x(1), 2), op.Conv2DOpts{Groups: r.shape(0)[1]}
	var y batch.Value
	if r.has(2) {
		y = r.Conv2DBias(images, w, r.x(2), o)
	} else {
		y = r.Conv2D(images, w, o)
	}
	y = r.Squeeze(y, 2)
	if r.text("activation", "none") != "none" {
		y = r.Silu(y)
	}
	n := x.Shape()[2]
	return []batch.Value{y, r.Slice(x, -1, n-past, n, 1)}
}

// convTranspose multiplies each element with a kernel and adds up what overlaps.
func convTranspose(r *recorder) []batch.Value {
	s, t := r.shape(0), r.shape(1)
	spatial, kernel := s[2:], t[2:]
	groups := r.int("group", 1)
	list := r.slidings(spatial, kernel)
	out := r.ints("output_shape")
	for i := range list {
		w := &list[i]
		more := 0
		if p := r.ints("output_padding"); p != nil {
			more = p[i]
		}
		full := w.stride*(spatial[i]-1) + w.extent() + more
		auto := r.text("auto_pad", "NOTSET")
		switch {
		case auto != "NOTSET" && len(out) == i:
			out = append(out, spatial[i]*w.stride)
		case len(out) == i:
			out = append(out, full-w.before-w.after)
			continue
		}
		total := max(0, full-out[i])
		if w.before = total - total/2; auto == "SAME_UPPER" {
			w.before = total / 2
		}
	}
	x := r.Reshape(r.x(0), s[0], groups, s[1]/groups, product(spatial))
	w := r.Reshape(r.x(1), groups, s[1]/groups, product(t[1:]))
	columns := r.MatMul(w, x, op.MatMulOpts{TransA: true})
	columns = r.Reshape(columns, slices.Concat([]int{s[0], groups * t[1]}, kernel, spatial)...)
	y := r.overlap(columns, list, out)
	if r.has(2) {
		y = r.Add(y, r.channel(r.x(2)))
	}
	return one(y)
}

func col2Im(r *recorder) []batch.Value {
	image, kernel := r.host(1), r.host(2)
	list := r.slidings(image, kernel)
	shape := append([]int{r.shape(0)[0], -1}, kernel...)
	for i, w := range list {
		shape = append(shape, (image[i]+w.before+w.after-w.extent())/w.stride+1)
	}
	return one(r.overlap(r.Reshape(r.x(0), shape...), list, image))
}

// overlap adds up windows [n c k… o…], of k elements at o places, where they lie in
// images [n c out…].
func (r *recorder) overlap(x batch.Value, list []sliding, out []int) batch.Value {
	axis := len(list) + 1 // of the places, without the first axis of k
	for i, w := range list {
		full := (x.Shape()[axis+1]-1)*w.stride + w.extent()
		var sum batch.Value
		for k, part := range r.Split(x, 2, slices.Repeat([]int{1}, w.size)...) {
			part = r.stretch(r.Squeeze(part, 2), axis, w.stride)
			from := k * w.dilation
			part = r.Pad(part, axis, from, full-from-part.Shape()[axis], 0)
			if k == 0 {
				sum = part
			} else {
				sum = r.Add(sum, part)
			}
		}
		sum = r.Pad(sum, axis, 0, max(0, w.before+out[i]-full), 0)
		x = r.Slice(sum, axis, w.before, w.before+out[i], 1)
	}
	return x
}

// stretch puts zeros between the elements of an axis, so that they are step places
// apart.
func (r *recorder) stretch(x batch.Value, axis, step int) batch.Value {
	s := slices.Clone(x.Shape())
	s[axis] *= step
	x = r.Reshape(r.Pad(r.Unsqueeze(x, axis+1), axis+1, 0, step-1, 0), s...)
	return r.Slice(x, axis, 0, s[axis]-step+1, 1)
}
