package op

import (
	"errors"
	"slices"

	"github.com/rayo-go/rayo/internal/fmt"
)

// ErrShape is the error of sizes, shapes or parameters that an operation does
// not take. Test for it with errors.Is.
var ErrShape = errors.New("shape mismatch")

// ErrUnsupported is the error of something that is well formed but not
// defined or not available: an element type that an operation does not take,
// a feature that a device lacks.
var ErrUnsupported = errors.New("unsupported")

// errZero is the error of the zero Operation.
var errZero = fmt.Errorf("the zero Operation computes nothing: %w", ErrUnsupported)

// catalogue lists the operations by class, in the order of docs/OPS.md.
var catalogue = [...]*Operation{
	&defBitcastF32, &defBitcastI32, &defBitcastU32, &defRelu, &defLeakyRelu, &defElu, &defSelu, &defSigmoid,
	&defTanh, &defSilu, &defHardSwish, &defMish, &defGelu, &defGeluTanh, &defCelu, &defHardSigmoid, &defShrink,
	&defThreshold, &defPRelu, &defSoftsign, &defSoftplus, &defAbs, &defNeg, &defSign, &defFloor, &defCeil,
	&defRound, &defTrunc, &defExp, &defExp2, &defLog, &defLog2, &defLog1p, &defSqrt, &defRsqrt, &defRecip,
	&defSquare, &defSin, &defCos, &defErf, &defClip, &defScale, &defAddScalar, &defAdd, &defSub, &defMul,
	&defDiv, &defMinimum, &defMaximum, &defPow, &defAxpy, &defLerp, &defFma, &defEqual, &defNotEqual, &defLess,
	&defLessEqual, &defGreater, &defGreaterEqual, &defWhere, &defCast, &defIsNaN, &defSignBit, &defCopySign,
	&defAnd, &defOr, &defXor, &defNot, &defShiftLeft, &defShiftRight, &defThreefry, &defTan, &defAsin, &defAcos,
	&defAtan, &defAtan2, &defExpm1, &defLog10, &defLogAddExp, &defIsInf, &defIsFinite, &defFloorDivide, &defFmod,
	&defRemainder, &defCbrt, &defHypot, &defSinh, &defCosh, &defAtanh, &defAsinh, &defAcosh, &defErfinv,

	&defSum, &defProd, &defDot, &defMean, &defVar, &defMin, &defMax, &defArgMin, &defArgMax, &defNormL1,
	&defNormL2, &defNormLinf, &defLogSumExp, &defAny, &defAll, &defCountNonzero,

	&defCumsum, &defCumprod, &defCummax, &defCummin, &defLogCumsumExp, &defSoftmax, &defLogSoftmax,
	&defLayerNorm, &defRMSNorm,

	&defAttention, &defCholesky, &defTopK, &defConv2D, &defEigh, &defGather, &defIota, &defLU, &defSolve,
	&defMatMul, &defMatVec, &defMatMulExperts, &defSliceAt, &defUpdate, &defQR, &defMatMulQ, &defRope,
	&defScatter, &defSort, &defSVD, &defSolveTriangular, &defReshape, &defTranspose, &defPermute, &defSlice,
	&defFlip, &defExpand, &defPad, &defConcat, &defDiagonal, &defSlidingWindow,
}

// Catalogue returns the built-in operations, in the order of docs/OPS.md.
func Catalogue() []*Operation { return append([]*Operation(nil), catalogue[:]...) }

// Lookup returns the built-in operation of that name or alias, or nil.
func Lookup(name string) *Operation {
	for _, o := range catalogue {
		if o.Name() == name || slices.Contains(o.Aliases(), name) {
			return o
		}
	}
	return nil
}

// add completes a definition.
func add(o *definition) *definition {
	if o.outs == 0 {
		o.outs = 1
	}
	o.setPlain()
	return o
}
