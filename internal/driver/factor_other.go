//go:build !amd64 || noasm

package driver

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A lockstep would compute several matrices at a time.
type lockstep struct{}

func lockstepOf(*op.Operation, *Factoring) (none lockstep) { return none }

func whole(_ *Factoring, n int) int { return n }

// next computes the results for matrix i.
func next(f *Factoring, p *simd.Pool, i, _ int, in, out [][]byte) int {
	f.matrix(p, i, in, out)
	return 1
}
