// Command reduce writes the assembly of the reductions and the row operations
// of package simd for AVX-512, AVX2 and NEON.
//
// Run it through go generate in folder simd.
package main

import (
	"fmt"
	"os"
)

const command = "go run ./reduce"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reduce DIR")
		os.Exit(2)
	}
	dir := os.Args[1]
	wide, narrow := newAMD64(true), newAMD64(false)
	kernels(wide)
	check(wide.write(dir, "reduce_avx512_amd64"))
	kernels(narrow)
	check(narrow.write(dir, "reduce_avx2_amd64"))
	arm := newARM64()
	kernels(arm)
	check(arm.write(dir, "reduce_neon_arm64"))
}

// kernels writes all kernels for one instruction set.
func kernels(m machine) {
	k := &writer{machine: m}
	for _, r := range reductions {
		k.block(r)
		k.rows(r)
	}
	k.rows(each)
	k.deviations()
	k.index()
	k.exp(true)
	k.exp(false)
	k.affine()
	k.fetchRows()
	k.rope(true)
	k.rope(false)
	if s, ok := m.(scanner); ok {
		k.cumsum(s)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "reduce:", err)
		os.Exit(1)
	}
}
