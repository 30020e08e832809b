module github.com/rayo-go/rayo/simd/asm

go 1.24.0

replace github.com/rayo-go/rayo => ../..

require (
	github.com/mmcloughlin/avo v0.6.0 // indirect
	golang.org/x/mod v0.33.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/tools v0.42.0 // indirect
)
