package llm

import (
	"context"
	"fmt"
	"sync"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// pageMoves has the plans that copy a page of all layers: within the cache, to the host, and from
// the host.
type pageMoves struct {
	copy, read, write move

	copying sync.Mutex       // held during a copy, which uses pages
	pages   []*device.Buffer // one page of each array of the cache: see store.copy
}

// move is one plan. from and to are the rows of pages; data has the pages of all layers, with keys
// and values alternating.
type move struct {
	plan     *batch.Plan
	from, to batch.Value
	data     []batch.Value
}

func (p *pageMoves) close() {
	for _, m := range []*batch.Plan{p.copy.plan, p.read.plan, p.write.plan} {
		if m != nil {
			_ = m.Close()
		}
	}
	for _, b := range p.pages {
		_ = b.Close()
	}
}

// pageMoves returns the plans. It compiles them on first use.
func (m *Model) pageMoves(ctx context.Context) (*pageMoves, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moves != nil {
		return m.moves, nil
	}
	p := &pageMoves{}
	for i, to := range []*move{&p.copy, &p.read, &p.write} {
		var err error
		if *to, err = p.move(ctx, m.dev, m.cache, i < 2, i != 1); err != nil {
			p.close()
			return nil, err
		}
	}
	m.moves = p
	return p, nil
}

// move compiles a plan. It reads a page of the cache (reads) or of data, and writes it to the cache
// (writes) or returns it.
func (p *pageMoves) move(ctx context.Context, dev *device.Device, k *cache, reads, writes bool) (move, error) {
	b := batch.New(dev)
	rows := func() batch.Value { return batch.Upload(b, make([]int32, PageSize)) }
	var v move
	if reads {
		v.from = rows()
	}
	if writes {
		v.to = rows()
	}
	for i := range 2 * len(k.keys) {
		at := k.array(i)
		switch {
		case reads && writes:
			pages, err := at.copy(ctx, b, v.from, v.to)
			if p.pages = append(p.pages, pages...); err != nil {
				return move{}, fmt.Errorf("memory for a page of the cache: %w", err)
			}
		case reads:
			v.data = append(v.data, at.get(b, v.from))
		default:
			x := b.Upload(make([]float32, PageSize*at.width), PageSize, at.width)
			v.data = append(v.data, x)
			at.put(b, v.to, x)
		}
	}
	var err error
	if writes {
		v.plan, err = b.Compile(ctx)
	} else {
		v.plan, err = b.Compile(ctx, v.data...)
	}
	if err != nil {
		return move{}, fmt.Errorf("moving pages of the cache: %w", err)
	}
	return v, nil
}

// array returns the keys of layer i/2 if i is even, and its values if i is odd.
func (k *cache) array(i int) store {
	if i%2 == 0 {
		return k.keys[i/2]
	}
	return k.values[i/2]
}

// rowsOfPage lists the rows of a page.
func rowsOfPage(page int32) []int32 {
	rows := make([]int32, PageSize)
	for i := range rows {
		rows[i] = page*PageSize + int32(i)
	}
	return rows
}

// copyPage copies a page of all layers.
func (m *Model) copyPage(ctx context.Context, from, to int32) error {
	p, err := m.pageMoves(ctx)
	if err != nil {
		return err
	}
	p.copying.Lock()
	defer p.copying.Unlock()
	return p.copy.plan.Run(ctx, batch.BindInput(p.copy.from, rowsOfPage(from)), batch.BindInput(p.copy.to, rowsOfPage(to)))
}

// readPage copies a page to data, which has an array for keys and values of each layer.
func (m *Model) readPage(ctx context.Context, page int32, data [][]float32) error {
	p, err := m.pageMoves(ctx)
	if err != nil {
		return err
	}
	bind := []batch.Binding{batch.BindInput(p.read.from, rowsOfPage(page))}
	for i, v := range p.read.data {
		bind = append(bind, batch.BindOutput(v, data[i]))
	}
	return p.read.plan.Run(ctx, bind...)
}

// writePage is the reverse of readPage.
func (m *Model) writePage(ctx context.Context, page int32, data [][]float32) error {
	p, err := m.pageMoves(ctx)
	if err != nil {
		return err
	}
	bind := []batch.Binding{batch.BindInput(p.write.to, rowsOfPage(page))}
	for i, v := range p.write.data {
		bind = append(bind, batch.BindInput(v, data[i]))
	}
	return p.write.plan.Run(ctx, bind...)
}

// pageData returns memory for a page of all layers.
func (k *cache) pageData() [][]float32 {
	data := make([][]float32, 2*len(k.keys))
	for i := range data {
		data[i] = make([]float32, PageSize*k.array(i).width)
	}
	return data
}
