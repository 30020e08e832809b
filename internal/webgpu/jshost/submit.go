//go:build js && !nowebgpu

package jshost

import (
	"math"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// Submit implements [webgpu.HostDevice].
func (d *device) Submit(list []webgpu.HostCommand, remap []webgpu.HostBuffer) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	promises, err := d.scoped(func() {
		e := encoder{d: d, v: d.v.Call("createCommandEncoder")}
		for i := range list {
			e.encode(list, i)
		}
		e.end()
		d.queue.Call("submit", []any{e.v.Call("finish")})
	})
	if err != nil {
		return 0, err
	}
	if err := try(func() {
		before := len(promises)
		for _, b := range remap {
			if b := b.(*buffer); b.usage == webgpu.Readback {
				b.from, b.to = written(list, b)
				promises = append(promises, b.v.Call("mapAsync", modeRead, b.from, b.to-b.from))
			}
		}
		if len(promises) == before {
			promises = append(promises, d.queue.Call("onSubmittedWorkDone"))
		}
	}); err != nil {
		return 0, err
	}
	d.last++
	ticket := d.last
	then(all(promises), func(results js.Value, err error) {
		if err == nil {
			err = first(results)
		} else {
			err = d.failed(err)
		}
		d.complete(ticket, err)
	})
	return ticket, nil
}

// written returns the range of b that the commands write, from a multiple of eight, as mapAsync demands. The browser
// copies the bytes that it maps from one process to another, and buffers of Readback may be much larger than their contents.
func written(list []webgpu.HostCommand, b *buffer) (from, to int64) {
	from = math.MaxInt64
	for i := range list {
		c, bytes := &list[i], list[i].Bytes
		if c.Dst != webgpu.HostBuffer(b) {
			continue
		}
		if c.Do == webgpu.Stamps {
			bytes *= 8
		}
		from, to = min(from, c.To&^7), max(to, c.To+bytes)
	}
	return min(from, to), to
}

// complete records the end of a submission, and reports the submissions that are complete together
// with all before them.
func (d *device) complete(ticket uint64, err error) {
	d.mu.Lock()
	if err == nil && d.fault != nil {
		err, d.fault = d.fault, nil
	}
	d.over[ticket] = err
	for {
		err, found := d.over[d.done+1]
		if !found {
			break
		}
		d.done++
		delete(d.over, d.done)
		if notify, ticket := d.notify, d.done; notify != nil {
			d.mu.Unlock()
			notify(ticket, err)
			d.mu.Lock()
		}
	}
	d.mu.Unlock()
}

// Notify implements [webgpu.Remote].
func (d *device) Notify(f func(ticket uint64, err error)) {
	d.mu.Lock()
	d.notify = f
	d.mu.Unlock()
}

// Poll implements [webgpu.HostDevice].
func (d *device) Poll() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done, nil
}

// encoder is commands on their way to a command buffer. Dispatches that follow one another
// are one pass.
type encoder struct {
	d        *device
	v        js.Value
	pass     js.Value // undefined between passes
	pipeline *pipeline
	noted    int // one more than the place of the last stamp that a pass notes at its end
}

// encode appends command i of the list.
func (e *encoder) encode(list []webgpu.HostCommand, i int) {
	c := &list[i]
	if c.Do != webgpu.Dispatch {
		e.end()
	}
	switch c.Do {
	case webgpu.Dispatch:
		if e.pass.IsUndefined() {
			e.begin(list, i)
		}
		if p := c.Pipeline.(*pipeline); p != e.pipeline {
			e.pass.Call("setPipeline", p.v)
			e.pipeline = p
		}
		e.pass.Call("setBindGroup", 0, c.Group.(*group).v)
		e.pass.Call("dispatchWorkgroups", c.Grid[0], c.Grid[1], c.Grid[2])
	case webgpu.Copy:
		e.v.Call("copyBufferToBuffer", c.Src.(*buffer).v, c.From, c.Dst.(*buffer).v, c.To, c.Bytes)
	case webgpu.Clear:
		e.v.Call("clearBuffer", c.Dst.(*buffer).v, c.To, c.Bytes)
	case webgpu.Stamp:
		if e.noted <= i {
			e.begin(list, i)
			e.end()
		}
	case webgpu.Stamps:
		k := &e.d.clock
		k.make(e.d.v)
		e.v.Call("resolveQuerySet", k.queries, 0, c.Bytes, k.times, 0)
		e.v.Call("copyBufferToBuffer", k.times, 0, c.Dst.(*buffer).v, c.To, 8*c.Bytes)
	default:
		panic(fmt.Sprintf("command %d", c.Do))
	}
}

// begin begins a pass with command i. If a stamp ends it, the pass notes the time.
func (e *encoder) begin(list []webgpu.HostCommand, i int) {
	for i < len(list) && list[i].Do == webgpu.Dispatch {
		i++
	}
	if i == len(list) || list[i].Do != webgpu.Stamp {
		e.pass = e.v.Call("beginComputePass")
		return
	}
	k := &e.d.clock
	k.make(e.d.v)
	e.pass = e.v.Call("beginComputePass", map[string]any{
		"timestampWrites": map[string]any{"querySet": k.queries, "endOfPassWriteIndex": list[i].Mark},
	})
	e.noted = i + 1
}

// end ends the pass, if there is one.
func (e *encoder) end() {
	if e.pass.IsUndefined() {
		return
	}
	e.pass.Call("end")
	e.pass, e.pipeline = js.Undefined(), nil
}

// clock is where times are noted, of one submission after the other.
type clock struct{ queries, times js.Value }

// mostStamps is how many times a set of queries may have.
const mostStamps = 4096

// make makes the clock, if it does not exist yet. The caller holds device.mu.
func (k *clock) make(device js.Value) {
	if !k.queries.IsUndefined() {
		return
	}
	k.queries = device.Call("createQuerySet", map[string]any{"type": "timestamp", "count": mostStamps})
	k.times = device.Call("createBuffer", map[string]any{"size": 8 * mostStamps, "usage": queryResolve | copySrc})
}

func (k *clock) free() {
	if !k.queries.IsUndefined() {
		k.queries.Call("destroy")
		k.times.Call("destroy")
	}
}
