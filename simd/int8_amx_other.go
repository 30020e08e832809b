//go:build amd64 && !linux && !noasm && !wazero

package simd

func amxTiles() []int8Tiles { return nil }

func amxSwapped() *int8Swapped { return nil }
