package onnxtest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
)

var update = flag.Bool("update", false, "write the cases that fail, with the reason, into "+notYetFile)

const notYetFile = "testdata/notyet.txt"

// TestCPU runs every case on the CPU. One that fails must be listed as not yet,
// and one that is listed must fail.
func TestCPU(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := NotYet()
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	passed := 0
	for _, c := range cases {
		err := c.Run(t.Context(), dev)
		if err != nil {
			fmt.Fprintf(&list, "%s: %s\n", c.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			passed++
		}
		if *update {
			continue
		}
		switch why, ok := listed[c.Name]; {
		case err != nil && !ok:
			t.Errorf("%s: %v", c.Name, err)
		case err == nil && ok:
			t.Errorf("%s passes and is listed as not yet (%s): run go test ./internal/onnxtest -update", c.Name, why)
		}
		delete(listed, c.Name)
	}
	t.Logf("%d of %d cases pass", passed, len(cases))
	if *update {
		if err := os.WriteFile(notYetFile, []byte(list.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name := range listed {
		t.Errorf("%s is listed as not yet, and there is no such case", name)
	}
}
