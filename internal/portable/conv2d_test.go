package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

func TestConv2D(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 42))
	for i, s := range []struct {
		n, c, h, w, o, kh, kw int
		op.Conv2DOpts
	}{
		{1, 1, 1, 1, 1, 1, 1, op.Conv2DOpts{}},
		{2, 3, 7, 9, 5, 3, 3, op.Conv2DOpts{Pad: [2]int{1, 1}}},
		{1, 4, 12, 11, 6, 3, 2, op.Conv2DOpts{Stride: [2]int{2, 3}, Pad: [2]int{2, 0}, Act: op.Relu}},
		{1, 6, 10, 10, 4, 3, 3, op.Conv2DOpts{Dilation: [2]int{2, 3}, Groups: 2}},
		{3, 5, 6, 5, 5, 5, 5, op.Conv2DOpts{Pad: [2]int{2, 2}, Groups: 5}},
		{1, 2, 3, 200, 40, 1, 7, op.Conv2DOpts{}},
		{1, 120, 3, 3, 2, 3, 3, op.Conv2DOpts{}}, // more terms than one chain of additions has
		{1, 2, 3, 3, 2, 2, 2, op.Conv2DOpts{Pad: [2]int{9, 9}, Stride: [2]int{7, 7}}},
	} {
		c := &trial{o: op.Conv2D, attrs: s.Attrs(), types: []op.DType{op.F32, op.F32},
			values: []*op.Array{normal(rnd, s.n, s.c, s.h, s.w), normal(rnd, s.o, s.c/max(s.Groups, 1), s.kh, s.kw)}}
		if i%2 == 1 {
			c.values, c.types = append(c.values, normal(rnd, s.o)), append(c.types, op.F32)
		}
		for _, w := range convSchedules {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				g := &rig{check: w.spec.Rows > 0 && w.spec.Rows <= 32 || i < 3, subgroup: 32}
				err := c.runBy(g, func(q *request) (*Plan, error) {
					sizes, err := op.Conv2DOf(&q.Attrs, []op.Shape{q.In[0].Shape, q.In[1].Shape})
					if err != nil {
						return nil, err
					}
					return launchConv2D(q, sizes, w.spec, "")
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
