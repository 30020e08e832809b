//go:build amd64 && !noasm

package linalg

// LULanes is [LU] for count matrices of rows×cols elements, which it does not change.
func LULanes(lu []float32, pivots []int32, a []float32, rows, cols, count int) (bad uint8) {
	k := min(rows, cols)
	m := takeVectors(rows*cols + k)
	defer m.give()
	places := m.data[rows*cols:]
	g := grid{m.data[:rows*cols], cols, 1}
	pack(g.data, a, count)
	eliminate(g, places, rows, cols)
	if bad = infinite(g.data) & used(count); bad == used(count) {
		return bad
	}
	unpack(lu, g.data, count, bad)
	for l := range count {
		for i := range k {
			if bad>>l&1 == 0 {
				pivots[l*k+i] = int32(places[i][l])
			}
		}
	}
	return bad
}

// eliminate overwrites g with L and U, and writes the pivots to places; float32 holds them exactly. It
// computes one column of L and one row of U at a time.
func eliminate(g grid, places []vec, rows, cols int) {
	for j := range places {
		g.from(j, j).less(g.from(j, 0), g.from(0, j), rows-j, 1, j)
		column := g.from(j, j)
		at, most := column.pivot(rows - j)
		for l, i := range at {
			places[j][l] = float32(j + int(i))
			if i > 0 {
				g.swap(j, j+int(i), cols, l)
			}
			if most[l] == 0 {
				most[l] = 1 // the column is zero: there is nothing to eliminate
			} else {
				most[l] = g.at(j, j)[l]
			}
		}
		if j+1 < rows {
			g.from(j+1, j).divide(&most, rows-j-1)
		}
		if j+1 < cols { // the row is treated as a column, because tiles of columns are higher
			g.from(j, j+1).t().less(g.from(0, j+1).t(), g.from(j, 0).t(), cols-j-1, 1, j)
		}
	}
}

// pivot returns for each lane the index and the magnitude of the first element with the greatest magnitude among
// n elements of column 0.
func (g grid) pivot(n int) (at [Lanes]int32, most vec) {
	g.holds(n, 1)
	lanesPivotAVX2(&at[0], &most[0], &g.data[0][0], 4*Lanes*g.row, n)
	return at, most
}

// swap exchanges the first n elements of two rows in a lane.
func (g grid) swap(i, j, n, lane int) {
	x, y := g.data[i*g.row:], g.data[j*g.row:]
	for c := 0; c < n*g.col; c += g.col {
		x[c][lane], y[c][lane] = y[c][lane], x[c][lane]
	}
}

// infinite returns the mask of lanes with an element that is not finite.
func infinite(x []vec) (bad uint8) {
	// Elements times 0 are 0 or NaN, which sums keep. Rows are summed side by side.
	var sums [Lanes]vec
	zero, rows := [1]vec{}, len(x)/Lanes
	if rows > 0 {
		grid{sums[:], 1, 1}.less(grid{x, 1, Lanes}, grid{zero[:], 0, 0}, Lanes, 1, rows)
	}
	for _, v := range x[rows*Lanes:] {
		for l, e := range v {
			sums[0][l] += 0 * e
		}
	}
	for _, s := range sums {
		for l, v := range s {
			if v != 0 {
				bad |= 1 << l
			}
		}
	}
	return bad
}

// SolveLanes is [Solve] of count systems with cols right-hand sides each.
func SolveLanes(x, a, b []float32, order, cols, count int) (bad uint8) {
	m := takeVectors(order * (order + cols + 1))
	defer m.give()
	g := grid{m.data[:order*order], order, 1}
	y := grid{m.data[order*order:][:order*cols], cols, 1}
	places := m.data[order*(order+cols):]
	pack(g.data, a, count)
	pack(y.data, b, count)
	eliminate(g, places, order, order)
	for i, at := range places {
		for l, p := range at {
			if int(p) != i {
				y.swap(i, int(p), cols, l)
			}
		}
	}
	// Rows are columns here, whose tiles are higher.
	for i := 1; i < order; i++ {
		y.from(i, 0).t().less(y.t(), g.from(i, 0).t(), cols, 1, i)
	}
	for i := order - 1; i >= 0; i-- {
		if i+1 < order {
			y.from(i, 0).t().less(y.from(i+1, 0).t(), g.from(i, i+1).t(), cols, 1, order-1-i)
		}
		for l, d := range g.at(i, i) {
			if d == 0 {
				bad |= 1 << l
			}
		}
		y.from(i, 0).t().divide(g.at(i, i), cols)
	}
	if bad = (bad | infinite(m.data[:len(m.data)-order])) & used(count); bad != used(count) {
		unpack(x, y.data, count, bad)
	}
	return bad
}
