//go:build amd64 && !linux && !noasm && !wazero

package simd

func amxTiles() []int8Tiles { return nil }

func amxTurned() *int8Turned { return nil }
