//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/gogpu/wgpu/hal/vulkan/vk"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// layout has the objects that pipelines with the same kinds of bindings share. They exist until the
// device is closed.
type layout struct {
	kinds    []vk.DescriptorType
	set      vk.DescriptorSetLayout
	pipeline vk.PipelineLayout
}

// layout returns the layout of these bindings.
func (d *device) layout(bindings []webgpu.BindingKind) (*layout, error) {
	key := string(fmt.Append(nil, bindings))
	d.objects.Lock()
	defer d.objects.Unlock()
	if l := d.layouts[key]; l != nil {
		return l, nil
	}
	l := &layout{}
	list := make([]vk.DescriptorSetLayoutBinding, len(bindings)+1)
	for i, k := range bindings {
		kind := vk.DescriptorTypeStorageBuffer
		if k == webgpu.Block {
			kind = vk.DescriptorTypeUniformBuffer
		}
		l.kinds = append(l.kinds, kind)
		list[i] = vk.DescriptorSetLayoutBinding{Binding: uint32(i), DescriptorType: kind, DescriptorCount: 1, StageFlags: vk.ShaderStageFlags(vk.ShaderStageComputeBit)}
	}
	set := &vk.DescriptorSetLayoutCreateInfo{SType: vk.StructureTypeDescriptorSetLayoutCreateInfo, BindingCount: uint32(len(bindings)), PBindings: &list[0]}
	if r := d.cmds.CreateDescriptorSetLayout(d.handle, set, nil, &l.set); r != vk.Success {
		return nil, d.fail(r)
	}
	pipeline := &vk.PipelineLayoutCreateInfo{SType: vk.StructureTypePipelineLayoutCreateInfo, SetLayoutCount: 1, PSetLayouts: &l.set}
	if r := d.cmds.CreatePipelineLayout(d.handle, pipeline, nil, &l.pipeline); r != vk.Success {
		l.free(d)
		return nil, d.fail(r)
	}
	d.layouts[key] = l
	return l, nil
}

func (l *layout) free(d *device) {
	if l.pipeline != 0 {
		d.cmds.DestroyPipelineLayout(d.handle, l.pipeline, nil)
	}
	d.cmds.DestroyDescriptorSetLayout(d.handle, l.set, nil)
}

// pipeline implements [webgpu.HostPipeline].
type pipeline struct {
	device *device
	handle vk.Pipeline
	layout *layout
}

// NewPipeline implements [webgpu.HostDevice].
func (d *device) NewPipeline(s *webgpu.Shader) (webgpu.HostPipeline, error) {
	words, err := compile(s)
	if err != nil {
		return nil, err
	}
	l, err := d.layout(s.Bindings)
	if err != nil {
		return nil, err
	}
	var module vk.ShaderModule
	code := &vk.ShaderModuleCreateInfo{SType: vk.StructureTypeShaderModuleCreateInfo, CodeSize: uintptr(4 * len(words)), PCode: &words[0]}
	if r := d.cmds.CreateShaderModule(d.handle, code, nil, &module); r != vk.Success {
		return nil, d.fail(r)
	}
	defer d.cmds.DestroyShaderModule(d.handle, module, nil)
	p := &pipeline{device: d, layout: l}
	entry := newText(s.Entry)
	create := &vk.ComputePipelineCreateInfo{
		SType:  vk.StructureTypeComputePipelineCreateInfo,
		Stage:  vk.PipelineShaderStageCreateInfo{SType: vk.StructureTypePipelineShaderStageCreateInfo, Stage: vk.ShaderStageComputeBit, Module: module, PName: entry.address()},
		Layout: l.pipeline,
	}
	r := d.cmds.CreateComputePipelines(d.handle, 0, 1, create, nil, &p.handle)
	runtime.KeepAlive(entry)
	if r != vk.Success {
		return nil, fmt.Errorf("%s: the driver takes no such kernel: %w", s.Label, d.fail(r))
	}
	if p.handle == 0 { // some drivers of Intel say so
		return nil, fmt.Errorf("%s: the driver did not compile it: %w", s.Label, webgpu.ErrUnsupported)
	}
	d.keep(p)
	return p, nil
}

// Release implements [webgpu.HostPipeline].
func (p *pipeline) Release() {
	if p.device.drop(p) {
		p.device.cmds.DestroyPipeline(p.device.handle, p.handle, nil)
	}
}

// group implements [webgpu.HostGroup].
type group struct {
	device *device
	handle vk.DescriptorSet
	pool   *pool
	wants  map[vk.DescriptorType]int // of the pool
}

// NewGroup implements [webgpu.HostDevice].
func (d *device) NewGroup(hp webgpu.HostPipeline, ranges []webgpu.HostRange) (webgpu.HostGroup, error) {
	l := hp.(*pipeline).layout
	if len(ranges) != len(l.kinds) {
		return nil, fmt.Errorf("%d ranges for %d bindings: %w", len(ranges), len(l.kinds), webgpu.ErrInvalid)
	}
	g := &group{device: d}
	if err := d.groups.take(g, l); err != nil {
		return nil, err
	}
	infos := make([]vk.DescriptorBufferInfo, len(ranges))
	writes := make([]vk.WriteDescriptorSet, len(ranges))
	for i, r := range ranges {
		infos[i] = vk.DescriptorBufferInfo{Buffer: r.Buffer.(*buffer).handle, Offset: vk.DeviceSize(r.Off), Range: vk.DeviceSize(r.Bytes)}
		writes[i] = vk.WriteDescriptorSet{SType: vk.StructureTypeWriteDescriptorSet, DstSet: g.handle, DstBinding: uint32(i), DescriptorCount: 1, DescriptorType: l.kinds[i], PBufferInfo: &infos[i]}
	}
	if len(writes) > 0 {
		d.cmds.UpdateDescriptorSets(d.handle, uint32(len(writes)), &writes[0], 0, nil)
	}
	d.keep(g)
	return g, nil
}

// Release implements [webgpu.HostGroup].
func (g *group) Release() {
	if g.device.drop(g) {
		g.device.groups.give(g)
	}
}

// A pool has room for so many groups, of so many bindings in all.
const (
	poolGroups   = 256
	poolBindings = 8 * poolGroups
)

// pools gives sets of descriptors to groups.
type pools struct {
	mu     sync.Mutex
	device *device
	list   []*pool
}

type pool struct {
	handle   vk.DescriptorPool
	groups   int // that it has
	bindings map[vk.DescriptorType]int
}

// wants counts the bindings of each kind.
func (l *layout) wants() map[vk.DescriptorType]int {
	n := map[vk.DescriptorType]int{}
	for _, k := range l.kinds {
		n[k]++
	}
	return n
}

// take gets a set for the group.
func (s *pools) take(g *group, l *layout) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.list {
		if s.from(p, g, l) == nil {
			return nil
		}
	}
	d := s.device
	p := &pool{bindings: map[vk.DescriptorType]int{vk.DescriptorTypeStorageBuffer: poolBindings, vk.DescriptorTypeUniformBuffer: poolBindings}}
	sizes := []vk.DescriptorPoolSize{
		{Type: vk.DescriptorTypeStorageBuffer, DescriptorCount: poolBindings},
		{Type: vk.DescriptorTypeUniformBuffer, DescriptorCount: poolBindings},
	}
	create := &vk.DescriptorPoolCreateInfo{
		SType: vk.StructureTypeDescriptorPoolCreateInfo, Flags: vk.DescriptorPoolCreateFlags(vk.DescriptorPoolCreateFreeDescriptorSetBit),
		MaxSets: poolGroups, PoolSizeCount: uint32(len(sizes)), PPoolSizes: &sizes[0],
	}
	if r := d.cmds.CreateDescriptorPool(d.handle, create, nil, &p.handle); r != vk.Success {
		return d.fail(r)
	}
	s.list = append(s.list, p)
	return s.from(p, g, l)
}

// from takes a set from a pool with room for it. Drivers need not report a full pool themselves.
func (s *pools) from(p *pool, g *group, l *layout) error {
	if p.groups == poolGroups {
		return webgpu.ErrOutOfMemory
	}
	wants := l.wants()
	for k, n := range wants {
		if p.bindings[k] < n {
			return webgpu.ErrOutOfMemory
		}
	}
	d := s.device
	info := &vk.DescriptorSetAllocateInfo{SType: vk.StructureTypeDescriptorSetAllocateInfo, DescriptorPool: p.handle, DescriptorSetCount: 1, PSetLayouts: &l.set}
	if r := d.cmds.AllocateDescriptorSets(d.handle, info, &g.handle); r != vk.Success {
		return d.fail(r)
	}
	p.groups++
	for k, n := range wants {
		p.bindings[k] -= n
	}
	g.pool, g.wants = p, wants
	return nil
}

// give takes the set of a group back.
func (s *pools) give(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.device.cmds.FreeDescriptorSets(s.device.handle, g.pool.handle, 1, &g.handle)
	g.pool.groups--
	for k, n := range g.wants {
		g.pool.bindings[k] += n
	}
}

func (s *pools) free() {
	for _, p := range s.list {
		s.device.cmds.DestroyDescriptorPool(s.device.handle, p.handle, nil)
	}
	s.list = nil
}
