//go:build !js

package devicetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// cellList is a list of cells of float32.
type cellList []cell

// add appends a cell.
func (l *cellList) add(name, peer string, shapes [][]int, out []int, build func(r *batch.Batch, x []batch.Value) batch.Value) {
	*l = append(*l, cell{name: name, typ: op.F32, shapes: shapes, out: out, peer: peer, build: build})
}

// arrayCells are operations that find, move and factor. Indices and definite matrices are
// made of random numbers in the same run, here and in PyTorch.
func arrayCells() (all cellList) {
	type value = batch.Value
	type rec = batch.Batch
	add := all.add
	for _, s := range [][]int{{1_000_000}, {16 << 20}, {1000, 1000}, {64, 1 << 16}} {
		add(fmt.Sprintf("sort/%v", op.Shape(s)), "torch.sort(x[0],stable=True)", [][]int{s}, s, func(r *rec, x []value) value {
			v, _ := r.Sort(x[0])
			return v
		})
	}
	add("topk/1M/1000", "torch.topk(x[0],1000)", [][]int{{1_000_000}}, []int{1000}, func(r *rec, x []value) value {
		v, _ := r.TopK(x[0], 1000)
		return v
	})
	for _, rows := range []int{10, 1000, 50_000, 1_000_000, 4_000_000} {
		for _, reduce := range []op.ScatterReduce{op.ScatterAdd, op.ScatterSet} {
			if reduce == op.ScatterSet && rows != 1_000_000 {
				continue
			}
			call := map[op.ScatterReduce]string{op.ScatterAdd: "index_add", op.ScatterSet: "index_copy"}[reduce]
			add(fmt.Sprintf("scatter/%v/1M into %d", reduce, rows), fmt.Sprintf("x[0].%s(0,(x[1].abs()*%g).long().clamp(max=%d),x[1])", call, float64(rows)/4, rows-1),
				[][]int{{rows}, {1_000_000}}, []int{rows}, func(r *rec, x []value) value {
					ids := r.Cast(r.Clip(r.Scale(r.Abs(x[1]), float32(rows)/4), 0, float32(rows-1)), op.I32)
					return r.Scatter(x[0], ids, x[1], op.ScatterOpts{Reduce: reduce})
				})
		}
	}
	for _, s := range []op.Shape{{1000, 32, 32}, {1000, 16, 16}, {100, 60, 60}, {1, 64, 64}, {1, 256, 256}, {1, 1000, 1000}} {
		n := s[1]
		one := func(name, peer string, out []int, build func(r *rec, x []value) value) {
			add(fmt.Sprintf("%s/%dx%dx%d", name, s[0], n, n), peer, [][]int{s, {s[0], n, 1}}, out, build)
		}
		one("cholesky", fmt.Sprintf("torch.linalg.cholesky(x[0]*0.01+10*torch.eye(%d,device='cuda'))", n), s, func(r *rec, x []value) value {
			return r.Cholesky(r.Add(r.Scale(x[0], 0.01), r.Scale(r.Eye(n, n, 0), 10)))
		})
		one("solve", "torch.linalg.solve(x[0],x[1])", []int{s[0], n, 1}, func(r *rec, x []value) value { return r.Solve(x[0], x[1]) })
		first := func(name, peer string, out []int, call func(r *rec, x value) value) {
			one(name, peer, out, func(r *rec, x []value) value { return call(r, x[0]) })
		}
		first("inv", "torch.linalg.inv(x[0])", s, (*rec).Inv)
		first("lu", "torch.linalg.lu_factor(x[0])[0]", s, func(r *rec, x value) value { y, _ := r.LU(x); return y })
		first("qr", "torch.linalg.qr(x[0])[0]", s, func(r *rec, x value) value { y, _ := r.QR(x); return y })
		first("eigh", "torch.linalg.eigh(x[0])[0]", s[:2], func(r *rec, x value) value { y, _ := r.Eigh(x); return y })
		first("svd", "torch.linalg.svd(x[0],full_matrices=False)[0]", s, func(r *rec, x value) value { y, _, _ := r.SVD(x); return y })
	}
	return all
}

// onArrays measures them, beside PyTorch where RAYO_PEER says how to start that.
func onArrays(b *testing.B, dev *device.Device) {
	peer := startPeer(b)
	if peer != nil {
		defer peer.stop()
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, c := range append(moveCells(), arrayCells()...) {
		b.Run(c.name, func(b *testing.B) { timeCell(b, dev, peer, &c, rnd) })
	}
}
