package engine

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// quantise is the function quantised in programs that use quantised types, otherwise nil: see [UseBlocks].
var quantise func(x *op.Array, t op.DType) (*op.Array, Host, error)

// UseBlocks links the self-test of quantised types. In pages package batch calls it, because only that
// package multiplies them. Other programs call it before main begins.
func UseBlocks() { quantise = quantised }

// quantised returns blocks of type t and their decoded numbers. The first half of the blocks encode
// x; the second half have random bytes.
func quantised(x *op.Array, t op.DType) (*op.Array, Host, error) {
	n, err := t.Bytes(x.Shape)
	if err != nil {
		return nil, Host{}, err
	}
	values, blocks := make([]float32, len(x.Data)), make([]byte, n)
	for k, v := range x.Data {
		values[k] = float32(v)
	}
	even := make([]float32, x.Shape[len(x.Shape)-1]) // the importance matrix, which some formats need
	for k := range even {
		even[k] = 1
	}
	if err := t.Block().QuantizeWeighted(blocks, values, even); err != nil {
		return nil, Host{}, err
	}
	anyBlocks(t.Block(), blocks[len(blocks)/2/t.Block().Bytes()*t.Block().Bytes():])
	held, err := t.Array(x.Shape, blocks)
	return held, HostOf(blocks, t, x.Shape), err
}

// anyBlocks fills blocks with arbitrary bytes and finite scales, including levels, signs and small
// scales that no quantiser chooses.
func anyBlocks(f block.Format, blocks []byte) {
	state := uint32(1)
	for ; len(blocks) > 0; blocks = blocks[f.Bytes():] {
		b := blocks[:f.Bytes()]
		for again := true; again; again = f.Check(b) != nil {
			for i := range b {
				state = state*1664525 + 1013904223
				b[i] = byte(state >> 24)
			}
			if scale := f.Layout().Scale; scale.Encoding == block.E8M0 {
				b[scale.Number[0].At/8] = 118 + byte(state>>8)%20 // with larger scales, sums overflow
			}
		}
	}
}
