module github.com/rayo-go/rayo/simd/asm

go 1.25.0

replace github.com/rayo-go/rayo => ../..

require (
	github.com/mmcloughlin/avo v0.6.0
	github.com/rayo-go/rayo v0.0.0
)

require (
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/mod v0.33.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/tools v0.42.0 // indirect
)
