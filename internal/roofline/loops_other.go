//go:build noasm || !(amd64 || arm64)

package roofline

func machine() loops { return plain() }
