//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gogpu/naga"
	"github.com/gogpu/naga/ir"
	"github.com/gogpu/naga/spirv"
	naga_wgsl "github.com/gogpu/naga/wgsl"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// compile makes SPIR-V of a shader. The compiler is a translation that is
// young: whatever it does, the process lives.
func compile(s *webgpu.Shader) (words []uint32, err error) {
	defer func() {
		if p := recover(); p != nil {
			words, err = nil, mistake(s, fmt.Errorf("the compiler fails: %v", p))
		}
	}()
	if !s.Trusted {
		if err := nesting(s); err != nil {
			return nil, err
		}
	}
	ast, err := naga.Parse(s.Text)
	if err != nil {
		return nil, mistake(s, err)
	}
	module, err := naga_wgsl.LowerWithSource(ast, s.Text)
	if err != nil {
		return nil, mistake(s, err)
	}
	wrong, err := ir.ValidateWithCapabilities(module, 0)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	if err != nil {
		return nil, mistake(s, err)
	}
	if err := examine(s, module); err != nil {
		return nil, mistake(s, err)
	}
	code, err := naga.GenerateSPIRV(module, spirv.Options{Version: spirv.Version1_3, ForceLoopBounding: !s.Trusted})
	if err != nil {
		return nil, mistake(s, err)
	}
	words = make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return words, nil
}

// mistake makes an error of what the compiler says of a text: line, column and
// message, after other words.
func mistake(s *webgpu.Shader, err error) *webgpu.CompileError {
	e := &webgpu.CompileError{Label: s.Label, Message: err.Error()}
	if parse := (naga_wgsl.ParseError{}); errors.As(err, &parse) {
		e.Line, e.Column, e.Message = parse.Line, parse.Column, parse.Message
	} else {
		words := strings.Split(e.Message, " ")
		for i, w := range words {
			p := strings.Split(w, ":")
			if len(p) != 3 || p[2] != "" {
				continue
			}
			line, err := strconv.Atoi(p[0])
			column, err2 := strconv.Atoi(p[1])
			if err == nil && err2 == nil {
				e.Line, e.Column, e.Message = line, column, strings.Join(words[i+1:], " ")
				break
			}
		}
	}
	if lines := strings.Split(s.Text, "\n"); e.Line > 0 && e.Line <= len(lines) {
		e.Text = strings.TrimRight(lines[e.Line-1], "\r")
	}
	return e
}

// Bounds of texts of users. The compiler calls itself for what is nested, and a
// goroutine whose stack is full ends the process.
const (
	maxText    = 1 << 20
	maxNesting = 256
)

// nesting refuses a text that is nested too deep, or may be: brackets, and
// operators in front of operands, of which there may be many in a row.
func nesting(s *webgpu.Shader) error {
	if len(s.Text) > maxText {
		return &webgpu.CompileError{Label: s.Label, Message: fmt.Sprintf("the text has %d bytes, of %d", len(s.Text), maxText)}
	}
	return nil
}
