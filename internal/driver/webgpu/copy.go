package webgpu

import (
	"errors"

	"github.com/rayo-go/rayo/internal/portable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
)

// With NVIDIA's Vulkan driver the copy command reaches a fifth of the speed of a kernel (0.84 of
// 4.06 TB/s on an H200), so a kernel copies large arrays if both can be bound.

// minByKernel is the size in bytes from which a kernel copies. On an H200, a kernel takes 11 µs for
// 1 MiB and the copy command 9 µs; for 4 MiB they take 12 µs and 17 µs.
const minByKernel = 2 << 20

// copy adds a copy of all of dst. It copies whole words: this is safe because no data follow a
// temporary array, or a part of one that does not end on a word, since no part begins within a
// word.
func (e *preparer) copy(dst, src arrayRef) error {
	if dst.bytes == 0 {
		return nil
	}
	if dst.bytes%4 != 0 && dst.kind == external {
		src.bytes = dst.bytes
		if graphs.copyBytes == nil {
			return errNoKernel // package device calls UseGraphs before it uses types with such sizes
		}
		return graphs.copyBytes(e, dst, src)
	}
	dst.bytes = words(dst.bytes)
	src.bytes = dst.bytes
	s := &copyStep{dst: dst, src: src}
	if dst.bytes >= minByKernel && e.d.gpu.Adapter().Type != gpu.Software {
		if err := e.copyByKernel(s); err != nil {
			return err
		}
	}
	e.add(s, dst, src)
	return nil
}

// copyByKernel adds the launches that can replace the copy command of s.
func (e *preparer) copyByKernel(s *copyStep) error {
	most := e.d.limits.Binding
	most -= most % max(e.d.limits.StorageAlign, 16)
	for off := int64(0); off < s.dst.bytes; off += most {
		bytes := min(most, s.dst.bytes-off)
		n := int(bytes / 4)
		r := e.request()
		x := []portable.Array{{Type: op.U32, Shape: op.Shape{n}}}
		same, err := op.ReshapeTo(n)
		if err != nil {
			return err
		}
		r.Op, r.Attrs, r.In, r.Out = op.Reshape, same, x, x
		p, err := portable.For(&r.Request)
		if errors.Is(err, op.ErrUnsupported) {
			s.launches = nil
			return nil
		}
		if err != nil {
			return err
		}
		for i := range p.Stages {
			prog, err := p.Stages[i].Kernel.Program()
			if err != nil {
				return err
			}
			l := &dispatch{grid: p.Stages[i].Grid, arrays: []arrayRef{s.src.part(off, bytes), s.dst.part(off, bytes)}, dynamic: -1, static: -1}
			if err := e.ready(l, prog, p.Stages[i].Params, true); err != nil {
				return err
			}
			s.launches = append(s.launches, l)
		}
	}
	return nil
}

// copyStep copies an array on the device.
type copyStep struct {
	dst, src arrayRef
	launches []*dispatch // launches that can replace the command; nil for small copies
}

func (s *copyStep) record(r *recorder) error {
	if r.set.l.direct[r.step] {
		return nil
	}
	dst, src := r.locate(s.dst), r.locate(s.src)
	if align := max(r.d.limits.StorageAlign, 4); len(s.launches) == 0 || dst.Buffer == src.Buffer || dst.Off%align != 0 || src.Off%align != 0 {
		r.copy(dst, src)
		return nil
	}
	for _, l := range s.launches {
		if err := l.record(r); err != nil {
			return err
		}
	}
	return nil
}
