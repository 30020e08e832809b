package ir

import (
	"reflect"
	"runtime"
	"strings"
)

// builderPackage returns the prefix of the names of the functions of package kernel. Their callers are
// the author's functions.
func builderPackage() string {
	return strings.TrimSuffix(reflect.TypeFor[Program]().PkgPath(), "internal/ir") + "kernel."
}

// AuthorFrame reports whether a stack frame belongs to the author, and not to the builder of
// programs or the Go runtime.
func AuthorFrame(f runtime.Frame) bool {
	return f.File != "" && !strings.HasPrefix(f.Function, builderPackage()) && !strings.HasPrefix(f.Function, "runtime.")
}

// Position returns the file and line of the author's call that made instruction v. It returns ""
// and 0 if pos, the Pos of the program, does not have them.
func Position(pos []uintptr, v Value) (file string, line int) {
	if v == 0 || int(v) >= len(pos) || pos[v] == 0 {
		return "", 0
	}
	frames := runtime.CallersFrames(pos[v : v+1])
	for {
		// Methods of the builder may be inlined into the author's function. One program counter
		// then represents frames of both.
		f, more := frames.Next()
		if AuthorFrame(f) {
			return f.File, f.Line
		}
		if !more {
			return "", 0
		}
	}
}
