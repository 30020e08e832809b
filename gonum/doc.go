// Package gonum connects rayo with gonum: float32 BLAS routines on rayo's SIMD
// kernels, and matrices that go from one library to the other.
//
// Register the routines once and every user of package blas32 computes with them:
//
//	blas32.Use(gonum.NewBLAS())
//
// A [BLAS] embeds gonum's own implementation and overrides the routines that
// dominate dense linear algebra: Sgemm, Ssymm, Ssyrk, Ssyr2k, Strmm, Strsm, Sgemv
// and Sger, and Sdot, Saxpy, Sscal, Sasum and Snrm2 of contiguous vectors. All others run
// in gonum's code. Invalid arguments panic with
// gonum's messages, since package blas32 promises that.
//
// The package is a module of its own, so that programs without gonum do not
// download it.
package gonum
