package op

import (
	"slices"
	"strings"
	"sync"
)

// A Peer lists the names in other libraries of an operation of the catalogue, or of a
// method of package batch that is composed of operations.
type Peer struct {
	Name               string   // the operation; "" for a method
	Method             string   // the method of package batch; "" for an operation
	NumPy, Torch, ONNX []string // names without the prefixes np., torch. and onnx.
}

// Names returns the names with their libraries: np.clip, torch.clamp, onnx.Clip.
func (p *Peer) Names() []string {
	var names []string
	for _, l := range []struct {
		library string
		names   []string
	}{{"np.", p.NumPy}, {"torch.", p.Torch}, {"onnx.", p.ONNX}} {
		for _, n := range l.names {
			names = append(names, l.library+n)
		}
	}
	return names
}

// Elsewhere returns the names of the operation in other libraries: np.clip, torch.clamp,
// onnx.Clip.
func (o *Operation) Elsewhere() []string {
	for _, p := range peers() {
		if p.Name == o.def().name {
			return p.Names()
		}
	}
	return nil
}

// Peers returns the names of operations and methods in other libraries.
func Peers() []Peer { return slices.Clone(peers()) }

// PeersNamed returns the operations and methods that a library calls name. The name may
// begin with np., torch. or onnx., and the case of its letters does not matter.
func PeersNamed(name string) []Peer {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "numpy."); ok {
		name = "np." + rest
	}
	var found []Peer
	for _, p := range peers() {
		if slices.ContainsFunc(p.Names(), func(n string) bool {
			n = strings.ToLower(n)
			_, bare, _ := strings.Cut(n, ".")
			return n == name || bare == name
		}) {
			found = append(found, p)
		}
	}
	return found
}

// operation and method make entries of the table of names in other libraries. In names, spaces
// separate names, and bars separate NumPy, Torch and ONNX.
func operation(name, names string) Peer { return peer(Peer{Name: name}, names) }
func method(name, names string) Peer    { return peer(Peer{Method: name}, names) }

func peer(p Peer, names string) Peer {
	list := strings.Split(names, "|")
	p.NumPy, p.Torch, p.ONNX = strings.Fields(list[0]), strings.Fields(list[1]), strings.Fields(list[2])
	return p
}

var (
	peersOnce sync.Once
	peersMade []Peer
)

// peers returns the table. A function makes it, so that the linker leaves it out of programs that do not
// call it.
func peers() []Peer {
	peersOnce.Do(func() { peersMade = makePeers() })
	return peersMade
}

func makePeers() []Peer {
	return []Peer{
		operation("relu", "| relu nn.ReLU | Relu"), operation("leaky_relu", "| nn.functional.leaky_relu | LeakyRelu"), operation("elu", "| nn.functional.elu | Elu"),
		operation("selu", "| selu | Selu"), operation("sigmoid", "| sigmoid | Sigmoid"), operation("tanh", "tanh | tanh | Tanh"), operation("silu", "| nn.functional.silu | Swish"),
		operation("hard_swish", "| nn.functional.hardswish | HardSwish"), operation("mish", "| nn.functional.mish | Mish"), operation("gelu", "| nn.functional.gelu | Gelu"),
		operation("celu", "| celu | Celu"), operation("hard_sigmoid", "| nn.functional.hardsigmoid | HardSigmoid"), operation("shrink", "| nn.functional.softshrink nn.functional.hardshrink | Shrink"),
		operation("threshold", "| threshold | ThresholdedRelu"), operation("prelu", "| prelu | PRelu"), operation("softsign", "| nn.functional.softsign | Softsign"), operation("softplus", "| nn.functional.softplus | Softplus"),
		operation("abs", "abs absolute fabs | abs | Abs"), operation("neg", "negative | neg negative | Neg"), operation("sign", "sign | sign | Sign"), operation("floor", "floor | floor | Floor"), operation("ceil", "ceil | ceil | Ceil"),
		operation("round", "round rint | round | Round"), operation("trunc", "trunc fix | trunc fix |"), operation("exp", "exp | exp | Exp"), operation("exp2", "exp2 | exp2 |"), operation("log", "log | log | Log"), operation("log2", "log2 | log2 |"),
		operation("log1p", "log1p | log1p |"), operation("log10", "log10 | log10 |"), operation("expm1", "expm1 | expm1 |"), operation("sqrt", "sqrt | sqrt | Sqrt"), operation("rsqrt", "| rsqrt |"), operation("recip", "reciprocal | reciprocal | Reciprocal"),
		operation("square", "square | square |"), operation("sin", "sin | sin | Sin"), operation("cos", "cos | cos | Cos"), operation("tan", "tan | tan | Tan"), operation("asin", "arcsin asin | asin arcsin | Asin"),
		operation("acos", "arccos acos | acos arccos | Acos"), operation("atan", "arctan atan | atan arctan | Atan"), operation("atan2", "arctan2 atan2 | atan2 arctan2 |"), operation("sinh", "sinh | sinh | Sinh"), operation("cosh", "cosh | cosh | Cosh"),
		operation("asinh", "arcsinh asinh | asinh arcsinh | Asinh"), operation("acosh", "arccosh acosh | acosh arccosh | Acosh"), operation("atanh", "arctanh atanh | atanh arctanh | Atanh"), operation("erf", "| erf | Erf"), operation("erfinv", "| erfinv |"),
		operation("cbrt", "cbrt | |"), operation("hypot", "hypot | hypot |"), operation("logaddexp", "logaddexp | logaddexp |"),
		operation("clip", "clip | clamp clip | Clip"), operation("add", "add | add | Add"), operation("sub", "subtract | sub subtract | Sub"), operation("mul", "multiply | mul multiply | Mul"), operation("div", "divide true_divide | div divide true_divide | Div"),
		operation("floor_divide", "floor_divide | floor_divide |"), operation("fmod", "fmod | fmod | Mod"), operation("remainder", "remainder mod | remainder |"), operation("minimum", "minimum | minimum | Min"), operation("maximum", "maximum | maximum | Max"),
		operation("pow", "power pow float_power | pow float_power | Pow"), operation("lerp", "| lerp |"), operation("equal", "equal | eq | Equal"), operation("not_equal", "not_equal | ne not_equal |"), operation("less", "less | lt less | Less"),
		operation("less_equal", "less_equal | le less_equal | LessOrEqual"), operation("greater", "greater | gt greater | Greater"), operation("greater_equal", "greater_equal | ge greater_equal | GreaterOrEqual"),
		operation("where", "where | where Tensor.masked_fill | Where"), operation("cast", "ndarray.astype astype | Tensor.to Tensor.type | Cast"), operation("is_nan", "isnan | isnan | IsNaN"), operation("is_inf", "isinf | isinf | IsInf"), operation("is_finite", "isfinite | isfinite |"),
		operation("sign_bit", "signbit | signbit |"), operation("copy_sign", "copysign | copysign |"), operation("and", "bitwise_and logical_and | bitwise_and logical_and | And BitwiseAnd"), operation("or", "bitwise_or logical_or | bitwise_or logical_or | Or BitwiseOr"),
		operation("xor", "bitwise_xor logical_xor | bitwise_xor logical_xor | Xor BitwiseXor"), operation("not", "bitwise_not invert logical_not | bitwise_not logical_not | Not BitwiseNot"),
		operation("shift_left", "left_shift bitwise_left_shift | bitwise_left_shift | BitShift"), operation("shift_right", "right_shift bitwise_right_shift | bitwise_right_shift | BitShift"),
		operation("sum", "sum | sum | ReduceSum"), operation("mean", "mean average | mean | ReduceMean"), operation("var", "var | var |"), operation("min", "min amin | min amin | ReduceMin"), operation("max", "max amax | max amax | ReduceMax"),
		operation("argmin", "argmin | argmin | ArgMin"), operation("argmax", "argmax | argmax | ArgMax"), operation("dot", "dot inner | dot inner |"), operation("norm_l1", "| | ReduceL1"), operation("norm_l2", "linalg.norm | linalg.vector_norm norm | ReduceL2"), operation("norm_linf", "| |"),
		operation("cumsum", "cumsum cumulative_sum | cumsum | CumSum"), operation("softmax", "| softmax nn.functional.softmax | Softmax"), operation("log_softmax", "| log_softmax | LogSoftmax"), operation("layer_norm", "| layer_norm | LayerNormalization"),
		operation("rms_norm", "| rms_norm | RMSNormalization"), operation("matmul", "matmul | matmul mm bmm nn.functional.linear | MatMul Gemm"), operation("matvec", "matvec | mv |"), operation("conv2d", "| conv2d nn.Conv2d | Conv"),
		operation("matmul_experts", "| nn.functional.grouped_mm |"), operation("attention", "| nn.functional.scaled_dot_product_attention | Attention"), operation("rope", "| | RotaryEmbedding"), operation("gather", "take | index_select embedding nn.Embedding | Gather"), operation("topk", "| topk | TopK"), operation("sort", "sort | sort |"),
		operation("reshape", "reshape ravel | reshape Tensor.view flatten | Reshape Flatten"), operation("transpose", "matrix_transpose | Tensor.mT t |"), operation("permute", "transpose permute_dims | permute | Transpose"), operation("slice", "s_ | narrow | Slice"),
		operation("flip", "flip fliplr flipud | flip |"), operation("expand", "broadcast_to | Tensor.expand broadcast_to | Expand"), operation("pad", "pad | nn.functional.pad | Pad"), operation("concat", "concatenate concat | cat concat concatenate | Concat"),
		operation("prod", "prod | prod | ReduceProd"), operation("logsumexp", "| logsumexp | ReduceLogSumExp"), operation("any", "any | any |"), operation("all", "all | all |"), operation("count_nonzero", "count_nonzero | count_nonzero |"),
		operation("cumprod", "cumprod cumulative_prod | cumprod | CumProd"), operation("cummax", "maximum.accumulate | cummax |"), operation("cummin", "minimum.accumulate | cummin |"), operation("logcumsumexp", "logaddexp.accumulate | logcumsumexp |"),
		operation("cholesky", "linalg.cholesky | linalg.cholesky |"), operation("lu", "| linalg.lu linalg.lu_factor |"), operation("solve", "linalg.solve | linalg.solve |"), operation("solve_triangular", "| linalg.solve_triangular |"),
		operation("qr", "linalg.qr | linalg.qr |"), operation("eigh", "linalg.eigh | linalg.eigh |"), operation("svd", "linalg.svd | linalg.svd |"), operation("scatter", "add.at | index_add index_copy index_reduce | Scatter"),
		operation("bitcast_f32", "ndarray.view | Tensor.view | BitCast"), operation("bitcast_i32", "ndarray.view | Tensor.view | BitCast"), operation("bitcast_u32", "ndarray.view | Tensor.view | BitCast"),
		operation("diagonal", "diagonal | diagonal |"), operation("sliding_window", "lib.stride_tricks.sliding_window_view | Tensor.unfold |"), operation("slice_at", "| |"), operation("update", "| | TensorScatter"), operation("iota", "| |"),

		method("Arange", "arange | arange | Range"), method("Linspace", "linspace | linspace |"), method("Const", "zeros ones full | zeros ones full | ConstantOfShape"), method("Eye", "eye identity | eye | EyeLike"), method("Tri", "tri | |"),
		method("Tril", "tril | tril | Trilu"), method("Triu", "triu | triu | Trilu"), method("DiagEmbed", "diag | diag_embed diag |"), method("OneHot", "| nn.functional.one_hot | OneHot"), method("Meshgrid", "meshgrid | meshgrid |"),
		method("SwapAxes", "swapaxes | swapaxes swapdims |"), method("MoveAxis", "moveaxis rollaxis | moveaxis movedim |"), method("Squeeze", "squeeze | squeeze | Squeeze"), method("Unsqueeze", "expand_dims | unsqueeze | Unsqueeze"),
		method("Stack", "stack | stack |"), method("Split", "split | split | Split"), method("Chunk", "array_split | chunk |"), method("Repeat", "repeat | repeat_interleave |"), method("Tile", "tile | tile Tensor.repeat | Tile"),
		method("Roll", "roll | roll |"), method("Rot90", "rot90 | rot90 |"), method("Diff", "diff | diff |"), method("PadMode", "| | "), method("Trace", "trace | trace |"), method("Std", "std | std |"), method("ArgSort", "argsort | argsort |"),
		method("PixelShuffle", "| pixel_shuffle nn.PixelShuffle | DepthToSpace"), method("PixelUnshuffle", "| pixel_unshuffle |"), method("DepthToSpace", "| | DepthToSpace"), method("SpaceToDepth", "| | SpaceToDepth"),
		method("Unfold", "| nn.functional.unfold nn.Unfold |"), method("Fold", "| nn.functional.fold nn.Fold | Col2Im"), method("Einsum", "einsum einsum_path | einsum | Einsum"), method("Tensordot", "tensordot | tensordot |"),
		method("Outer", "outer | outer ger |"), method("VecDot", "vecdot linalg.vecdot | linalg.vecdot vecdot |"), method("Kron", "kron | kron |"), method("Cross", "cross linalg.cross | cross linalg.cross |"),
		method("NonZero", "nonzero argwhere | nonzero | NonZero"), method("Compress", "compress | masked_select | Compress"), method("Unique", "unique | unique | Unique"), method("SearchSorted", "searchsorted digitize | searchsorted bucketize |"),
		method("IsIn", "isin | isin |"), method("Bincount", "bincount | bincount |"), method("Histogram", "histogram | histogram histc |"), method("Quantile", "quantile percentile median | quantile median |"),
		method("Inv", "linalg.inv | linalg.inv inverse |"), method("Det", "linalg.det | linalg.det det | Det"), method("SlogDet", "linalg.slogdet | linalg.slogdet slogdet |"), method("Lstsq", "linalg.lstsq | linalg.lstsq |"), method("Pinv", "linalg.pinv | linalg.pinv |"),
		method("MatrixRank", "linalg.matrix_rank | linalg.matrix_rank |"), method("MatrixPower", "linalg.matrix_power | linalg.matrix_power |"),
		method("TakeAlong", "take_along_axis | gather take_along_dim | GatherElements"), method("GatherND", "| | GatherND"), method("ScatterAlong", "put_along_axis | scatter scatter_reduce | ScatterElements"), method("ScatterND", "| index_put | ScatterND"),
		method("MaxPool", "| max_pool1d max_pool2d max_pool3d nn.MaxPool2d | MaxPool"), method("AvgPool", "| avg_pool1d nn.functional.avg_pool2d nn.AvgPool2d | AveragePool"), method("LpPool", "| nn.functional.lp_pool2d | LpPool"),
		method("AdaptiveAvgPool", "| adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d | GlobalAveragePool"), method("AdaptiveMaxPool", "| nn.functional.adaptive_max_pool2d | GlobalMaxPool"),
		method("Conv", "| conv1d conv3d nn.Conv1d nn.Conv3d | Conv"), method("ConvTranspose", "| conv_transpose1d conv_transpose2d conv_transpose3d | ConvTranspose"), method("Resize", "| nn.functional.interpolate nn.Upsample | Resize Upsample"),
		method("GridSample", "| nn.functional.grid_sample | GridSample"), method("BatchNorm", "| batch_norm nn.BatchNorm2d | BatchNormalization"), method("GroupNorm", "| group_norm nn.GroupNorm | GroupNormalization"),
		method("InstanceNorm", "| instance_norm nn.InstanceNorm2d | InstanceNormalization"), method("LocalResponseNorm", "| nn.functional.local_response_norm | LRN"), method("Normalize", "| nn.functional.normalize | LpNormalization"),
		method("Hardmax", "| | Hardmax"), method("GLU", "| nn.functional.glu |"), method("CrossEntropy", "| nn.functional.cross_entropy nn.CrossEntropyLoss | SoftmaxCrossEntropyLoss"),
		method("NLLLoss", "| nn.functional.nll_loss | NegativeLogLikelihoodLoss"), method("KLDiv", "| kl_div |"), method("MSE", "| nn.functional.mse_loss |"), method("Huber", "| nn.functional.huber_loss |"),
		method("BCE", "| nn.functional.binary_cross_entropy |"), method("BCEWithLogits", "| binary_cross_entropy_with_logits |"), method("RNN", "| nn.RNN | RNN"), method("GRU", "| nn.GRU | GRU"), method("LSTM", "| nn.LSTM | LSTM"),
		method("FFT", "fft.fft fft.fft2 fft.fftn | fft.fft fft.fft2 fft.fftn | DFT"), method("IFFT", "fft.ifft fft.ifft2 fft.ifftn | fft.ifft fft.ifft2 fft.ifftn | DFT"),
		method("RFFT", "fft.rfft fft.rfft2 fft.rfftn | fft.rfft fft.rfft2 fft.rfftn | DFT"), method("IRFFT", "fft.irfft fft.irfft2 fft.irfftn | fft.irfft fft.irfft2 fft.irfftn | DFT"), method("STFT", "| stft | STFT"),
		method("Quantize", "| quantize_per_tensor quantize_per_channel | QuantizeLinear"), method("Dequantize", "| Tensor.dequantize | DequantizeLinear"), method("DynamicQuantize", "| | DynamicQuantizeLinear"),
		method("Uniform", "random.rand random.random random.uniform | rand | RandomUniform"), method("Normal", "random.randn random.normal | randn | RandomNormal"), method("Bernoulli", "| bernoulli | Bernoulli"),
	}
}
