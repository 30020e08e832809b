package wgpunative

import (
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// mistake makes an error of what the library says of a text. Its message draws
// the place of the text below a line that ends in line and column.
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
		e.Message = strings.TrimSpace(strings.Join(lines[:i], "\n"))
		break
	}
	return e
}
