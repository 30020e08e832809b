module github.com/rayo-go/rayo/gonum

go 1.25.0

require (
	github.com/rayo-go/rayo v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	github.com/tetratelabs/wazero v1.12.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/rayo-go/rayo => ..
