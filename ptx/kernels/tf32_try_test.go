package kernels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

func TestTryTF32(t *testing.T) {
	few := h200
	few.Multiprocessors = 2 // several tiles for each block
	for _, s := range []wgmmaSpec{
		{Rows: 128, Cols: 64, Groups: 2, Stages: 2, Cluster: 1},
		{Rows: 128, Cols: 128, Groups: 1, Stages: 3, Cluster: 1},
	} {
		for i, o := range layouts {
			for cp := range 4 {
				for _, sizes := range [][3]int{{136, 136, 72}, {131, 67, 71}, {70, 68, 132}} {
					c := halfTrial(op.F32, o, 2, sizes[0], sizes[1], sizes[2], i%2 == 1)
					p := halfOf(c)
					w := wgmmaWay{wgmmaSpec: s, parts: 1, copyA: cp&1 != 0, copyB: cp&2 != 0}
					a, b := p.alongs(&w)
					if !a && !b || sizes[2] == 71 && cp < 3 {
						continue
					}
					t.Run(fmt.Sprint(w.String(), " ", i, sizes), func(t *testing.T) {
						r, err := c.request()
						if err != nil {
							t.Fatal(err)
						}
						p, err := halfOf(c).warpgroupsOf(w, &few)
						if err != nil {
							t.Fatal(err)
						}
						if err := c.runPlan(&rig{device: few, schedule: emu.Shuffled}, r, p); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
}

func TestTryTF32Ptxas(t *testing.T) {
	for _, w := range wgmmaTiles {
		for l := range 3 {
			s := w.wgmmaSpec.of(op.F32, l != 1, l != 2)
			s.Odd = false
			out := assemble(t, s.kernel(nil), ptx.SM90a)
			if strings.Contains(out, "C75") || !strings.Contains(out, " 0 bytes spill stores") {
				t.Errorf("%v %d: %s", s.String(), l, out)
			}
		}
	}
}
