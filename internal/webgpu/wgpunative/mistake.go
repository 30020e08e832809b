package wgpunative

import (
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// mistake converts the library's message about a text to an error. The message draws the position
// in the text below a line that ends in line and column.
func mistake(s *webgpu.Shader, message string) *webgpu.CompileError {
	e := &webgpu.CompileError{Label: s.Label, Message: strings.TrimSpace(message)}
	lines := strings.Split(message, "\n")
	for i, l := range lines {
		_, place, found := strings.Cut(l, "┌─ ")
		if !found {
			continue
		}
		parts := strings.Split(strings.TrimSpace(place), ":")
		if len(parts) < 3 {
			continue
		}
		line, err := strconv.Atoi(parts[len(parts)-2])
		column, err2 := strconv.Atoi(parts[len(parts)-1])
		if err != nil || err2 != nil || line < 1 {
			continue
		}
		e.Line, e.Column = line, column
		if text := strings.Split(s.Text, "\n"); line <= len(text) {
			e.Text = strings.TrimRight(text[line-1], "\r")
		}
		e.Message = said(lines[:i], lines[i+1:])
		break
	}
	return e
}

// said returns the message itself: before the position comes the phase that found the mistake, then
// ": " and the mistake; after it comes the drawing with words below it, and remarks after a "=".
func said(front, behind []string) string {
	what := ""
	for _, l := range front {
		if l = strings.TrimSpace(l); l != "" {
			what = l
		}
	}
	if _, after, found := strings.Cut(what, " error: "); found {
		what = after
	}
	remarks := 0
	for _, l := range behind {
		l = strings.TrimSpace(strings.TrimLeft(l, " │"))
		under := strings.TrimLeft(l, "^ ")
		remark, found := strings.CutPrefix(l, "= ")
		switch {
		case found && remarks < 3: // they may list all types that there are
			remarks++
			what += "; " + strings.TrimPrefix(remark, "note: ")
		case !found && under != l && under != "" && !strings.HasPrefix(under, "naga::"):
			what += ": " + under
		}
	}
	return what
}
