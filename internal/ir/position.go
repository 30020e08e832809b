package ir

import (
	"reflect"
	"runtime"
	"strings"
)

// builderPackage begins the names of the functions of package kernel: what
// calls them is the author's.
var builderPackage = strings.TrimSuffix(reflect.TypeFor[Program]().PkgPath(), "internal/ir") + "kernel."

// AuthorFrame reports whether a frame of the stack is the author's: neither of
// the builder of programs nor of the Go runtime.
func AuthorFrame(f runtime.Frame) bool {
	return f.File != "" && !strings.HasPrefix(f.Function, builderPackage) && !strings.HasPrefix(f.Function, "runtime.")
}

// Position returns file and line of the author's call that made instruction v,
// or "" and 0 if pos, the Pos of its program, does not tell.
func Position(pos []uintptr, v Value) (file string, line int) {
	if v == 0 || int(v) >= len(pos) || pos[v] == 0 {
		return "", 0
	}
	frames := runtime.CallersFrames(pos[v : v+1])
	for {
		// Methods of the builder may be inlined into the author's function: then
		// one counter stands for frames of both.
		f, more := frames.Next()
		if AuthorFrame(f) {
			return f.File, f.Line
		}
		if !more {
			return "", 0
		}
	}
}
