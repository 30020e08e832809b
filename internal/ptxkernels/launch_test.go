package ptxkernels

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// TestArgs compares the offsets of the arguments with the offsets of the kernel's parameters.
func TestArgs(t *testing.T) {
	k := ptx.NewModule(ptx.SM90a).Kernel("k", func(k *ptx.Kernel) {
		ptx.Param[ptx.U32](k, "a")
		ptx.Param[ptx.U64](k, "b")
		ptx.Param[ptx.U32](k, "c")
		ptx.TensorMapParam(k, "d")
		ptx.Param[ptx.U64](k, "e")
	})
	tiles := &Tiles{Type: op.F16}
	s := &Stage{Args: []Arg{word(7), {Kind: Pointer, Array: portable.Ref{Kind: portable.OutputRef, Index: 1}, Off: 8}, word(9),
		{Kind: Map, Array: portable.Ref{Kind: portable.ScratchRef}, Off: 16, Tiles: tiles}, {Kind: Double, Bits: 1<<63 + 5}}}
	a := &Arrays{portable.OutputRef: {1, 0x1000}, portable.ScratchRef: {0x2000}}
	made := func(i int, at cuda.Ptr) (m cuda.TensorMap, err error) {
		m[0], m[127] = byte(i), byte(at)
		return m, nil
	}
	p, err := s.AppendArgs(nil, a, made)
	if err != nil {
		t.Fatal(err)
	}
	args := k.Args()
	if last := args[len(args)-1]; len(p) != last.Offset+last.Size {
		t.Errorf("%d bytes, the last parameter ends at %d", len(p), last.Offset+last.Size)
	}
	var want cuda.Params
	for i, v := range []uint64{7, 0x1008, 9, 0, 1<<63 + 5} {
		for len(want) < args[i].Offset {
			want.U8(0)
		}
		switch args[i].Size {
		case 4:
			want.U32(uint32(v))
		case 8:
			want.U64(v)
		default:
			m, _ := made(i, 0x2010)
			want.Bytes(m[:], 1)
		}
	}
	if string(p) != string(want) {
		t.Errorf("arguments\n% x\nnot\n% x", []byte(p), []byte(want))
	}
	if n := testing.AllocsPerRun(100, func() { p, _ = s.AppendArgs(p[:0], a, made) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	none := errors.New("none")
	if _, err := s.AppendArgs(nil, a, func(int, cuda.Ptr) (cuda.TensorMap, error) { return cuda.TensorMap{}, none }); err != none {
		t.Errorf("without a tensor map: %v", err)
	}
}
