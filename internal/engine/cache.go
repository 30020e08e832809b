package engine

import (
	"container/list"
	"sync"

	"github.com/rayo-go/rayo/internal/graph"
)

// maxPlans is the maximum number of plans that an engine caches.
const maxPlans = 128

// planCache caches the most recently used plans by their graphs.
type planCache struct {
	mu   sync.Mutex
	max  int
	last *list.List // of *cached, the most recently used first
	at   map[uint64][]*list.Element
}

type cached struct {
	hash uint64
	g    *graph.Graph
	p    *Plan
}

func (c *planCache) init(max int) {
	c.max, c.last, c.at = max, list.New(), make(map[uint64][]*list.Element)
}

func (c *planCache) get(hash uint64, g *graph.Graph) *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.at[hash] {
		if k := e.Value.(*cached); k.g.Equal(g) {
			c.last.MoveToFront(e)
			return k.p
		}
	}
	return nil
}

// put caches p and returns it. If another goroutine has cached a plan of the graph first, it returns that plan.
func (c *planCache) put(hash uint64, g *graph.Graph, p *Plan) *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.at[hash] {
		if k := e.Value.(*cached); k.g.Equal(g) {
			p.exec.end()
			return k.p
		}
	}
	c.at[hash] = append(c.at[hash], c.last.PushFront(&cached{hash, g, p}))
	for c.last.Len() > c.max {
		c.drop(c.last.Back())
	}
	return p
}

// drop removes a plan from the cache. If a caller still holds the plan (a compiled batch), the
// garbage collector ends it later.
func (c *planCache) drop(e *list.Element) {
	k := c.last.Remove(e).(*cached)
	es := c.at[k.hash]
	for i := range es {
		if es[i] == e {
			es = append(es[:i:i], es[i+1:]...)
			break
		}
	}
	if len(es) == 0 {
		delete(c.at, k.hash)
	} else {
		c.at[k.hash] = es
	}
}

func (c *planCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last.Init()
	clear(c.at)
}
