package simd

import (
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestJoinRows transposes groups of rows with TurnGroups, and writes them with JoinRows to rows at any addresses.
func TestJoinRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if !HasJoinRows() {
			return
		}
		r := testutil.Rand(t)
		for range 2000 {
			have, cols := 1+r.IntN(90), 1+r.IntN(70)
			first, last, past := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
			if first {
				have = max(have, 16)
			}
			high := have
			if !last {
				high = 16 * r.IntN(5)
			}
			groups, ss := (have+15)/16, cols+r.IntN(9)
			x, xok := guarded(t, 16*groups*ss, 1)
			for i := range x {
				x[i] = float32(i)
			}
			offs := make([]int, 16*groups)
			for k, row := range r.Perm(len(offs)) {
				offs[k] = 4 * row * ss
			}
			gap := 16 * (cols + r.IntN(3))
			buffer, bok := guarded(t, (groups+1)*gap, aligned)
			TurnGroups(wordOf(&buffer[0]), wordOf(&x[0]), offs, gap, r.IntN(100), cols)
			xok()
			ds := have + r.IntN(20)
			dst, ok := guarded(t, (cols-1)*ds+have, r.IntN(16))
			for i := range dst {
				dst[i] = -1
			}
			JoinRows(wordOf(&dst[0]), wordOf(&buffer[0]), ds, 16, gap, first, high, have, cols, past)
			StreamFence()
			ok()
			bok()
			for i, got := range dst {
				want, row, j := float32(-1), i%ds, i/ds
				lead := int(-uintptr(unsafe.Pointer(&dst[j*ds]))%64) / 4
				if row < have && row < high+lead && (first || row >= lead) {
					want = x[offs[row]/4+j]
				}
				if got != want {
					t.Fatalf("%d of %d rows, %d columns %d apart, first %v: element %d is %v, not %v", high, have, cols, ds, first, i, got, want)
				}
			}
		}
	})
}

// TestTransposeStrips transposes matrices with rows at any places, with TransposeStrips and TransposeColumns.
func TestTransposeStrips(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if !HasTurn() {
			return
		}
		r := testutil.Rand(t)
		for range 1500 {
			rows, cols := StripRows+r.IntN(70), 4+r.IntN(70)
			ss, ds := cols+r.IntN(9), rows+r.IntN(20)
			x, xok := guarded(t, rows*ss, r.IntN(16))
			for i := range x {
				x[i] = float32(i)
			}
			offs := make([]int, rows+StripAhead)
			for k, row := range r.Perm(rows) {
				offs[k] = 4 * row * ss
			}
			dst, ok := guarded(t, (cols-1)*ds+rows, r.IntN(16))
			for i := range dst {
				dst[i] = -1
			}
			at := r.Perm(cols) // the rows of dst for the columns
			if columns := cols >= 16 && r.IntN(2) == 0; columns {
				to := make([]int, cols)
				for j := range to {
					to[j] = 4 * at[j] * ds
				}
				TransposeColumns(wordOf(&dst[0]), wordOf(&x[0]), offs, to, r.IntN(2) == 0)
			} else {
				for j := range at {
					at[j] = j
				}
				TransposeStrips(wordOf(&dst[0]), wordOf(&x[0]), offs, ds, cols, r.IntN(2) == 0)
			}
			xok()
			ok()
			want := make([]float32, len(dst))
			for i := range want {
				want[i] = -1
			}
			for j, row := range at {
				for i := range rows {
					want[row*ds+i] = x[offs[i]/4+j]
				}
			}
			for i, got := range dst {
				if got != want[i] {
					t.Fatalf("%d rows, %d columns %d apart: element %d is %v, not %v", rows, cols, ds, i, got, want[i])
				}
			}
		}
	})
}
