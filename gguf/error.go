package gguf

import (
	"errors"
	"fmt"
)

// The errors. The package returns them wrapped, with details.
var (
	ErrFormat    = errors.New("malformed file")
	ErrTruncated = errors.New("the file ends too early")
	ErrVersion   = errors.New("unsupported version")
	ErrByteOrder = errors.New("the file is big-endian")
	ErrLimit     = errors.New("too large")
	ErrClosed    = errors.New("the file is closed")
	ErrNotMapped = errors.New("the file is not mapped")
	ErrSplit     = errors.New("the parts of a split file do not match")
	ErrValue     = errors.New("not a value of that type")
)

// FormatError says which field of a file is wrong and where.
type FormatError struct {
	File   string // the name that was opened, if there was one
	Field  string // for example: tensor 3 ("blk.0.attn_q.weight"): offset
	Offset int64  // of the field in the file
	Err    error  // the cause; it wraps one of the errors of the package
}

// Error returns the file, the field, its byte offset and the mistake.
func (e *FormatError) Error() string {
	file := ""
	if e.File != "" {
		file = e.File + ": "
	}
	return fmt.Sprintf("gguf: %s%s (byte %d): %v", file, e.Field, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
