package webgpu

import "github.com/rayo-go/rayo/internal/fmt"

// stage is memory of the host for copies to or from the device. An unused upload stage is mapped, and
// an unused readback stage is not.
type stage struct {
	host  HostBuffer
	size  int64
	usage Usage
}

var stageSizes = [...]int64{4 << 10, 64 << 10, 1 << 20, chunkBytes}

// chunkBytes is the largest number of bytes that one submission copies. More bytes are divided, so
// that copying by the CPU overlaps with the transfer.
const chunkBytes = 8 << 20

// maxIdleStages is the largest number of cached stages of each size.
const maxIdleStages = 16

// stagePool caches stages of one usage. Device.mu guards it.
type stagePool struct {
	idle  [len(stageSizes)][]*stage
	all   map[*stage]bool
	bytes int64
}

func (d *Device) pool(u Usage) *stagePool { return &d.stages[u-Upload] }

// stage returns a stage of at least n bytes, which are at most chunkBytes.
func (d *Device) stage(n int64, u Usage) (*stage, error) {
	class := 0
	for n > stageSizes[class] {
		class++
	}
	p := d.pool(u)
	d.mu.Lock()
	if l := p.idle[class]; len(l) > 0 {
		s := l[len(l)-1]
		p.idle[class] = l[:len(l)-1]
		d.mu.Unlock()
		return s, nil
	}
	d.mu.Unlock()
	size := min(stageSizes[class], d.adapter.Buffer&^3)
	host, err := d.host.NewBuffer(size, u)
	if err != nil {
		return nil, fmt.Errorf("staging of %d bytes: %w", size, d.hosted(err))
	}
	s := &stage{host, size, u}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.all == nil {
		p.all = map[*stage]bool{}
	}
	p.all[s] = true
	p.bytes += size
	return s, nil
}

// unstage caches a stage, if it is in the right state.
func (d *Device) unstage(s *stage, good bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pool(s.usage)
	for class, size := range stageSizes {
		if good && s.size == size && len(p.idle[class]) < maxIdleStages {
			p.idle[class] = append(p.idle[class], s)
			return
		}
	}
	delete(p.all, s)
	p.bytes -= s.size
	s.host.Release()
}

func (p *stagePool) free() {
	for s := range p.all {
		s.host.Release()
	}
	*p = stagePool{}
}
