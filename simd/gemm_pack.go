package simd

// pad is the row stride in floats of k contiguous elements in a packed A: an odd number of whole
// cache lines, because rows an even number of lines apart share few sets of the first-level cache.
func pad(k int) int { return ((k+15)/16 | 1) * 16 }

// packA copies rows×k elements of A to dst; the elements along k are contiguous and rows are stride
// elements apart.
func (ks *gemmKernels) packA(dst []float32, stride int, a []float32, row, col, rows, k int) {
	switch {
	case col == 1:
		for i := range rows {
			copy(dst[i*stride:][:k], a[i*row:][:k])
		}
	case row == 1:
		for p := 0; p < k; p += ks.lanes {
			ks.transpose(&dst[p], &a[p*col], 4*stride, 4*col, min(ks.lanes, k-p), rows)
		}
	default:
		for i := range rows {
			from, to := a[i*row:], dst[i*stride:][:k]
			for p := range to {
				to[p] = from[p*col]
			}
		}
	}
}

// braid copies ks.rows×k elements of A to dst, in which the elements of a column are adjacent and
// columns are ks.lanes apart.
func (ks *gemmKernels) braid(dst []float32, a []float32, row, col, k int) {
	rows := ks.rows
	if whole := k / 4 * 4; col == 1 && whole > 0 {
		ks.braidRows(&dst[0], &a[0], 4*row, whole)
		if k -= whole; k == 0 {
			return
		}
		dst, a = dst[whole*ks.lanes:], a[whole:]
	}
	switch {
	case row == 1:
		for p := range k {
			copy(dst[p*ks.lanes:][:rows], a[p*col:][:rows])
		}
	default:
		for p := range k {
			from, to := a[p*col:], dst[p*ks.lanes:][:rows]
			for i := range to {
				to[i] = from[i*row]
			}
		}
	}
}

// packB copies k×n elements of B to adjacent panels of ks.cols columns in dst. It fills the
// last panel with columns of zeros.
func (ks *gemmKernels) packB(dst []float32, b []float32, row, col, k, n int) {
	first := 0
	if whole := n / ks.cols; col == 1 && ks.copyPanels != nil && whole > 0 {
		ks.copyPanels(&dst[0], &b[0], 4*row, 4*ks.cols*k, k, whole)
		first = whole * ks.cols
	}
	for j := first; j < n; j += ks.cols {
		w := min(ks.cols, n-j)
		panel, from := dst[j*k:][:ks.cols*k], b[j*col:]
		if w < ks.cols {
			clear(panel)
		}
		switch {
		case col == 1:
			for p := range k {
				copy(panel[p*ks.cols:][:w], from[p*row:][:w])
			}
		case row == 1:
			for i := 0; i < w; i += ks.lanes {
				ks.transpose(&panel[i], &from[i*col], 4*ks.cols, 4*col, min(ks.lanes, w-i), k)
			}
		default:
			for p := range k {
				line, to := from[p*row:], panel[p*ks.cols:][:w]
				for i := range to {
					to[i] = line[i*col]
				}
			}
		}
	}
}
