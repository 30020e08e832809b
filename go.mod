module github.com/rayo-go/rayo

go 1.24.0

require (
	github.com/alecthomas/kong v1.14.0
	github.com/klauspost/cpuid/v2 v2.4.2
	github.com/x448/float16 v0.8.4
)

require golang.org/x/sys v0.41.0 // indirect
