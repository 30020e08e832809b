package webgpu

// Pages call them when they use an operation, or make a graph.
func init() {
	UseOperations()
	UseGraphs()
}
