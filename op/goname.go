package op

import "strings"

// GoName returns the name in Go of the operation called name: of its variable in
// this package and of its methods.
func GoName(name string) string {
	// Words that Go writes otherwise than with one capital.
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

// GoName is [GoName] of its name.
func (o *Operation) GoName() string { return GoName(o.def().name) }
