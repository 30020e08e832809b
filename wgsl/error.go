package wgsl

import "github.com/rayo-go/rayo/internal/fmt"

// CompileError is an error in a text. The compiler of a device or [Source] has found it. It may be
// wrapped: use errors.As.
type CompileError struct {
	Label        string // the name of the kernel
	Line, Column int    // counted from 1, in characters; 0 if unknown
	Message      string
	Text         string // the line of the error, above the caret
}

// Error returns the message with line and column, and the line with a caret under the column.
func (e *CompileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Label, e.Message)
	}
	s := fmt.Sprintf("%s:%d:%d: %s", e.Label, e.Line, e.Column, e.Message)
	if e.Text != "" && e.Column > 0 {
		// Tabs stay tabs, so that the caret is below its character.
		var lead []rune
		for _, r := range e.Text {
			if len(lead) == e.Column-1 {
				break
			}
			if r != '\t' {
				r = ' '
			}
			lead = append(lead, r)
		}
		s += fmt.Sprintf("\n\t%s\n\t%s^", e.Text, string(lead))
	}
	return s
}
