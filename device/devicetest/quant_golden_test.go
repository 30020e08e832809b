package devicetest

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestGoldenBlocks takes rows of tables whose blocks and numbers are llama.cpp's, on
// the CPU by its own kernels and by the portable ones.
func TestGoldenBlocks(t *testing.T) {
	text, err := os.ReadFile("../../gguf/block/testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Types map[string]struct {
			Blocks string `json:"random_blocks_hex"`
			Values string `json:"random_dequant_f32_le_hex"`
		} `json:"types"`
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]device.Option{
		"own":      {device.Require(device.CPU)},
		"portable": {device.Require(device.CPU), device.WithPortableKernels()},
	} {
		dev, err := device.Open(t.Context(), options...)
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		for _, d := range op.QuantTypes() {
			g, ok := golden.Types[strings.ToUpper(d.String())]
			if !ok {
				t.Fatalf("no golden values of %v", d)
			}
			blocks, err1 := hex.DecodeString(g.Blocks)
			values, err2 := hex.DecodeString(g.Values)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			n := len(values) / 4
			b := batch.New(dev)
			y := b.Gather(b.UploadBlocks(blocks, d, 1, n), batch.Upload(b, []int32{0}))
			if err := b.Execute(t.Context()); err != nil {
				t.Fatalf("%s, %v: %v", name, d, err)
			}
			got, err := b.Read(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				want := math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
				if v != want {
					t.Errorf("%s, %v: element %d is %v, want %v", name, d, i, v, want)
					break
				}
			}
		}
	}
}
