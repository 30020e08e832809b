package ptx

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// Error is an error in a module.
type Error struct {
	Kernel string   // name of the kernel, "" for an error outside of kernels
	Pos    Position // position in the author's code, zero if unknown
	Msg    string
	Err    error // a sentinel, the value with which the build function panicked, or nil
}

// Position is a position in Go source.
type Position struct {
	File string // path as the compiler saw it, "" if unknown
	Line int
}

// String returns the last folder, the file and the line: "gemm/tiled.go:12".
func (p Position) String() string {
	if p.File == "" {
		return ""
	}
	dir, file := filepath.Split(p.File)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), file, p.Line)
}

// Error returns the kernel, the position and the message.
func (e *Error) Error() string {
	s := "ptx: "
	if e.Kernel != "" {
		s += "kernel " + e.Kernel + ": "
	}
	if p := e.Pos.String(); p != "" {
		s += p + ": "
	}
	return s + e.Msg
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrTarget is wrapped by errors about instructions that the target does not have.
	ErrTarget = errors.New("ptx: the target lacks it")
	// ErrLimit is wrapped by errors about sizes that exceed a limit.
	ErrLimit = errors.New("ptx: over a limit")
)

// ownPackage is the prefix of the names of this package's functions. Their callers are the author's
// functions.
var ownPackage = reflect.TypeFor[Kernel]().PkgPath() + "."

func authorFrame(f runtime.Frame) bool {
	return f.File != "" && !strings.HasPrefix(f.Function, ownPackage) && !strings.HasPrefix(f.Function, "runtime.")
}

// authorCounter returns the program counter of the innermost frame of the author, in the form that
// runtime.CallersFrames expects, or 0.
func authorCounter() uintptr {
	var pcs [24]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return 0
		}
		frames := runtime.CallersFrames(pcs[:n])
		for {
			f, more := frames.Next()
			if authorFrame(f) {
				return f.PC + 1 // CallersFrames looks up the call before a counter
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return 0
		}
	}
}

func position(pc uintptr) Position {
	if pc == 0 {
		return Position{}
	}
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		// Methods of the builder may be inlined into the author's function: then one program
		// counter represents frames of both.
		f, more := frames.Next()
		if authorFrame(f) {
			return Position{f.File, f.Line}
		}
		if !more {
			return Position{}
		}
	}
}
