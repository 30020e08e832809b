//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gogpu/naga"
	"github.com/gogpu/naga/ir"
	"github.com/gogpu/naga/spirv"
	naga_wgsl "github.com/gogpu/naga/wgsl"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// compile translates a shader to SPIR-V. The compiler is new, so a panic of the compiler becomes an
// error.
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
		if err := checked(s); err != nil {
			return nil, err
		}
	}
	text, err := tame(s)
	if err != nil {
		return nil, err
	}
	text = hexadecimal.ReplaceAllStringFunc(aliases.Replace(text), decimal)
	ast, err := naga.Parse(text)
	if err != nil {
		return nil, mistake(s, err)
	}
	module, err := naga_wgsl.LowerWithSource(ast, text)
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
	if words, err = rewrite(s, words); err != nil {
		return nil, mistake(s, err)
	}
	return words, nil
}

// checked refuses mistakes that the compiler does not survive, or takes for something.
func checked(s *webgpu.Shader) error {
	err := wgsl.Check(s.Text)
	if e := (*wgsl.CompileError)(nil); errors.As(err, &e) {
		mistake := &webgpu.CompileError{Label: s.Label, Line: e.Line, Column: e.Column, Message: e.Message, Text: e.Text}
		if errors.Is(err, kernel.ErrLimit) {
			return costly{mistake}
		}
		return mistake
	}
	return nil
}

// aliases has the types that the compiler does not take in bitcasts by their short names.
var aliases = func() *strings.Replacer {
	var pairs []string
	for n := range 3 {
		for short, long := range map[string]string{"f": "f32", "i": "i32", "u": "u32"} {
			pairs = append(pairs, fmt.Sprintf("bitcast<vec%d%s>", n+2, short), fmt.Sprintf("bitcast<vec%d<%s>>", n+2, long))
		}
	}
	return strings.NewReplacer(pairs...)
}()

// hexadecimal matches numbers that the compiler does not read, such as 0x1.8p-3f.
var hexadecimal = regexp.MustCompile(`\b0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fh]?`)

// decimal converts a hexadecimal number to decimal.
func decimal(hex string) string {
	digits := strings.TrimRight(hex, "fh")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return hex
	}
	text := strconv.FormatFloat(v, 'e', -1, 64)
	if suffix := hex[len(digits):]; suffix != "" {
		text = strconv.FormatFloat(float64(float32(v)), 'e', -1, 32) + suffix
	}
	return text
}

// mistake converts the compiler's message about a text to an error: line, column and message, after
// other words.
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

// Limits of users' texts. The compiler recurses into nested constructs, and a stack overflow ends
// the process; its time for an expression grows with the square of the length.
const (
	maxText      = 256 << 10 // bytes
	maxNesting   = 128       // of brackets
	maxOperators = 2000      // of a statement
)

// nesting refuses a text that goes beyond these bounds.
func nesting(s *webgpu.Shader) error {
	if len(s.Text) > maxText {
		return &webgpu.CompileError{Label: s.Label, Message: fmt.Sprintf("the text has %d bytes, of %d", len(s.Text), maxText)}
	}
	return s.Nested(maxNesting, maxOperators, true)
}
