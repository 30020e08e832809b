package llm

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// PageSize is the number of tokens in a page of the cache.
const PageSize = 64

// cache holds the keys and values of all sessions of a model, in pages. A page
// is PageSize rows, one for each token, in every layer.
type cache struct {
	keys, values []store // one for each layer
	pages        int
	perSequence  int // maximum pages of a sequence, including the pages of a last chunk
	config       *Config
	reclaim      func() bool // see Options.Reclaim

	mu   sync.Mutex
	free []int32
	refs []int32 // number of sessions that use each page
	// released is the number of times that a page lost its last user, and copies the number of pages that were taken for a copy of a shared
	// page which their session still holds.
	released, copies int
	changed          sync.Cond // on mu: released or copies has changed

	known prefixes
}

// newCache makes a cache with the given number of pages.
func newCache(ctx context.Context, dev *device.Device, c *Config, typ op.DType, pages, perSequence int) (*cache, error) {
	k := &cache{pages: pages, perSequence: perSequence, config: c, refs: make([]int32, pages),
		known: prefixes{pages: make(map[prefix]prefixPage), of: make(map[int32]prefix)}}
	k.changed.L = &k.mu
	for i := pages - 1; i >= 0; i-- {
		k.free = append(k.free, int32(i))
	}
	for range c.Layers {
		for _, to := range []struct {
			list  *[]store
			width int
		}{{&k.keys, c.KVHeads * c.KeyLength}, {&k.values, c.KVHeads * c.ValueLength}} {
			s, err := newStore(ctx, dev, typ, pages*PageSize, to.width)
			if err != nil {
				k.close()
				return nil, err
			}
			*to.list = append(*to.list, s)
		}
	}
	return k, nil
}

func (k *cache) close() {
	for _, list := range [][]store{k.keys, k.values} {
		for _, s := range list {
			s.close()
		}
	}
}

// floats reports whether attention can read pages without conversion.
func (k *cache) floats() bool { return k.keys[0].floats() }

// attend records two operations: the store of keys and values [t width] of layer i to the cache,
// and the attention of q over all keys and values of the sequences.
func (k *cache) attend(r *recorder, i int, q, keys, values batch.Value, o op.AttentionOpts) batch.Value {
	c := k.config
	k.keys[i].put(r.Batch, r.places, keys)
	k.values[i].put(r.Batch, r.places, values)
	if k.floats() {
		all := func(s store, width int) batch.Value {
			return r.Reshape(r.Use(s.data), k.pages, PageSize, c.KVHeads, width)
		}
		return r.Attention(q, all(k.keys[i], c.KeyLength), all(k.values[i], c.ValueLength), batch.AttentionInputs{Lengths: r.lengths, Table: r.table}, o)
	}
	heads := func(s store, width int) batch.Value {
		x := r.Reshape(s.get(r.Batch, r.all), r.sequences, k.perSequence*PageSize, c.KVHeads, width)
		return r.Permute(x, 0, 2, 1, 3)
	}
	return r.Attention(q, heads(k.keys[i], c.KeyLength), heads(k.values[i], c.ValueLength), batch.AttentionInputs{Lengths: r.lengths}, o)
}

// take appends free pages to a sequence until it has n pages. If there are too few, it calls
// Options.Reclaim until there are enough or Reclaim fails; then it returns the sequence unchanged
// and false.
func (k *cache) take(pages []int32, n int) ([]int32, bool) { return k.takeFor(pages, n, 0) }

// takeFor is take, and adds to k.copies if it succeeds. If Reclaim fails, other goroutines may have released pages since, or may be about
// to release those that they copy; then it tries again.
func (k *cache) takeFor(pages []int32, n, copies int) ([]int32, bool) {
	for {
		more, released, ok := k.takeFree(pages, n, copies)
		if ok || (k.reclaim == nil || !k.reclaim()) && !k.otherwise(released) {
			return more, ok
		}
	}
}

// otherwise reports whether a page has lost its last user since k.released was n. If not, but pages are being copied, it waits for these
// copies and returns true.
func (k *cache) otherwise(n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	waited := false
	for k.released == n && k.copies > 0 {
		k.changed.Wait()
		waited = true
	}
	return waited || k.released != n
}

// copied ends a copy of a page: it removes a user from the pages and subtracts 1 from k.copies.
func (k *cache) copied(pages []int32) {
	k.release(pages)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.copies--
	k.changed.Broadcast()
}

// takeFree is takeFor without Options.Reclaim. It also returns k.released.
func (k *cache) takeFree(pages []int32, n, copies int) ([]int32, int, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n-len(pages) > len(k.free)+len(k.known.idle) {
		return pages, k.released, false
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
	k.copies += copies
	return pages, k.released, true
}

// share adds a user to the pages and returns them.
func (k *cache) share(pages []int32) []int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range pages {
		k.refs[p]++
	}
	return append([]int32(nil), pages...)
}

// release removes a user from the pages. Unused known pages are reused from the last to the first,
// because the first pages can be found without the later ones.
func (k *cache) release(pages []int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(pages) - 1; i >= 0; i-- {
		p := pages[i]
		if k.refs[p]--; k.refs[p] > 0 {
			continue
		}
		k.released++
		k.changed.Broadcast()
		if _, known := k.known.of[p]; known {
			k.known.idle = append(k.known.idle, p)
		} else {
			k.free = append(k.free, p)
		}
	}
}

// available returns the number of free pages and unused known pages.
func (k *cache) available() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.free) + len(k.known.idle)
}
