package engine

import (
	"container/list"
	"sync"

	"github.com/rayo-go/rayo/internal/graph"
)

// maxPlans bounds the plans that an engine keeps for graphs it may see again.
const maxPlans = 128

// planCache keeps the plans used last, by the graph that they were made for.
type planCache struct {
	mu   sync.Mutex
	max  int
	last *list.List // of *cached, the one used last in front
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

// put keeps p, or returns the plan that another goroutine put there first.
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

// drop forgets a plan. A caller may still hold it (a compiled batch): the
// garbage collector ends it then.
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
