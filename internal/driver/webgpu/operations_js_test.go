package webgpu

func init() { UseOperations() } // pages call it when they use an operation
