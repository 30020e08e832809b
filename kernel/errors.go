package kernel

import (
	"errors"
	"path"
	"runtime"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Error is an error in a kernel. [Kernel.Err] and every use of the kernel return it.
type Error struct {
	Kernel string   // name of the kernel
	Pos    Position // position in the author's code, zero if unknown
	Msg    string
	Err    error // a sentinel, the value with which the build function panicked, or nil
}

// Position is a position in Go source.
type Position struct {
	File string // path as the compiler saw it, "" if unknown
	Line int
}

// String returns the last folder, the file and the line: "blur/blur.go:12".
func (p Position) String() string {
	if p.File == "" {
		return ""
	}
	dir, file := path.Split(p.File)
	return fmt.Sprintf("%s/%s:%d", path.Base(dir), file, p.Line)
}

// Error returns the kernel, the position and the message.
func (e *Error) Error() string {
	s := "kernel: "
	if e.Kernel != "" {
		s = "kernel " + e.Kernel + ": "
	}
	if p := e.Pos.String(); p != "" {
		s += p + ": "
	}
	return s + e.Msg
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// ErrLimit is wrapped by errors about sizes that no device supports: of a workgroup, a workgroup
// array, an unrolled loop, or a grid.
var ErrLimit = errors.New("kernel: over a limit")

// ErrGrid is wrapped by errors about grids that cannot be launched.
var ErrGrid = errors.New("kernel: invalid grid")

// ErrParams is wrapped by errors about parameters whose type is not that of the kernel's
// parameters.
var ErrParams = errors.New("kernel: parameters of another type")

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
			if ir.AuthorFrame(f) {
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

func authorPosition() Position {
	if pc := authorCounter(); pc != 0 {
		f, l := ir.Position([]uintptr{0, pc}, 1)
		return Position{f, l}
	}
	return Position{}
}
