package devicetest

import (
	"bytes"
	"compress/bzip2"
	_ "embed"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// numpyTables has NumPy's tables as testdata/numpy/pack.py packs them.
//
//go:embed testdata/numpy/tables.txt.bz2
var numpyTables []byte

// numpyNames maps NumPy's names of functions to names of operations where they differ.
var numpyNames = map[string]string{
	"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
}

// table is NumPy's table of a function: operands, and results that were computed with more bits and rounded to
// float32.
type table struct {
	function string
	x, want  []float32
}

var readTables = sync.OnceValues(func() (list []table, err error) {
	text, err := io.ReadAll(bzip2.NewReader(bytes.NewReader(numpyTables)))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var f string
		var x, y uint32
		if _, err := fmt.Sscanf(line, "%s %x %x", &f, &x, &y); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if len(list) == 0 || list[len(list)-1].function != f {
			list = append(list, table{function: f})
		}
		t := &list[len(list)-1]
		t.x, t.want = append(t.x, math.Float32frombits(x)), append(t.want, math.Float32frombits(y))
	}
	return list, nil
})

// numpy compares every function of NumPy's tables with all rows of the tables, within
// the operation's tolerance plus the half unit by which the table was rounded.
func numpy(t *testing.T, open Open) {
	tables, err := readTables()
	if err != nil {
		t.Fatal(err)
	}
	dev := start(t, open)
	free := deviationsOf(t.Context(), dev)
	var lacking []string
	for _, tab := range tables {
		name := tab.function
		if n, ok := numpyNames[name]; ok {
			name = n
		}
		o := op.Lookup(name)
		if o == nil {
			lacking = append(lacking, tab.function)
			continue
		}
		b := batch.New(dev)
		y := b.Map(o, b.Upload(tab.x))
		if err := b.Execute(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := batch.Read[float32](t.Context(), b, y)
		if err != nil {
			t.Fatal(err)
		}
		tol := o.Tolerance()
		tol.ULP += 0.5
		for i, want := range tab.want {
			err := tol.Check(float64(got[i]), float64(want), 0, op.F32)
			if err != nil && !(math.Abs(float64(got[i]-want)) < free.slack) {
				t.Errorf("%s(%v): %v", name, tab.x[i], err)
			}
		}
	}
	t.Logf("%d functions, without %v", len(tables)-len(lacking), lacking)
	if len(tables) != 20 {
		t.Errorf("%d tables", len(tables))
	}
}

func TestNumPy(t *testing.T) { numpy(t, cpu(0)) }

// TestNumPyPortable compares the portable kernels, in the interpreter, with the tables.
func TestNumPyPortable(t *testing.T) { numpy(t, openPortable) }
