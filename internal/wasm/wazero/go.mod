module github.com/rayo-go/rayo/internal/wasm/wazero

go 1.25.0

require (
	github.com/rayo-go/rayo v0.0.0
	github.com/tetratelabs/wazero v1.12.0
)

require (
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/rayo-go/rayo => ../../..
