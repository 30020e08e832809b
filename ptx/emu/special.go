package emu

import "strings"

// special is a special register.
type special uint8

const (
	specialNone special = iota
	tidX
	tidY
	tidZ
	ntidX
	ntidY
	ntidZ
	ctaidX
	ctaidY
	ctaidZ
	nctaidX
	nctaidY
	nctaidZ
	laneID
	warpID
	nwarpID
	laneMaskLt
	laneMaskLe
	laneMaskEq
	laneMaskGe
	laneMaskGt
	dynamicBytes
	totalBytes
	zero
	one
	clusterRank
	clusterSize
	clusterX  // of the cluster in the grid
	clustersX // in the grid
	always    // a number without a meaning here, such as the number of a multiprocessor
	clocks    // how many steps there were: see clock
)

var specials = map[string]struct {
	special special
	bytes   uint8
}{
	"%tid.x": {tidX, 4}, "%tid.y": {tidY, 4}, "%tid.z": {tidZ, 4},
	"%ntid.x": {ntidX, 4}, "%ntid.y": {ntidY, 4}, "%ntid.z": {ntidZ, 4},
	"%ctaid.x": {ctaidX, 4}, "%ctaid.y": {ctaidY, 4}, "%ctaid.z": {ctaidZ, 4},
	"%nctaid.x": {nctaidX, 4}, "%nctaid.y": {nctaidY, 4}, "%nctaid.z": {nctaidZ, 4},
	"%laneid": {laneID, 4}, "%warpid": {warpID, 4}, "%nwarpid": {nwarpID, 4},
	"%lanemask_lt": {laneMaskLt, 4}, "%lanemask_le": {laneMaskLe, 4}, "%lanemask_eq": {laneMaskEq, 4},
	"%lanemask_ge": {laneMaskGe, 4}, "%lanemask_gt": {laneMaskGt, 4},
	"%dynamic_smem_size": {dynamicBytes, 4}, "%total_smem_size": {totalBytes, 4},
	"%clock64": {clocks, 8}, "%globaltimer": {clocks, 8}, "%clock": {clocks, 4}, "%clock_hi": {clocks, 4}, "%globaltimer_lo": {clocks, 4}, "%globaltimer_hi": {clocks, 4}, "%gridid": {zero, 8},
	"%smid": {zero, 4}, "%nsmid": {always, 4},
	"%cluster_ctaid.x": {clusterRank, 4}, "%cluster_ctaid.y": {zero, 4}, "%cluster_ctaid.z": {zero, 4},
	"%cluster_ctarank": {clusterRank, 4}, "%cluster_nctaid.x": {clusterSize, 4}, "%cluster_nctaid.y": {one, 4},
	"%cluster_nctaid.z": {one, 4}, "%cluster_nctarank": {clusterSize, 4},
	"%clusterid.x": {clusterX, 4}, "%clusterid.y": {ctaidY, 4}, "%clusterid.z": {ctaidZ, 4},
	"%nclusterid.x": {clustersX, 4}, "%nclusterid.y": {nctaidY, 4}, "%nclusterid.z": {nctaidZ, 4},
}

// fill sets a plane to a special register of the lanes of warp w.
func (w *warp) fill(p *plane, s special) {
	r, b := w.b.run, w.b
	for i := range p {
		t := w.index*32 + i
		at := r.thread(t)
		v := 0
		switch s {
		case tidX, tidY, tidZ:
			v = at[s-tidX]
		case ntidX, ntidY, ntidZ:
			v = r.block[s-ntidX]
		case ctaidX, ctaidY, ctaidZ:
			v = b.at[s-ctaidX]
		case nctaidX, nctaidY, nctaidZ:
			v = r.grid[s-nctaidX]
		case laneID:
			v = i
		case warpID:
			v = w.index
		case nwarpID:
			v = len(b.warps)
		case laneMaskLt:
			v = 1<<i - 1
		case laneMaskLe:
			v = 2<<i - 1
		case laneMaskEq:
			v = 1 << i
		case laneMaskGe:
			v = -1 << i
		case laneMaskGt:
			v = -2 << i
		case dynamicBytes:
			v = r.dynamic
		case totalBytes:
			v = r.k.static + r.dynamic
		case one:
			v = 1
		case clusterRank:
			v = b.rank()
		case clusterSize:
			v = r.size()
		case clusterX:
			v = b.at[0] / r.size()
		case clustersX:
			v = r.grid[0] / r.size()
		case always:
			v = 132
		}
		p[i] = uint64(uint32(v))
	}
}

// clock is a mov of a clock register. It counts the steps of all warps: it never decreases, and
// does not measure time.
func (c *compiler) clock(in *inst) {
	name := c.st.args[1].name
	bytes := specials[name].bytes
	if p := c.parts(); len(p) != 1 || c.typeBytes(p[0]) != bytes {
		c.fail("the type does not match %s: expected one of %d bits", name, 8*bytes)
	}
	in.kind, in.d = kindRun, c.dest(&c.st.args[0], bytes)
	shift := 0
	if strings.HasSuffix(name, "_hi") {
		shift = 32
	}
	in.run = func(w *warp, in *inst, mask uint32) bool {
		now := w.b.run.clock >> shift
		if bytes == 4 {
			now &= 1<<32 - 1
		}
		for m := mask; m != 0; m &= m - 1 {
			w.set(in.d, lowest(m), now)
		}
		return true
	}
}
