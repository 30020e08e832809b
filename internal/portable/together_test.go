package portable

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// TestTogether checks that plans which goroutines request at the same time consist of the
// same kernels. It is the only test of this package under the race detector, where
// interpreting kernels is too slow.
func TestTogether(t *testing.T) {
	trials := epilogueTrials(rand.New(rand.NewPCG(29, 30)))
	const goroutines = 4
	kernels := make([][]*kernel.Kernel, goroutines)
	var group sync.WaitGroup
	for g := range kernels {
		group.Add(1)
		go func() {
			defer group.Done()
			for _, x := range trials {
				r, err := x.request(Target{})
				if err != nil {
					t.Error(err)
					return
				}
				for _, post := range []*Epilogue{nil, {Exprs: []*ir.Node{ir.NewArg(0, ir.F32)}}} {
					r.Post = post
					p, err := For(r)
					if err != nil {
						t.Error(err)
						return
					}
					for _, s := range p.Stages {
						if _, err := s.Kernel.Program(); err != nil {
							t.Error(err)
						}
						kernels[g] = append(kernels[g], s.Kernel)
					}
				}
			}
		}()
	}
	group.Wait()
	for g := 1; g < goroutines && !t.Failed(); g++ {
		for i, k := range kernels[g] {
			if k != kernels[0][i] {
				t.Fatalf("goroutine %d: kernel %d, of %s, is another one", g, i, k.Name())
			}
		}
	}
}
