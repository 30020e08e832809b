package ptx_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// The values of another module's kernel, with which misuses are written.
var (
	foreign        ptx.U32
	foreignLabel   ptx.Label
	foreignPointer ptx.Global[ptx.F32]
	foreignKernel  *ptx.Kernel
)

// misuses are kernels that use the builder wrongly, and the error of each.
var misuses = []struct {
	name, want string
	is         error
	build      func(k *ptx.Kernel)
}{
	{"value of another kernel", "the operand is a value of kernel other", nil, func(k *ptx.Kernel) {
		ptx.Param[ptx.U32](k, "n").Add(foreign)
		mistakeLine = here(-1)
	}},
	{"address of another kernel", "the operand is a value of kernel other", nil, func(k *ptx.Kernel) {
		n := ptx.Param[ptx.U32](k, "n")
		n.Add(foreignPointer.Load().Bits().U32())
		mistakeLine = here(-1)
	}},
	{"index of another kernel", "the operand is a value of kernel other", nil, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F32](k, "x").At(foreign).Store(ptx.F(1))
		mistakeLine = here(-1)
	}},
	{"index that no instruction computed", "put one into a register", nil, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F32](k, "x").At(ptx.Is(true).Ballot(ptx.AllLanes)).Store(ptx.F(1))
		mistakeLine = here(-1)
	}},
	{"label of another kernel", "belongs to another kernel", nil, func(k *ptx.Kernel) {
		k.Branch(foreignLabel)
		mistakeLine = here(-1)
	}},
	{"zero label", "belongs to another kernel", nil, func(k *ptx.Kernel) {
		k.Place(ptx.Label{})
		mistakeLine = here(-1)
	}},
	{"zero tensor map", "no kernel has declared", nil, func(k *ptx.Kernel) {
		s := ptx.SharedArray[ptx.F32](k, "s", 32)
		bar := ptx.MBarrierAt(ptx.SharedArray[ptx.U64](k, "b", 1))
		ptx.TensorLoad(s, ptx.TensorMap{}, bar, ptx.S(0))
		mistakeLine = here(-1)
	}},
	{"label placed twice", "placed before", nil, func(k *ptx.Kernel) {
		l := k.NewLabel()
		k.Place(l)
		k.Place(l)
		mistakeLine = here(-1)
	}},
	{"label not placed", "not placed", nil, func(k *ptx.Kernel) {
		l := k.NewLabel()
		mistakeLine = here(-1)
		k.Branch(l)
	}},
	{"control flow within When", "use If", nil, func(k *ptx.Kernel) {
		k.When(k.Special(ptx.TidX).Eq(ptx.U(0)), func() {
			k.If(k.Special(ptx.TidY).Eq(ptx.U(0)), func() {})
			mistakeLine = here(-1)
		})
	}},
	{"break outside a loop", "outside a loop", nil, func(k *ptx.Kernel) {
		k.Break()
		mistakeLine = here(-1)
	}},
	{"step 0", "step 0", nil, func(k *ptx.Kernel) {
		k.For(ptx.U(0), ptx.Param[ptx.U32](k, "n"), ptx.U(0), func(ptx.U32) {})
		mistakeLine = here(-1)
	}},
	{"offset too far", "an offset of", ptx.ErrLimit, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F32](k, "x").Offset(1 << 30).Load()
		mistakeLine = here(-1)
	}},
	{"offset that overflows", "an offset of", ptx.ErrLimit, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F64](k, "x").Offset(math.MaxInt - 3)
		mistakeLine = here(-1)
	}},
	{"misaligned vector", "not a multiple", nil, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F32](k, "x").Offset(2).Load4()
		mistakeLine = here(-1)
	}},
	{"vector of 32 bytes", "at most 16", nil, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F64](k, "x").Load4()
		mistakeLine = here(-1)
	}},
	{"store to read-only memory", "only for loads", nil, func(k *ptx.Kernel) {
		ptx.GlobalParam[ptx.F32](k, "x").Hint(ptx.ReadOnly).Store(ptx.F(1))
		mistakeLine = here(-1)
	}},
	{"hint that shared memory has not", "does not support the hint", nil, func(k *ptx.Kernel) {
		ptx.SharedArray[ptx.F32](k, "s", 4).Hint(ptx.Stream)
		mistakeLine = here(-1)
	}},
	{"too large an array", "a block has", ptx.ErrLimit, func(k *ptx.Kernel) {
		ptx.SharedArray[ptx.F32](k, "s", 1<<20)
		mistakeLine = here(-1)
	}},
	{"array of -1 elements", "a block has", ptx.ErrLimit, func(k *ptx.Kernel) {
		ptx.DynamicShared[ptx.F64](k, -1)
		mistakeLine = here(-1)
	}},
	{"alignment of 3", "an alignment", ptx.ErrLimit, func(k *ptx.Kernel) {
		k.Align(3)
		mistakeLine = here(-1)
	}},
	{"name", "is not a valid name", nil, func(k *ptx.Kernel) {
		ptx.Param[ptx.U32](k, "n; ret")
		mistakeLine = here(-1)
	}},
	{"two parameters of a name", "two parameters", nil, func(k *ptx.Kernel) {
		ptx.Param[ptx.U32](k, "n")
		ptx.Param[ptx.F32](k, "n")
		mistakeLine = here(-1)
	}},
	{"block too large", "a block of", ptx.ErrLimit, func(k *ptx.Kernel) {
		k.Block(1024, 2, 1)
		mistakeLine = here(-1)
	}},
	{"barrier 16", "barrier 16", ptx.ErrLimit, func(k *ptx.Kernel) {
		k.SyncSome(16, 32)
		mistakeLine = here(-1)
	}},
	{"bf16 sum on sm_80", "needs sm_90, the module is for sm_80", ptx.ErrTarget, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.BF16](k, "x").Load()
		x.Add(x)
		mistakeLine = here(-1)
	}},
	{"warpgroup on sm_80", "needs sm_90a", ptx.ErrTarget, func(k *ptx.Kernel) {
		k.WgmmaFence()
		mistakeLine = here(-1)
	}},
	{"tensor map on sm_80", "needs sm_90", ptx.ErrTarget, func(k *ptx.Kernel) {
		ptx.TensorMapParam(k, "t")
		mistakeLine = here(-1)
	}},
	{"cluster on sm_80", "needs sm_90", ptx.ErrTarget, func(k *ptx.Kernel) {
		k.Cluster(2, 1, 1)
		mistakeLine = here(-1)
	}},
	{"number of a cluster on sm_80", "needs sm_90", ptx.ErrTarget, func(k *ptx.Kernel) {
		k.Special(ptx.ClusterRank)
		mistakeLine = here(-1)
	}},
	{"negative number", "negative or has more than 32 bits", nil, func(k *ptx.Kernel) {
		ptx.Param[ptx.U32](k, "n").Add(ptx.N(-1))
		mistakeLine = here(-1)
	}},
	{"constants alone", "put one into a register with Reg", nil, func(k *ptx.Kernel) {
		ptx.Reg(k, ptx.F(2).Sqrt())
		mistakeLine = here(-1)
	}},
	{"zero variable", "no kernel made", nil, func(k *ptx.Kernel) {
		var v ptx.Var[ptx.F32]
		x := ptx.GlobalParam[ptx.F32](k, "x")
		x.Store(v.Get())
		mistakeLine = here(-1)
	}},
	{"zero address", "no kernel made", nil, func(k *ptx.Kernel) {
		var p ptx.Global[ptx.F32]
		x := ptx.GlobalParam[ptx.F32](k, "x")
		x.Store(p.Load())
		mistakeLine = here(-1)
	}},
	{"copy of 5 bytes", "a copy of 5 bytes", nil, func(k *ptx.Kernel) {
		ptx.CopyAsync(ptx.SharedArray[ptx.F32](k, "s", 4), ptx.GlobalParam[ptx.F32](k, "x"), 5)
		mistakeLine = here(-1)
	}},
	{"raw lines", "not a single instruction", nil, func(k *ptx.Kernel) {
		k.Raw("trap; ret")
		mistakeLine = here(-1)
	}},
	{"raw operands", "1 operands for 2 marks", nil, func(k *ptx.Kernel) {
		k.Raw("st.global.u32 [$$], $$", ptx.U(1))
		mistakeLine = here(-1)
	}},
	{"raw operand nil", "nil", nil, func(k *ptx.Kernel) {
		k.Raw("nanosleep.u32 $$", nil)
		mistakeLine = here(-1)
	}},
	{"raw result", "one $= stands for the result", nil, func(k *ptx.Kernel) {
		ptx.RawResult[ptx.U32](k, "trap")
		mistakeLine = here(-1)
	}},
	{"panic", "boom", nil, func(k *ptx.Kernel) {
		mistakeLine = ""
		panic("boom")
	}},
	{"index out of range", "index out of range", nil, func(k *ptx.Kernel) {
		mistakeLine = ""
		var v []ptx.F32
		ptx.GlobalParam[ptx.F32](k, "x").Store(v[len(k.Name())])
	}},
	{"no build function", "nil pointer", nil, nil},
}

// TestMisuse holds mistakes in the use of the builder: each is an error at the
// author's line, and nothing panics.
func TestMisuse(t *testing.T) {
	other := ptx.NewModule(ptx.SM80)
	other.Kernel("other", func(k *ptx.Kernel) {
		foreign = ptx.Param[ptx.U32](k, "n")
		foreignPointer = ptx.GlobalParam[ptx.F32](k, "x")
		foreignLabel = k.NewLabel()
		foreignKernel = k
	})
	for _, c := range misuses {
		t.Run(c.name, func(t *testing.T) {
			mistakeLine = ""
			m := ptx.NewModule(ptx.SM80)
			m.Kernel("f", c.build)
			text, err := m.PTX()
			var e *ptx.Error
			if !errors.As(err, &e) || text != "" {
				t.Fatalf("no error: %v\n%s", err, text)
			}
			if !strings.Contains(e.Msg, c.want) || e.Kernel != "f" || mistakeLine != "" && e.Pos.String() != mistakeLine {
				t.Errorf("%v\nwant at %s: %q", err, mistakeLine, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if err := m.Verify(); err == nil {
				t.Error("Verify forgot the mistake")
			}
			// The module is usable again.
			m.Reset()
			m.Kernel("f", relu)
			if _, err := m.PTX(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("after it was built", func(t *testing.T) {
		foreignKernel.Sync()
		foreign.Add(ptx.U(1))
		foreignPointer.At(foreign).Store(ptx.F(1))
		foreignPointer.Offset(3).Load()
		if err := other.Err(); err == nil || !strings.Contains(err.Error(), "after it was built") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("endless", func(t *testing.T) {
		m := ptx.NewModule(ptx.SM80)
		m.Kernel("f", func(k *ptx.Kernel) {
			x := ptx.GlobalParam[ptx.U32](k, "x")
			for {
				x.Store(ptx.U(1))
			}
		})
		if err := m.Err(); !errors.Is(err, ptx.ErrLimit) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("target", func(t *testing.T) {
		m := ptx.NewModule(ptx.Target(123))
		m.Kernel("f", relu)
		if _, err := m.PTX(); !errors.Is(err, ptx.ErrTarget) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nil kernel", func(t *testing.T) {
		var k *ptx.Kernel
		k.Sync()
		k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() {})
		ptx.GlobalParam[ptx.F32](k, "x").Load()
		k.MmaBF16(new([4]ptx.Var[ptx.F32]), [4]ptx.BF16x2{}, [2]ptx.BF16x2{})
		k.WgmmaBF16(nil, ptx.Tile{}, ptx.Tile{}, ptx.Wgmma{})
		k.Raw("trap")
		k.Cluster(1, 1, 1)
	})
}

// TestDeterminism builds modules twice, in fresh and in used memory.
func TestDeterminism(t *testing.T) {
	build := func(m *ptx.Module) string {
		for _, k := range append(kernels, tensorKernels...) {
			m.Kernel(k.name, k.build)
		}
		text, err := m.PTX()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	used := ptx.NewModule(ptx.SM90a)
	first := build(used)
	for range 3 {
		used.Reset()
		used.Kernel("other", sgemm)
		used.Reset()
		if build(used) != first || build(ptx.NewModule(ptx.SM90a)) != first {
			t.Fatal("the same calls gave different bytes")
		}
	}
}

// TestNoAllocations builds kernels in memory that is used again.
func TestNoAllocations(t *testing.T) {
	for _, k := range kernels {
		if k.name == "softmax" {
			continue // it makes a slice of its own
		}
		m := ptx.NewModule(ptx.SM90)
		var text []byte
		if n := testing.AllocsPerRun(20, func() {
			m.Reset()
			m.Kernel(k.name, k.build)
			text, _ = m.AppendPTX(text[:0])
		}); n != 0 {
			t.Errorf("%s: %v allocations", k.name, n)
		}
	}
}

// TestVersion shows that a module declares the lowest version that suffices.
func TestVersion(t *testing.T) {
	for _, c := range []struct {
		want   string
		target ptx.Target
		build  func(k *ptx.Kernel)
	}{
		{".version 6.0\n.target sm_70\n", ptx.SM70, relu},
		{".version 6.3\n.target sm_75\n", ptx.SM75, relu},
		{".version 7.0\n.target sm_80\n", ptx.SM80, mmaPipeline},
		{".version 7.8\n.target sm_90\n", ptx.SM90, mmaPipeline},
		{".version 8.0\n.target sm_90\n", ptx.SM90, clusterSum},
		{".version 8.0\n.target sm_90a\n", ptx.SM90a, wgmmaTMA},
		{".version 8.7\n.target sm_120\n", ptx.SM120, clusterSum},
		{".version 8.3\n.target sm_80\n", ptx.SM80, func(k *ptx.Kernel) { k.Require(8, 3, ptx.SM75) }},
	} {
		m := ptx.NewModule(c.target)
		m.Kernel("f", c.build)
		if text, err := m.PTX(); !strings.HasPrefix(text, c.want) {
			t.Errorf("%q, %v; want %q", text[:min(40, len(text))], err, c.want)
		}
	}
}

// TestSameMemory builds kernels in the memory of others, whose names they share in
// part: two parameters of one name are found all the same.
func TestSameMemory(t *testing.T) {
	m := ptx.NewModule(ptx.SM80)
	for i, names := range []string{"ab", "ab", "b", "bb", "abc", "a", "acc", "abc", "cbc", "abca"} {
		m.Reset()
		m.Kernel("k", func(k *ptx.Kernel) {
			for _, c := range names {
				ptx.Param[ptx.U32](k, string(c))
			}
		})
		twice := strings.Count(names, names[:1]) > 1 || strings.Count(names, names[len(names)-1:]) > 1
		text, err := m.PTX()
		if (err != nil) != twice {
			t.Errorf("%d, %s: %v", i, names, err)
		}
		for _, c := range names {
			if err == nil && !strings.Contains(text, "[p_"+string(c)+"]") {
				t.Errorf("%d, %s:\n%s", i, names, text)
			}
		}
	}
}

// TestRepeat holds what loops that run at least once cannot do.
func TestRepeat(t *testing.T) {
	for name, body := range map[string]func(k *ptx.Kernel){
		"Continue": func(k *ptx.Kernel) { k.Continue() },
		"within":   func(k *ptx.Kernel) { k.When(k.Special(ptx.TidX).Lt(ptx.U(3)), func() { k.Repeat(nil) }) },
	} {
		m := ptx.NewModule(ptx.SM80)
		m.Kernel("k", func(k *ptx.Kernel) {
			k.Repeat(func() ptx.Pred { body(k); return ptx.Is(false) })
		})
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "When") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("k", func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.U32](k, "x")
		v := ptx.NewVar(k, ptx.U(0))
		k.Repeat(func() ptx.Pred {
			ptx.AddTo(v, ptx.U(2))
			k.BreakIf(v.Live().Gt(x.Load()))
			return v.Live().Lt(ptx.U(10))
		})
		x.Store(v.Live())
	})
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

// TestStaleLabel: a label does not outlive the reset of its module, in whose next kernel another has its place.
func TestStaleLabel(t *testing.T) {
	m := ptx.NewModule(ptx.SM80)
	var old ptx.Label
	m.Kernel("k", func(k *ptx.Kernel) { old = k.NewLabel(); k.Place(old) })
	m.Reset()
	m.Kernel("k", func(k *ptx.Kernel) {
		l := k.NewLabel()
		k.Place(old)
		k.Branch(l)
	})
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "belongs to another kernel") {
		t.Errorf("%v", err)
	}
}

// TestFarElements: constants reach every element of global memory that registers reach.
func TestFarElements(t *testing.T) {
	for _, i := range []uint32{1<<29 - 1, 1 << 29, 1 << 30, math.MaxInt32, 1 << 31, math.MaxUint32} {
		m := ptx.NewModule(ptx.SM80)
		m.Kernel("k", func(k *ptx.Kernel) { ptx.GlobalParam[ptx.F32](k, "x").At(ptx.U(i)).Store(ptx.F(1)) })
		text, err := m.PTX()
		if err != nil || i >= 1<<29 && !strings.Contains(text, "add.u64") {
			t.Errorf("element %d: %v\n%s", i, err, text)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for name, fine := range map[string]bool{"_": false, "WARP_SZ": false, "_k": true, "WARP_SZ2": true} {
		m := ptx.NewModule(ptx.SM80)
		m.Kernel(name, func(*ptx.Kernel) {})
		if err := m.Err(); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
}
