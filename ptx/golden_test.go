package ptx_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

var update = flag.Bool("update", false, "write testdata/*.ptx anew")

// TestGolden compares the text of kernels with files that were reviewed by hand.
func TestGolden(t *testing.T) {
	for _, k := range []struct {
		named
		target ptx.Target
	}{{named{"relu", relu}, ptx.SM70}, {named{"gemm_naive", gemmNaive}, ptx.SM80}, {named{"cluster_sum", clusterSum}, ptx.SM90}} {
		t.Run(k.name, func(t *testing.T) {
			m := ptx.NewModule(k.target)
			m.Kernel(k.name, k.build)
			text, err := m.PTX()
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join("testdata", k.name+".ptx")
			if *update {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("the text changed; if that is right: go test -run Golden -update\n%s", text)
			}
		})
	}
}
