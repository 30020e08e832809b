package interp

// exchange runs a subgroup operation, in which all lanes are active.
func (m *machine) exchange(o *op) {
	d, a := m.plane(o.d), m.plane(o.arg[0])
	for from := 0; from < len(a); from += m.subgroup {
		to := min(from+m.subgroup, len(a))
		exchange(o.kind, o.fold, o.imm, d[from:to], a[from:to], m.from(o, from, to))
	}
}

// from returns the operand of a shuffle that says where from.
func (m *machine) from(o *op, from, to int) []uint32 {
	if o.kind != opShuffle {
		return nil
	}
	return m.plane(o.arg[1])[from:to]
}

// exchange computes d from a over the lanes of one subgroup. A shuffle from a
// lane that is not there gives the lane's own value.
func exchange(kind opKind, fold laneFunc, imm uint32, d, a, from []uint32) {
	switch kind {
	case opReduce:
		s := a[0]
		for _, v := range a[1:] {
			s = fold(s, v, 0, 0)
		}
		for i := range d {
			d[i] = s
		}
	case opScan:
		s := uint32(0)
		for i, v := range a {
			d[i] = s
			if i == 0 {
				s = v
			} else {
				s = fold(s, v, 0, 0)
			}
		}
	case opShuffle:
		for i, j := range from {
			if int64(j) >= int64(len(a)) {
				j = uint32(i)
			}
			d[i] = a[j]
		}
	case opShuffleXor:
		for i := range d {
			j := i ^ int(imm)
			if j >= len(a) || j < 0 {
				j = i
			}
			d[i] = a[j]
		}
	case opFirst:
		for i := range d {
			d[i] = a[0]
		}
	}
}
