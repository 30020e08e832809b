//go:build noasm || !(amd64 || arm64)

package workers

// pause spends some nanoseconds away from the shared cache lines.
//
//go:noinline
func pause() {
	for range 16 {
	}
}
