package devicetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/onnxtest"
	"github.com/rayo-go/rayo/internal/testutil"
)

// onnx runs all of ONNX's node tests that the CPU passes, except those in but, which has the reasons. In short runs
// it chooses cases of each operator at random: a third of them, and one for WebGPU, because software takes long to
// compile the kernels. Package onnxtest runs all cases on the CPU.
func onnx(t *testing.T, open Open, but map[string]string) {
	cases, err := onnxtest.Cases()
	if err != nil {
		t.Fatal(err)
	}
	notYet, err := onnxtest.NotYet()
	if err != nil {
		t.Fatal(err)
	}
	dev := start(t, open)
	g, of := newGenerator(testutil.Seed(t)), map[string][]*onnxtest.Case{}
	for _, c := range cases {
		if notYet[c.Name] == "" {
			of[c.Node.Operator] = append(of[c.Node.Operator], c)
		}
	}
	divisor := 3 // one of three cases of each operator
	if dev.Info().Kind == device.WebGPU {
		divisor = len(cases)
	}
	cases = nil
	for _, o := range slices.Sorted(maps.Keys(of)) {
		cases = append(cases, someOf(g, of[o], divisor)...)
	}
	passed := 0
	for _, c := range cases {
		switch err := c.Run(t.Context(), dev); {
		case err == nil && but[c.Name] != "":
			t.Errorf("%s passes, although %s", c.Name, but[c.Name])
		case err == nil:
			passed++
		case but[c.Name] == "":
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	t.Logf("%d of %d cases pass", passed, len(cases))
}

// TestONNXPortable runs ONNX's node tests by the portable kernels, in the interpreter.
func TestONNXPortable(t *testing.T) { onnx(t, openPortable, nil) }
