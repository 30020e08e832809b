//go:build js && !nowebgpu

package jshost

import (
	"context"
	"strings"
	"sync"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/ascii"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// New returns the host.
func New() (webgpu.Host, error) { return &host{}, nil }

// host is navigator.gpu. Adapters are listed once, in the first call that needs them.
type host struct {
	mu     sync.Mutex
	listed bool
	found  []found
	err    error
}

// found is an adapter, and how it is asked for: of one adapter one device is made, and
// for the next it is asked for again.
type found struct {
	options map[string]any
	adapter js.Value // undefined once a device was made of it
	info    webgpu.Adapter
}

// Name implements [webgpu.Host].
func (h *host) Name() string { return "navigator.gpu" }

// engine returns the name and version of the JavaScript engine.
func engine() string {
	navigator := js.Global().Get("navigator")
	if navigator.Type() == js.TypeObject {
		agent := text(navigator.Get("userAgent"))
		for _, name := range []string{"Firefox/", "Edg/", "OPR/", "Chrome/", "Version/"} {
			if at := strings.Index(agent, name); at >= 0 {
				product, _, _ := strings.Cut(agent[at:], " ")
				if version, safari := strings.CutPrefix(product, "Version/"); safari {
					return "Safari/" + version
				}
				return product
			}
		}
		if agent != "" {
			return agent
		}
	}
	if process := js.Global().Get("process"); process.Type() == js.TypeObject {
		return "Node.js " + text(process.Get("version"))
	}
	return "an unknown engine"
}

// gpu returns navigator.gpu, or the reason why it does not exist.
func gpu() (js.Value, error) {
	navigator := js.Global().Get("navigator")
	if navigator.Type() == js.TypeObject {
		if gpu := navigator.Get("gpu"); gpu.Type() == js.TypeObject {
			return gpu, nil
		}
	}
	if secure := js.Global().Get("isSecureContext"); secure.Type() == js.TypeBoolean && !secure.Bool() {
		return js.Undefined(), fmt.Errorf("navigator.gpu exists only in pages from https or localhost, and this page is from neither: %w", webgpu.ErrNoAdapter)
	}
	return js.Undefined(), fmt.Errorf("%s has no navigator.gpu: %w", engine(), webgpu.ErrNoAdapter)
}

// Adapters implements [webgpu.Host].
func (h *host) Adapters(ctx context.Context) ([]webgpu.Adapter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listed {
		found, err := list(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.listed, h.found, h.err = true, found, err
	}
	var infos []webgpu.Adapter
	for i := range h.found {
		infos = append(infos, h.found[i].info)
	}
	return infos, h.err
}

// ways are how adapters are asked for: the fast GPU and the frugal one, which may be the
// same, and software.
func ways() []map[string]any {
	list := []map[string]any{{"powerPreference": "high-performance"}, {"powerPreference": "low-power"}, {"forceFallbackAdapter": true}}
	if strings.HasPrefix(text(js.Global().Get("navigator").Get("platform")), "Win") {
		// Browsers on these systems ignore the preference and write a warning to the console.
		list = []map[string]any{{}, list[2]}
	}
	return list
}

// list requests adapters by all preferences at once.
func list(ctx context.Context) ([]found, error) {
	gpu, err := gpu()
	if err != nil {
		return nil, err
	}
	ways := ways()
	var requests []any
	if err := try(func() {
		for _, o := range ways {
			requests = append(requests, gpu.Call("requestAdapter", o))
		}
	}); err != nil {
		return nil, fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, err)
	}
	adapters, err := await(ctx, all(requests))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, err)
	}
	var list []found
	for i, o := range ways {
		a := adapters.Index(i)
		if a.Type() != js.TypeObject {
			continue
		}
		info := describe(a)
		if !known(list, &info) {
			list = append(list, found{o, a, info})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s offers no GPU: there is none, or the browser blocks its driver: %w", engine(), webgpu.ErrNoAdapter)
	}
	return list, nil
}

// known reports whether an adapter of that description is in the list.
func known(list []found, a *webgpu.Adapter) bool {
	for i := range list {
		if b := &list[i].info; a.Name == b.Name && a.Driver == b.Driver && a.Type == b.Type {
			return true
		}
	}
	return false
}

// number returns a limit, 0 if the name does not exist.
func number(limits js.Value, name string) int64 {
	if v := limits.Get(name); v.Type() == js.TypeNumber {
		return int64(min(v.Float(), 1<<53))
	}
	return 0
}

// The limits that devices are opened with, as the adapter has them.
const (
	bufferBytes     = "maxBufferSize"
	storageBytes    = "maxStorageBufferBindingSize"
	uniformBytes    = "maxUniformBufferBindingSize"
	storageAlign    = "minStorageBufferOffsetAlignment"
	uniformAlign    = "minUniformBufferOffsetAlignment"
	storageBuffers  = "maxStorageBuffersPerShaderStage"
	invocations     = "maxComputeInvocationsPerWorkgroup"
	sizeX           = "maxComputeWorkgroupSizeX"
	sizeY           = "maxComputeWorkgroupSizeY"
	sizeZ           = "maxComputeWorkgroupSizeZ"
	workgroupBytes  = "maxComputeWorkgroupStorageSize"
	workgroupsInRow = "maxComputeWorkgroupsPerDimension"
)

var limits = []string{bufferBytes, storageBytes, uniformBytes, storageAlign, uniformAlign, storageBuffers, invocations, sizeX, sizeY, sizeZ, workgroupBytes, workgroupsInRow}

// The features that devices are opened with where the adapter has them.
const (
	half       = "shader-f16"
	subgroups  = "subgroups"
	timestamps = "timestamp-query"
)

var features = []string{half, subgroups, timestamps}

func has(adapter js.Value, feature string) bool {
	return adapter.Get("features").Call("has", feature).Bool()
}

// vendors are the vendor numbers on which decisions depend.
var vendors = map[string]uint32{"nvidia": webgpu.NVIDIA, "apple": webgpu.Apple}

// describe returns the description of an adapter.
func describe(a js.Value) webgpu.Adapter {
	info := a.Get("info")
	if info.Type() != js.TypeObject {
		info = js.Global().Get("Object").New()
	}
	var names []string
	for _, n := range []string{"vendor", "architecture", "device"} {
		if s := text(info.Get(n)); s != "" {
			names = append(names, s)
		}
	}
	if names == nil {
		names = []string{"GPU"}
	}
	l := a.Get("limits")
	size := func(name string) uint32 { return uint32(number(l, name)) }
	d := webgpu.Adapter{
		Name:   strings.Join(names, " "),
		Driver: ascii.Trim(engine()+" "+text(info.Get("description")), ascii.Space),
		API:    "browser",
		Type:   webgpu.Other,
		Vendor: vendors[text(info.Get("vendor"))],
		Clocks: has(a, timestamps),
		Tick:   1, // nanoseconds
		Target: wgsl.Target{
			Consumer: wgsl.Tint,
			Limits: wgsl.Limits{
				Invocations:    size(invocations),
				Size:           [3]uint32{size(sizeX), size(sizeY), size(sizeZ)},
				WorkgroupBytes: size(workgroupBytes),
				Bindings:       int(size(storageBuffers)),
				Grid:           size(workgroupsInRow),
			},
		},
		Limits: webgpu.Limits{
			Buffer:       number(l, bufferBytes) &^ 3,
			Binding:      number(l, storageBytes) &^ 3,
			UniformBytes: number(l, uniformBytes) &^ 3,
			StorageAlign: number(l, storageAlign),
			UniformAlign: number(l, uniformAlign),
		},
	}
	if isSoftware(a, info) {
		d.Type = webgpu.Software
	}
	if has(a, half) {
		d.Target.Features |= wgsl.Half
	}
	if has(a, subgroups) {
		d.Target.Features |= wgsl.Subgroups
		d.Target.SubgroupSize = [2]uint32{uint32(number(info, "subgroupMinSize")), uint32(number(info, "subgroupMaxSize"))}
	}
	return d
}

// isSoftware reports whether software emulates the GPU.
func isSoftware(a, info js.Value) bool {
	for _, v := range []js.Value{info.Get("isFallbackAdapter"), a.Get("isFallbackAdapter")} {
		if v.Type() == js.TypeBoolean && v.Bool() {
			return true
		}
	}
	return text(info.Get("architecture")) == "swiftshader"
}

// Open implements [webgpu.Host].
func (h *host) Open(ctx context.Context, index int) (webgpu.HostDevice, error) {
	if _, err := h.Adapters(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if index < 0 || index >= len(h.found) {
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(h.found), webgpu.ErrNoAdapter)
	}
	f := &h.found[index]
	a := f.adapter
	f.adapter = js.Undefined()
	if a.IsUndefined() {
		gpu, err := gpu()
		if err != nil {
			return nil, err
		}
		if a, err = await(ctx, gpu.Call("requestAdapter", f.options)); err != nil {
			return nil, err
		}
		if a.Type() != js.TypeObject {
			return nil, fmt.Errorf("%s is not offered any more: %w", f.info.Name, webgpu.ErrNoAdapter)
		}
	}
	wanted, required := []any{}, map[string]any{}
	for _, n := range features {
		if has(a, n) {
			wanted = append(wanted, n)
		}
	}
	for _, n := range limits {
		if v := a.Get("limits").Get(n); v.Type() == js.TypeNumber {
			required[n] = v
		}
	}
	v, err := await(ctx, a.Call("requestDevice", map[string]any{"label": "rayo", "requiredFeatures": wanted, "requiredLimits": required}))
	if err != nil {
		return nil, err
	}
	return newDevice(v, f.info), nil
}
