package op

import "strings"

// GoName returns the Go identifier of the operation called name: that of its variable in
// this package and of its methods.
func GoName(name string) string {
	// Words with more capitals than the first letter.
	spelt := map[string]string{
		"argmax":         "ArgMax",
		"argmin":         "ArgMin",
		"conv2d":         "Conv2D",
		"is_nan":         "IsNaN",
		"logaddexp":      "LogAddExp",
		"logcumsumexp":   "LogCumsumExp",
		"logsumexp":      "LogSumExp",
		"lu":             "LU",
		"matmul":         "MatMul",
		"matmul_experts": "MatMulExperts",
		"matmul_q":       "MatMulQ",
		"matvec":         "MatVec",
		"prelu":          "PRelu",
		"qr":             "QR",
		"rms_norm":       "RMSNorm",
		"svd":            "SVD",
		"topk":           "TopK",
	}
	if s, ok := spelt[name]; ok {
		return s
	}
	var b strings.Builder
	for w := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' }) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// GoName returns the Go identifier of the operation: see the function [GoName].
func (o *Operation) GoName() string { return GoName(o.def().name) }
