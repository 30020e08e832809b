package devicetest

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// goldenBlock has random blocks of a format, and the numbers to which llama.cpp decodes them.
type goldenBlock struct {
	Blocks hexBytes `json:"random_blocks_hex"`
	Values hexBytes `json:"random_dequant_f32_le_hex"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// value returns number i.
func (g *goldenBlock) value(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(g.Values[4*i:]))
}

// goldenOf reads the golden blocks by element type.
func goldenOf(t *testing.T) map[op.DType]*goldenBlock {
	t.Helper()
	text, err := os.ReadFile("../../gguf/block/testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Types map[string]*goldenBlock `json:"types"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	golden := map[op.DType]*goldenBlock{}
	for _, d := range op.QuantTypes() {
		g := file.Types[strings.ToUpper(d.String())]
		if g == nil || len(g.Values) != 4*goldenElements {
			t.Fatalf("no %d golden values of %v", goldenElements, d)
		}
		golden[d] = g
	}
	return golden
}

const (
	goldenElements = 512
	goldenColumns  = 256
)

// goldenBlocks compares a device with llama.cpp for blocks of every format. Gathered rows must equal llama.cpp's
// numbers bit for bit, and products must be within the tolerance. The first use of each format also runs the
// device's self-test. The formats that give an ErrUnsupported must be those that the caller lists. In short runs
// WebGPU gets some of the formats, because software takes long to compile the kernels.
func goldenBlocks(t *testing.T, open Open, unsupported ...op.DType) {
	dev := start(t, open)
	g := newGenerator(testutil.Seed(t))
	golden := goldenOf(t)
	missing := map[op.DType]bool{}
	for _, d := range unsupported {
		missing[d] = true
	}
	formats := op.QuantTypes()
	if dev.Info().Kind == device.WebGPU {
		formats = someOf(g, formats, 3)
	}
	for _, d := range formats {
		products := []int{1, 3, goldenColumns + 1}
		if short() {
			products = products[g.IntN(2):2]
			if g.IntN(4) == 0 { // the large product takes long on an emulated GPU
				products = append(products, goldenColumns+1)
			}
		}
		err := goldenRows(t, dev, d, golden[d])
		for _, rows := range products {
			if err == nil {
				err = g.goldenProduct(t, dev, d, golden[d], rows)
			}
		}
		switch {
		case missing[d] && !errors.Is(err, device.ErrUnsupported):
			t.Errorf("%v: %v; it is listed as what this device does not offer", d, err)
		case err != nil && !missing[d]:
			t.Errorf("%v: %v", d, err)
		}
	}
}

// executed runs the batch and returns the elements of y.
func executed(ctx context.Context, b *batch.Batch, y batch.Value) ([]float32, error) {
	if err := b.Execute(ctx); err != nil {
		return nil, err
	}
	return batch.Read[float32](ctx, b, y)
}

// goldenRows reads the rows of the table with gather.
func goldenRows(t *testing.T, dev *device.Device, d op.DType, g *goldenBlock) error {
	b := batch.New(dev)
	y := b.Gather(b.UploadBlocks(g.Blocks, d, goldenElements/goldenColumns, goldenColumns), batch.Upload(b, []int32{1, 0}))
	got, err := executed(t.Context(), b, y)
	if err != nil {
		return err
	}
	for i, v := range got {
		if want := g.value((i + goldenColumns) % goldenElements); v != want {
			t.Errorf("%v: element %d is %v, want %v", d, i, v, want)
			break
		}
	}
	return nil
}

// goldenProduct multiplies the table by the transpose of in. The first row of in is random; each of the others
// is a row of the identity matrix, whose products are single elements of the table.
func (g *generator) goldenProduct(t *testing.T, dev *device.Device, d op.DType, golden *goldenBlock, rows int) error {
	in := make([]float32, rows*goldenColumns)
	for i := range rows {
		row := in[i*goldenColumns:][:goldenColumns]
		if i > 0 {
			row[(i-1)%goldenColumns] = 1
			continue
		}
		for k := range row {
			row[k] = float32(g.NormFloat64())
		}
	}
	table := op.Shape{goldenElements / goldenColumns, goldenColumns}
	w, err := d.Array(table, golden.Blocks) // for the magnitudes of its terms
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Data {
		w.Data[i] = float64(golden.value(i))
	}
	x := op.NewArray(op.Shape{rows, goldenColumns})
	for i, v := range in {
		x.Data[i] = float64(v)
	}
	attrs := op.MatMulQ.Defaults()
	want, err := op.MatMulQ.Reference(&attrs, []*op.Array{x, w}, []op.DType{op.F32, d})
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	y := b.MatMulQ(b.Upload(in, rows, goldenColumns), b.UploadBlocks(golden.Blocks, d, table...), batch.None)
	got, err := executed(t.Context(), b, y)
	if err != nil {
		return err
	}
	for i, v := range got {
		if err := op.MatMulQ.Check(float64(v), want[0].Data[i], want[0].Mag[i], op.F32); err != nil {
			t.Errorf("%v, %d rows: element %d: %v", d, rows, i, err)
			break
		}
	}
	return nil
}
