package simd

// attentionFew multiplies a few queries by keys, and their weights by values. It calls the kernels directly, because
// planning a [Gemm] takes longer than the product of a few queries and a page of keys.
type attentionFew struct {
	kernels *gemmKernels // nil if there are many queries
	packed  []float32    // the queries in the order of dotsFunc, in groups of len(kernels.dots)
}

// prepare packs n queries of dim elements.
func (f *attentionFew) prepare(q []float32, n, dim int) {
	f.kernels = nil
	ks := gemmActive()
	if n > fewQueries {
		return
	}
	f.kernels = ks
	f.packed = resized(f.packed, n*ceilDiv(dim, ks.lanes)*ks.lanes)
	to := f.packed
	for r0 := 0; r0 < n; r0 += len(ks.dots) {
		r1 := min(r0+len(ks.dots), n)
		for d := 0; d < dim; d += ks.lanes {
			for r := r0; r < r1; r++ {
				clear(to[copy(to, q[r*dim+d:][:min(ks.lanes, dim-d)]):ks.lanes])
				to = to[ks.lanes:]
			}
		}
	}
}

// scores computes the scores of n queries for count keys, which are kRow elements apart.
func (f *attentionFew) scores(scores, k []float32, n, count, kRow, dim int) {
	ks := f.kernels
	clear(scores)
	for r := 0; r < n; r += len(ks.dots) {
		m := min(len(ks.dots), n-r)
		ks.dots[m-1](&k[0], &f.packed[r*ceilDiv(dim, ks.lanes)*ks.lanes], &scores[r*count], 4*kRow, 4, 4*count, dim, count)
	}
}

// add adds the values of count keys, which are vRow elements apart, times their weights to the results of n queries.
func (f *attentionFew) add(out, weights, v []float32, n, count, vRow, dim int) {
	ks := f.kernels
	for r := 0; r < n; r += len(ks.rowsFew) {
		m := min(len(ks.rowsFew), n-r)
		ks.rowsFew[m-1](&weights[r*count], &v[0], &out[r*dim], 4*count, 4*vRow, 4*dim, count, dim)
	}
}
