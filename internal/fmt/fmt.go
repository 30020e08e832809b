//go:build !js

package fmt

import (
	"fmt"
	"io"
)

// Errorf is Errorf of the standard library.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Sprintf is Sprintf of the standard library.
func Sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Sprint is Sprint of the standard library.
func Sprint(args ...any) string { return fmt.Sprint(args...) }

// Fprintf is Fprintf of the standard library.
func Fprintf(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format, args...) }

// Fprint is Fprint of the standard library.
func Fprint(w io.Writer, args ...any) { fmt.Fprint(w, args...) }
