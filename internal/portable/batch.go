//go:build !js || !nowebgpu

package portable

// UseBatch registers the kernels of the operations that only package batch records. The linker
// leaves them out of pages that do not import that package; other programs always have them.
func UseBatch() {
	registerConcat()
	registerExperts()
	registerFactors()
	registerIota()
	registerJacobi()
	registerMatMulQ()
	registerPlace()
	registerScatter()
}
