//go:build noasm || !amd64

package simd

import "github.com/rayo-go/rayo/internal/workers"

// quick reports whether the rows are sorted by partitions: there are no kernels for it.
func (t *sortTask) quick() bool { return false }

func (t *sortTask) quickRows(int, int) {}

func (t *sortTask) quickSplit(*workers.Pool, int, int) {}

func gatherShortRowsOf(Level) func(dst, x *byte, ids *int32, n, extent, size int) int { return nil }

func gatherWordsOf(Level) func(dst, x *uint32, ids *int32, n, extent int, missing uint32) { return nil }

func wordFoldsOf(Level) *wordFolds { return new(wordFolds) }
