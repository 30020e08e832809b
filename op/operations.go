package op

// The variables of this file are the operations, by subject. Other files have their definitions, with
// references and rules. docs/OPS.md describes each operation in full.

// Activations.
var (
	Relu        = &defRelu        // the positive part
	LeakyRelu   = &defLeakyRelu   // x, scaled by slope where it is negative
	PRelu       = &defPRelu       // x, scaled by slope where it is negative
	Elu         = &defElu         // the exponential linear unit
	Celu        = &defCelu        // the continuously differentiable exponential linear unit
	Selu        = &defSelu        // the scaled exponential linear unit of Klambauer et al. 2017
	Gelu        = &defGelu        // x times the cumulative distribution function of the standard normal distribution
	GeluTanh    = &defGeluTanh    // the tanh approximation of gelu
	Silu        = &defSilu        // x times its logistic function, also called swish
	HardSwish   = &defHardSwish   // the piecewise approximation of silu from Howard et al. 2019
	Mish        = &defMish        // x times tanh(softplus(x))
	Sigmoid     = &defSigmoid     // the logistic function
	HardSigmoid = &defHardSigmoid // alpha·x + beta limited to [0, 1]
	Tanh        = &defTanh        // the hyperbolic tangent
	Softplus    = &defSoftplus    // log(1 + e**x) without overflow
	Softsign    = &defSoftsign    // x over one plus its magnitude
	Shrink      = &defShrink      // x moved towards 0 by bias where |x| > lambda, else 0
	Threshold   = &defThreshold   // x where it is greater than edge, else value
)

// Arithmetic of two and three operands.
var (
	Add         = &defAdd         // x plus y
	Sub         = &defSub         // x minus y
	Mul         = &defMul         // x times y
	Div         = &defDiv         // x divided by y, correctly rounded
	FloorDivide = &defFloorDivide // the greatest integer not above x / y
	Fmod        = &defFmod        // the remainder of x / y, with the quotient rounded towards 0
	Remainder   = &defRemainder   // the remainder of x / y, with the quotient rounded down
	Pow         = &defPow         // x to the power y
	Minimum     = &defMinimum     // the lesser of x and y
	Maximum     = &defMaximum     // the greater of x and y
	Hypot       = &defHypot       // the length of the vector (x, y), without overflow
	LogAddExp   = &defLogAddExp   // log(e**x + e**y) without overflow
	Axpy        = &defAxpy        // a·x + y
	Lerp        = &defLerp        // x + t·(y-x), exactly x at t = 0 and y at t = 1
	Fma         = &defFma         // x·y + z, rounded once
)

// Arithmetic with a scalar.
var (
	Scale     = &defScale     // x times s
	AddScalar = &defAddScalar // x plus s
	Clip      = &defClip      // x limited to [lo, hi]
)

// Arithmetic of one operand.
var (
	Abs    = &defAbs    // the magnitude
	Neg    = &defNeg    // the negative
	Sign   = &defSign   // -1, 0 or 1 by the sign of x
	Recip  = &defRecip  // 1 / x
	Square = &defSquare // x times x
	Sqrt   = &defSqrt   // the square root, correctly rounded
	Rsqrt  = &defRsqrt  // 1 / sqrt(x)
	Cbrt   = &defCbrt   // the cube root
	Floor  = &defFloor  // the greatest integer not above x
	Ceil   = &defCeil   // the least integer not below x
	Round  = &defRound  // the nearest integer, with ties to even
	Trunc  = &defTrunc  // x without its fraction
	Exp    = &defExp    // e to the power x
	Exp2   = &defExp2   // 2 to the power x
	Expm1  = &defExpm1  // e**x - 1, accurate near 0
	Log    = &defLog    // the natural logarithm
	Log2   = &defLog2   // the logarithm to base 2
	Log10  = &defLog10  // the logarithm to base 10
	Log1p  = &defLog1p  // log(1 + x), accurate near 0
	Erf    = &defErf    // the Gauss error function
	Erfinv = &defErfinv // the inverse of the Gauss error function
)

// Trigonometric and hyperbolic functions.
var (
	Sin   = &defSin   // the sine of x radians
	Cos   = &defCos   // the cosine of x radians
	Tan   = &defTan   // the tangent of x radians
	Asin  = &defAsin  // the arc sine in radians
	Acos  = &defAcos  // the arc cosine in radians
	Atan  = &defAtan  // the arc tangent in radians
	Atan2 = &defAtan2 // the angle of the point (y, x) in radians, in [-pi, pi]
	Sinh  = &defSinh  // the hyperbolic sine
	Cosh  = &defCosh  // the hyperbolic cosine
	Asinh = &defAsinh // the inverse hyperbolic sine
	Acosh = &defAcosh // the inverse hyperbolic cosine
	Atanh = &defAtanh // the inverse hyperbolic tangent
)

// Comparisons, choice and conversion.
var (
	Equal        = &defEqual        // whether x == y
	NotEqual     = &defNotEqual     // whether x != y
	Less         = &defLess         // whether x < y
	LessEqual    = &defLessEqual    // whether x <= y
	Greater      = &defGreater      // whether x > y
	GreaterEqual = &defGreaterEqual // whether x >= y
	Where        = &defWhere        // y where c holds, else z
	IsNaN        = &defIsNaN        // whether x is NaN
	IsInf        = &defIsInf        // whether x is an infinity
	IsFinite     = &defIsFinite     // whether x is neither NaN nor an infinity
	SignBit      = &defSignBit      // whether the sign bit of x is set; true for -0
	CopySign     = &defCopySign     // the magnitude of x with the sign of y
	Cast         = &defCast         // x in another element type
	BitcastF32   = &defBitcastF32   // the bits of a 32-bit number as f32
	BitcastI32   = &defBitcastI32   // the bits of a 32-bit number as i32
	BitcastU32   = &defBitcastU32   // the bits of a 32-bit number as u32
)

// Logic of truth values, and of the bits of integers.
var (
	And        = &defAnd        // whether x and y are both true; for integers the bitwise and
	Or         = &defOr         // whether x or y is true; for integers the bitwise or
	Xor        = &defXor        // whether exactly one of x and y is true; for integers the bitwise exclusive or
	Not        = &defNot        // the negation; for integers the bitwise complement
	ShiftLeft  = &defShiftLeft  // x with its bits shifted left by y places
	ShiftRight = &defShiftRight // x with its bits shifted right by y places
)

// Reductions.
var (
	Sum          = &defSum          // the sum
	Prod         = &defProd         // the product
	Dot          = &defDot          // the sum of the products
	Mean         = &defMean         // the arithmetic mean
	Var          = &defVar          // the variance
	Min          = &defMin          // the least element
	Max          = &defMax          // the greatest element
	ArgMin       = &defArgMin       // the index of the least element
	ArgMax       = &defArgMax       // the index of the greatest element
	NormL1       = &defNormL1       // the sum of the magnitudes
	NormL2       = &defNormL2       // the Euclidean length
	NormLinf     = &defNormLinf     // the greatest magnitude
	LogSumExp    = &defLogSumExp    // the logarithm of the sum of the exponentials
	Any          = &defAny          // whether an element is not 0
	All          = &defAll          // whether no element is 0
	CountNonzero = &defCountNonzero // the number of nonzero elements
)

// Operations on rows: normalisation, scans, sorting.
var (
	Softmax      = &defSoftmax      // the exponentials of a row divided by their sum
	LogSoftmax   = &defLogSoftmax   // the logarithm of softmax, without underflow
	LayerNorm    = &defLayerNorm    // a row shifted to mean 0 and scaled to variance 1, then times gamma plus beta
	RMSNorm      = &defRMSNorm      // a row divided by its root mean square, then times gamma
	Cumsum       = &defCumsum       // the running sums: each element plus all elements before it
	Cumprod      = &defCumprod      // the running products: each element times all elements before it
	Cummax       = &defCummax       // the running maximum: the greatest of each element and all elements before it
	Cummin       = &defCummin       // the running minimum: the least of each element and all elements before it
	LogCumsumExp = &defLogCumsumExp // the logarithms of the running sums of exponentials, without overflow
	Sort         = &defSort         // the elements of each row in ascending or descending order, and their indices
	TopK         = &defTopK         // the k greatest elements of each row in descending order, and their indices
)

// Products, convolution and attention.
var (
	MatMul        = &defMatMul        // the product of two matrices, of corresponding matrices of two batches, or of a batch of matrices and one matrix
	MatVec        = &defMatVec        // the product of a matrix and a vector
	MatMulQ       = &defMatMulQ       // the product of a matrix and the transpose of a quantised matrix
	MatMulExperts = &defMatMulExperts // the products of rows with the transposes of the matrices at the indices ids
	Conv2D        = &defConv2D        // the cross-correlation of images with filters, which neural networks call convolution
	Attention     = &defAttention     // the scaled dot-product attention, with one head of keys and values for each group of query heads
	Rope          = &defRope          // the rotary embedding of positions: pair j of each head rotated by the angle position·theta**(-2j/d)
)

// Linear algebra.
var (
	Cholesky        = &defCholesky        // the lower triangular L with A = L·Lᵀ of symmetric positive definite matrices
	LU              = &defLU              // the factors of P·A = L·U with partial pivoting, and the row exchanges
	QR              = &defQR              // the reduced factors of A = Q·R, Q with orthonormal columns and R upper triangular
	SVD             = &defSVD             // the reduced singular value decomposition A = U·diag(s)·Vᵀ
	Eigh            = &defEigh            // the eigenvalues of symmetric matrices in ascending order, and orthonormal eigenvectors
	Solve           = &defSolve           // the X with A·X = B for square A, by LU with partial pivoting
	SolveTriangular = &defSolveTriangular // the X with op(A)·X = B for triangular A, where op(A) is A or Aᵀ
)

// Views show the elements of their operand in another shape or order, some of them, or some
// several times: they change its [Layout] and compute nothing. Pad and Concat are listed with them.
var (
	Reshape       = &defReshape       // the same elements in another shape; no element is moved
	Transpose     = &defTranspose     // the last two axes exchanged
	Permute       = &defPermute       // the axes in another order
	Slice         = &defSlice         // the elements start, start+step and so on of one axis, up to but not including stop
	Flip          = &defFlip          // the elements of some axes in the opposite order
	Expand        = &defExpand        // the operand repeated along axes that it lacks or that have extent 1
	Diagonal      = &defDiagonal      // the elements of a diagonal of two axes, along a new last axis
	SlidingWindow = &defSlidingWindow // the windows of one axis, step elements apart, with the elements of a window along a new last axis
	Pad           = &defPad           // the operand with a constant before and after the elements of one axis
	Concat        = &defConcat        // the operands one after the other along an axis
)

// Operations whose indices are operands, so that their values are known only when the operation runs.
var (
	SliceAt = &defSliceAt // n elements of one axis, starting at an index that is an operand
	Update  = &defUpdate  // x with elements of one axis replaced by v, starting at an index that is an operand
	Gather  = &defGather  // the elements of a table at the indices ids of one axis, as in an embedding lookup
	Scatter = &defScatter // x with the elements of v assigned, added, multiplied or combined by minimum or maximum at the indices ids of one axis
)

// Numbers made on the device.
var (
	Iota     = &defIota     // n consecutive integers, from a start that is an operand
	Threefry = &defThreefry // 32 random bits for each counter i and key (k0, k1), by Threefry-2x32
)
