package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/safetensors"
)

// tensor is a tensor of the file that is written: the concatenation of its parts.
type tensor struct {
	gguf.TensorInfo
	parts []part
}

// part is a source of elements: src, or values if src is nil.
type part struct {
	src    *safetensors.Tensor
	values []float32
	heads  int     // if above 0, the rows of each head are permuted: see row
	add    float32 // added to each element
}

// tensors returns the tensors to write, in the order of the source's names.
func (c *config) tensors(w *weights, o Options) ([]tensor, error) {
	s, err := c.sizes()
	if err != nil {
		return nil, err
	}
	tied, _ := c.values["tie_word_embeddings"].(bool)
	found := map[string]map[int]*safetensors.Tensor{}
	var order []string
	for t := range w.all() {
		to, expert, ignored := c.arch.target(t.Name)
		switch {
		case ignored, tied && to == "output.weight":
			continue
		case to == "":
			return nil, fmt.Errorf("tensor %s is not part of architecture %s: %w", t.Name, c.arch.name, ErrTensor)
		case found[to] == nil:
			found[to] = map[int]*safetensors.Tensor{}
			order = append(order, to)
		case found[to][expert] != nil:
			return nil, fmt.Errorf("tensors %s and %s both become %s: %w", found[to][expert].Name, t.Name, to, ErrTensor)
		}
		found[to][expert] = t
	}
	var list []tensor
	for _, name := range order {
		t, err := c.tensor(name, found[name], s, o)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the folder has no tensors: %w", ErrTensor)
	}
	return c.factors(list, s)
}

// tensor returns the tensor of the given name in GGUF. from has its source, or the sources of all experts.
func (c *config) tensor(name string, from map[int]*safetensors.Tensor, s sizes, o Options) (tensor, error) {
	experts := slices.Sorted(maps.Keys(from))
	first := from[experts[0]]
	if experts[0] >= 0 && (len(experts) != s.experts || experts[len(experts)-1] != s.experts-1) {
		return tensor{}, fmt.Errorf("%d tensors are named like %s, expected one for each of the %d experts of config.json: %w", len(experts), first.Name, s.experts, ErrTensor)
	}
	typ := first.Type.Format()
	if typ != block.F32 && typ != block.F16 && typ != block.BF16 {
		return tensor{}, fmt.Errorf("tensor %s is of type %s, expected F32, F16 or BF16: %w", first.Name, first.Type, ErrTensor)
	}
	if o.Type != block.Invalid {
		typ = o.Type
	}
	if len(first.Shape) < 2 {
		typ = block.F32
	}
	t := tensor{TensorInfo: gguf.TensorInfo{Name: name, Type: typ, Dims: slices.Clone(first.Shape)}}
	slices.Reverse(t.Dims)
	if experts[0] >= 0 {
		t.Dims = append(t.Dims, int64(s.experts))
	}
	for _, x := range experts {
		src := from[x]
		if !slices.Equal(src.Shape, first.Shape) || src.Type != first.Type {
			return tensor{}, fmt.Errorf("tensor %s has shape %v and type %s, but %s has %v and %s: %w", src.Name, src.Shape, src.Type, first.Name, first.Shape, first.Type, ErrTensor)
		}
		p := part{src: src}
		if c.arch.shiftedNorms && strings.HasSuffix(name, "norm.weight") {
			p.add = 1
		}
		if p.heads = c.interleavedHeads(name, s); p.heads > 0 && (len(src.Shape) == 0 || src.Shape[0] != int64(p.heads*s.head)) {
			return tensor{}, fmt.Errorf("tensor %s has shape %v, expected %d rows for %d heads: %w", src.Name, src.Shape, p.heads*s.head, p.heads, ErrTensor)
		}
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// interleavedHeads returns the number of heads for which the rows of a tensor must be permuted, or 0.
func (c *config) interleavedHeads(name string, s sizes) int {
	switch {
	case !c.arch.interleaved:
		return 0
	case strings.Contains(name, ".attn_q."):
		return s.heads
	case strings.Contains(name, ".attn_k."):
		return s.keyHeads
	}
	return 0
}

// factors adds the tensors with factors of the frequencies of rotary embeddings, which come from config.json.
func (c *config) factors(list []tensor, s sizes) ([]tensor, error) {
	add := func(name string, v []float32) {
		list = append(list, tensor{gguf.TensorInfo{Name: name, Type: block.F32, Dims: []int64{int64(len(v))}}, []part{{values: v}}})
	}
	f, err := c.frequencies(s.head)
	if err != nil {
		return nil, err
	}
	if f != nil {
		add("rope_freqs.weight", f)
	}
	r, kind := c.ropeScaling()
	if kind != "longrope" && kind != "su" {
		return list, nil
	}
	for _, k := range []string{"long", "short"} {
		raw, _ := r.values[k+"_factor"].([]any)
		v := make([]float32, len(raw))
		for i, x := range raw {
			n, _ := x.(json.Number)
			y, err := n.Float64()
			if err != nil || !(y > 0) || math.IsInf(y, 0) {
				return nil, fmt.Errorf("config.json: element %d of rope_scaling's %s_factor is %v, expected a number above 0: %w", i, k, x, ErrConfig)
			}
			v[i] = float32(y)
		}
		if len(v) == 0 || len(v) > s.head/2 {
			return nil, fmt.Errorf("config.json: rope_scaling's %s_factor has %d elements, expected at most %d: %w", k, len(v), s.head/2, ErrConfig)
		}
		add("rope_factors_"+k+".weight", v)
	}
	return list, nil
}

// chunk is the number of elements that are converted at a time.
const chunk = 1 << 20

// writeTo writes the elements in the type of the tensor.
func (t *tensor) writeTo(ctx context.Context, w io.Writer, progress func(int64)) error {
	for i := range t.parts {
		if err := t.parts[i].writeTo(ctx, w, t.Type, progress); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) writeTo(ctx context.Context, w io.Writer, typ block.Format, progress func(int64)) error {
	n, size := int64(len(p.values)), int64(4)
	if p.src != nil {
		n, size = p.src.Elements(), int64(p.src.Type.Size())
	}
	step := int64(chunk)
	if p.heads > 0 && n > 0 {
		step = n / p.src.Shape[0] // a row
	}
	x, b := make([]float32, min(step, n)), make([]byte, min(step, n)*int64(typ.Bytes()))
	for at := int64(0); at < n; at += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := x[:min(step, n-at)]
		if err := p.read(x, at); err != nil {
			return err
		}
		b := b[:len(x)*typ.Bytes()]
		if err := typ.Quantize(b, x); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if progress != nil && p.src != nil {
			progress(int64(len(x)) * size)
		}
	}
	return nil
}

// read reads len(x) elements from element at on. If rows are permuted, x is one row.
func (p *part) read(x []float32, at int64) error {
	if p.src == nil {
		copy(x, p.values[at:])
		return nil
	}
	if p.heads > 0 {
		at = p.row(at/int64(len(x))) * int64(len(x))
	}
	if err := p.src.Float32(x, at); err != nil {
		return err
	}
	if p.add != 0 {
		for i := range x {
			x[i] += p.add
		}
	}
	return nil
}

// row returns the row of the source that becomes row i. The rotary embedding of the source pairs rows of the two
// halves of a head; the rotary embedding of the result pairs neighbouring rows.
func (p *part) row(i int64) int64 {
	head := p.src.Shape[0] / int64(p.heads)
	h, j := i/head, i%head
	return h*head + j%2*(head/2) + j/2
}
