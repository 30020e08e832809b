package engine

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// StepCost returns the number of bytes that a step reads and writes, each operand counted once, and
// the number of its arithmetic operations.
func StepCost(s *driver.Step) (bytes int64, flops float64) {
	count := func(o *driver.Operand) {
		n, _ := o.Type.Bytes(op.Shape{o.N}) // blocks are whole, which was checked
		bytes += int64(n)
	}
	eachOperand(s, count)
	for i := range s.Out {
		count(&s.Out[i])
	}
	program := func(f *driver.Fused) {
		if f == nil {
			return
		}
		n, _ := f.Shape.Size()
		flops += float64(n) * float64(len(f.Body))
	}
	for _, p := range s.Pre {
		program(p)
	}
	program(s.Post)
	if s.Op != nil {
		in, out := s.Dims[:len(s.In)], s.Dims[len(s.In):]
		flops += s.Op.Flops(&s.Attrs, append([]op.Shape(nil), in...), out)
	}
	return bytes, flops
}
