//go:build js && !nowebgpu

package jshost

import (
	"context"
	"strings"
	"syscall/js"
	"unicode/utf16"

	"github.com/rayo-go/rayo/internal/ascii"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// pipeline is a compiled kernel.
type pipeline struct{ v, layout js.Value }

// layout describes the bindings of pipelines, shared by pipelines with equal bindings.
type layout struct{ group, pipeline js.Value }

// bufferTypes are the types of bindings.
var bufferTypes = [...]string{webgpu.ReadOnly: "read-only-storage", webgpu.ReadWrite: "storage", webgpu.Block: "uniform"}

// stageCompute is the flag of GPUShaderStage.
const stageCompute = 0x4

// layout returns the layout of bindings. d.mu is held.
func (d *device) layout(kinds []webgpu.BindingKind) layout {
	var key strings.Builder
	for _, k := range kinds {
		key.WriteByte(byte(k))
	}
	l, found := d.layouts[key.String()]
	if !found {
		entries := make([]any, len(kinds))
		for i, k := range kinds {
			entries[i] = map[string]any{"binding": i, "visibility": stageCompute, "buffer": map[string]any{"type": bufferTypes[k]}}
		}
		l.group = d.v.Call("createBindGroupLayout", map[string]any{"entries": entries})
		l.pipeline = d.v.Call("createPipelineLayout", map[string]any{"bindGroupLayouts": []any{l.group}})
		d.layouts[key.String()] = l
	}
	return l
}

// NewPipeline implements [webgpu.HostDevice].
func (d *device) NewPipeline(s *webgpu.Shader) (webgpu.HostPipeline, error) {
	var module, promise js.Value
	var l layout
	err := d.create(func() {
		module = d.v.Call("createShaderModule", map[string]any{"code": s.Text, "label": s.Label})
		l = d.layout(s.Bindings)
		promise = d.v.Call("createComputePipelineAsync", map[string]any{
			"layout":  l.pipeline,
			"compute": map[string]any{"module": module, "entryPoint": s.Entry},
		})
	})
	var v js.Value
	if promise.Type() == js.TypeObject {
		var failed error
		if v, failed = await(context.Background(), promise); err == nil {
			err = failed
		}
	}
	if err == nil {
		return &pipeline{v, l.group}, nil
	}
	select {
	case <-d.lost:
		return nil, d.failed(err)
	default:
	}
	return nil, mistake(s, module, err)
}

// mistake returns the error of a text: the compiler's message about a position in it, or else err.
func mistake(s *webgpu.Shader, module js.Value, err error) error {
	e := &webgpu.CompileError{Label: s.Label, Message: ascii.Trim(err.Error(), ascii.Space)}
	if module.Type() != js.TypeObject || module.Get("getCompilationInfo").Type() != js.TypeFunction {
		return e
	}
	info, failed := await(context.Background(), module.Call("getCompilationInfo"))
	if failed != nil {
		return e
	}
	for i := range info.Get("messages").Length() {
		m := info.Get("messages").Index(i)
		if text(m.Get("type")) != "error" {
			continue
		}
		e.Message, _, _ = strings.Cut(ascii.Trim(text(m.Get("message")), ascii.Space), "\n") // the list of allowed tokens follows
		line, column := int(number(m, "lineNum")), int(number(m, "linePos"))
		if t, ok := lineOf(s.Text, line); ok {
			e.Text = strings.TrimSuffix(t, "\r")
			e.Line, e.Column = line, runes(e.Text, column)
		}
		return e
	}
	return e
}

// lineOf returns a line of a text, which are numbered from 1 on, and false if there is no such line.
func lineOf(text string, number int) (line string, ok bool) {
	for more := true; more && number > 0; number-- {
		line, text, more = strings.Cut(text, "\n")
		ok = number == 1
	}
	return line, ok
}

// runes returns the column, counted from 1, of a UTF-16 position in a line.
func runes(line string, column int) int {
	n, at := 1, 1
	for _, r := range line {
		if at >= column {
			break
		}
		at += utf16.RuneLen(r)
		n++
	}
	return n
}

// Release implements [webgpu.HostPipeline]: the collector of JavaScript frees it.
func (p *pipeline) Release() { *p = pipeline{} }

// group is buffers bound to a pipeline.
type group struct{ v js.Value }

// NewGroup implements [webgpu.HostDevice].
func (d *device) NewGroup(p webgpu.HostPipeline, ranges []webgpu.HostRange) (webgpu.HostGroup, error) {
	entries := make([]any, len(ranges))
	for i, r := range ranges {
		entries[i] = map[string]any{"binding": i, "resource": map[string]any{"buffer": r.Buffer.(*buffer).v, "offset": r.Off, "size": r.Bytes}}
	}
	g := &group{}
	err := try(func() {
		g.v = d.v.Call("createBindGroup", map[string]any{"layout": p.(*pipeline).layout, "entries": entries})
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Release implements [webgpu.HostGroup].
func (g *group) Release() { g.v = js.Undefined() }
