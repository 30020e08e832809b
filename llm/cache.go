package llm

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// PageSize is how many tokens a page of the cache has.
const PageSize = 64

// cache holds the keys and values of all sessions of a model, in pages: an array [tokens
// width] for each layer, of which a page is PageSize rows.
type cache struct {
	keys, values []*device.Buffer // of each layer
	typ          op.DType
	pages        int
	perSequence  int // pages that a sequence can have, with those of a last chunk
	config       *Config
	reclaim      func() bool // see Options.Reclaim

	mu   sync.Mutex
	free []int32
	refs []int32 // sessions that use each page

	known prefixes
}

// newCache makes a cache of so many pages.
func newCache(ctx context.Context, dev *device.Device, c *Config, typ op.DType, pages, perSequence int) (*cache, error) {
	k := &cache{typ: typ, pages: pages, perSequence: perSequence, config: c, refs: make([]int32, pages),
		known: prefixes{pages: make(map[prefix]prefixPage), of: make(map[int32]prefix)}}
	for i := pages - 1; i >= 0; i-- {
		k.free = append(k.free, int32(i))
	}
	for range c.Layers {
		for _, to := range []struct {
			list  *[]*device.Buffer
			width int
		}{{&k.keys, c.KVHeads * c.KeyLength}, {&k.values, c.KVHeads * c.ValueLength}} {
			b, err := dev.NewBuffer(ctx, typ, pages*PageSize, to.width)
			if err != nil {
				k.close()
				return nil, err
			}
			*to.list = append(*to.list, b)
		}
	}
	return k, nil
}

func (k *cache) close() {
	for _, list := range [][]*device.Buffer{k.keys, k.values} {
		for _, b := range list {
			_ = b.Close()
		}
	}
}

// append records that keys and values [t width] of layer i go to their places, and
// returns all pages.
func (k *cache) append(r *recorder, i int, keys, values batch.Value) (allKeys, allValues batch.Value) {
	c := k.config
	k.store(r.Batch, k.keys[i], r.places, keys)
	k.store(r.Batch, k.values[i], r.places, values)
	return r.Reshape(r.Use(k.keys[i]), k.pages, PageSize, c.KVHeads, c.KeyLength),
		r.Reshape(r.Use(k.values[i]), k.pages, PageSize, c.KVHeads, c.ValueLength)
}

// store records that rows go to their places in an array.
func (k *cache) store(b *batch.Batch, buf *device.Buffer, places, rows batch.Value) {
	if k.typ != op.F32 {
		rows = b.Cast(rows, k.typ)
	}
	b.Store(buf, 0, b.Scatter(b.Use(buf), places, rows))
}

// take appends pages to those of a sequence until it has n, and reports whether there
// were enough; if not, the sequence does not change.
func (k *cache) take(pages []int32, n int) ([]int32, bool) {
	for {
		if more, ok := k.takeFree(pages, n); ok || k.reclaim == nil || !k.reclaim() {
			return more, ok
		}
	}
}

// takeFree is take of pages that are free.
func (k *cache) takeFree(pages []int32, n int) ([]int32, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n-len(pages) > len(k.free)+len(k.known.idle) {
		return pages, false
	}
	for len(pages) < n {
		var p int32
		if last := len(k.free) - 1; last >= 0 {
			p, k.free = k.free[last], k.free[:last]
		} else {
			p, k.known.idle = k.known.idle[0], k.known.idle[1:]
			k.forget(p)
		}
		k.refs[p] = 1
		pages = append(pages, p)
	}
	return pages, true
}

// share returns the pages for one more session.
func (k *cache) share(pages []int32) []int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range pages {
		k.refs[p]++
	}
	return append([]int32(nil), pages...)
}

// release gives pages back. Of known ones the last is the first to be used again, since the
// others may be found without it.
func (k *cache) release(pages []int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(pages) - 1; i >= 0; i-- {
		p := pages[i]
		if k.refs[p]--; k.refs[p] > 0 {
			continue
		}
		if _, known := k.known.of[p]; known {
			k.known.idle = append(k.known.idle, p)
		} else {
			k.free = append(k.free, p)
		}
	}
}

// available returns the number of pages that can be taken.
func (k *cache) available() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.free) + len(k.known.idle)
}
