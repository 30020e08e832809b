package main

// fetchRows writes the kernel that prefetches the rows that a transpose writes next.
func (k *writer) fetchRows() {
	k.begin(&fn{name: "rowsFetch", doc: "prefetches the first bytes > 0 bytes of rows > 0 rows, stride bytes apart.",
		params: list("p *float32, stride rows bytes int")})
	p, stride, rows, bytes := k.pointer("p"), k.pointer("stride"), k.pointer("rows"), k.pointer("bytes")
	at, left, row, line := k.int(), k.int(), k.fresh("row"), k.fresh("line")
	k.label(row)
	k.copyInt(at, p)
	k.copyInt(left, bytes)
	k.label(line)
	k.fetch(at)
	k.addConst(at, 64)
	k.addConst(left, -64)
	k.ifAtLeast(left, 1, line)
	k.addInt(p, stride)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, row)
	k.ret()
}
