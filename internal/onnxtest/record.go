package onnxtest

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// mapping records what a user of package batch writes for an operator and
// returns its results. What it cannot it refuses.
type mapping func(r *recorder) []batch.Value

// recorder is the batch of a case, and the case.
type recorder struct {
	*batch.Batch
	c    *Case
	in   []batch.Value // those that have been asked for
	err  error
	like *op.Operation // whose tolerance holds, if it is one operation's
}

func newRecorder(dev *device.Device, c *Case) *recorder {
	return &recorder{Batch: batch.New(dev), c: c, in: make([]batch.Value, len(c.In))}
}

// refuse notes why the case cannot run.
func (r *recorder) refuse(format string, args ...any) []batch.Value {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return nil
}

// has reports whether operand i is there.
func (r *recorder) has(i int) bool { return i < len(r.c.In) && r.c.In[i] != nil }

// x returns operand i, uploaded; the zero Value if it is absent.
func (r *recorder) x(i int) batch.Value {
	if !r.has(i) {
		return batch.Value{}
	}
	if r.in[i] == (batch.Value{}) {
		r.in[i] = r.upload(r.c.In[i])
	}
	return r.in[i]
}

// all returns all operands.
func (r *recorder) all() []batch.Value {
	var list []batch.Value
	for i := range r.c.In {
		list = append(list, r.x(i))
	}
	return list
}

// upload records a tensor in the type of rayo that holds its elements.
func (r *recorder) upload(t *Tensor) batch.Value {
	s := t.Shape
	switch t.Type.DType() {
	case op.F32:
		return upload(r, t.Data, s, func(v float64) float32 { return float32(v) })
	case op.F16:
		return upload(r, t.Data, s, func(v float64) op.Float16 { return op.Float16(op.F16FromFloat32(float32(v))) })
	case op.BF16:
		return upload(r, t.Data, s, func(v float64) op.BFloat16 { return op.BFloat16(op.BF16FromFloat32(float32(v))) })
	case op.U32:
		return upload(r, t.Data, s, func(v float64) uint32 { return uint32(v) })
	case op.Bool:
		return r.Cast(upload(r, t.Data, s, func(v float64) uint32 { return uint32(v) }), op.Bool)
	}
	return upload(r, t.Data, s, func(v float64) int32 {
		if v < math.MinInt32 || v > math.MaxInt32 {
			r.refuse("element %v of %s does not fit i32", v, t.Name)
			return 0
		}
		return int32(v)
	})
}

func upload[T device.Element](r *recorder, data []float64, s op.Shape, as func(float64) T) batch.Value {
	list := make([]T, len(data))
	for i, v := range data {
		list[i] = as(v)
	}
	if len(s) == 0 {
		return r.Reshape(batch.Upload(r.Batch, list))
	}
	return batch.Upload(r.Batch, list, s...)
}

// shape returns the shape of operand i.
func (r *recorder) shape(i int) op.Shape { return r.c.In[i].Shape }

// float returns an attribute, or its default if it is absent.
func (r *recorder) float(name string, otherwise float32) float32 {
	if a, ok := r.c.Node.Attributes[name]; ok {
		return a.Float
	}
	return otherwise
}

func (r *recorder) int(name string, otherwise int) int {
	if a, ok := r.c.Node.Attributes[name]; ok {
		return bounded(float64(a.Int))
	}
	return otherwise
}

func (r *recorder) text(name, otherwise string) string {
	if a, ok := r.c.Node.Attributes[name]; ok {
		return a.Text
	}
	return otherwise
}

// ints returns an attribute that is a list, nil where it is absent.
func (r *recorder) ints(name string) []int {
	var list []int
	for _, v := range r.c.Node.Attributes[name].Ints {
		list = append(list, bounded(float64(v)))
	}
	return list
}

// host returns the integers of operand i, which rayo takes as arguments: axes,
// extents, bounds; nil where it is absent.
func (r *recorder) host(i int) []int {
	if !r.has(i) {
		return nil
	}
	list := []int{}
	for _, v := range r.c.In[i].Data {
		list = append(list, bounded(v))
	}
	return list
}

// scalar returns the only element of operand i.
func (r *recorder) scalar(i int, otherwise float32) float32 {
	if !r.has(i) {
		return otherwise
	}
	if len(r.c.In[i].Data) != 1 {
		r.refuse("operand %d has %d elements, not one", i, len(r.c.In[i].Data))
		return otherwise
	}
	return float32(r.c.In[i].Data[0])
}

// bounded returns v, or the nearer of ±2^31, which stands for "to the end".
func bounded(v float64) int { return int(max(-1<<31, min(v, 1<<31-1))) }

// axis returns the axis that a number, negative from the end, names.
func (r *recorder) axis(v, rank int) int {
	if v < 0 {
		v += rank
	}
	if v < 0 || v >= max(rank, 1) {
		r.refuse("axis %d of %d", v, rank)
		return 0
	}
	return v
}
