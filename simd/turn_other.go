//go:build !amd64 || noasm

package simd

// HasTurn reports false: there are no kernels.
func HasTurn() bool { return false }

// HasJoinRows reports false: there are no kernels.
func HasJoinRows() bool { return false }

// TurnRows is never called: see HasTurn.
func TurnRows(_, _ *uint32, _ []int, _, _, _ int) {}

// TurnGroups is never called: see HasJoinRows.
func TurnGroups(_, _ *uint32, _ []int, _, _, _ int) {}

// JoinLines is never called: see HasTurn.
func JoinLines(_, _ *uint32, _, _, _, _, _ int) {}

// JoinLinesPast is never called: see HasTurn.
func JoinLinesPast(_, _ *uint32, _, _, _, _, _ int) {}

// JoinLinesSkew is never called: see HasTurn.
func JoinLinesSkew(_, _ *uint32, _, _, _, _, _ int, _ *uint32) {}

// JoinRows is never called: see HasJoinRows.
func JoinRows(_, _ *uint32, _, _, _ int, _ bool, _, _, _ int, _ bool) {}

// StripRows and StripAhead are as for other processors.
const StripRows, StripAhead = 16, 16

// TransposeStrips is never called: see HasTurn.
func TransposeStrips(_, _ *uint32, _ []int, _, _ int, _ bool) {}

// TransposeColumns is never called: see HasTurn.
func TransposeColumns(_, _ *uint32, _, _ []int, _ bool) {}
