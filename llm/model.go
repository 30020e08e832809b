package llm

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/op"
)

// Options has the options of [Open]. The zero value is the default.
type Options struct {
	// Context is the maximum number of tokens of a session. 0 means 4096, or the model's training
	// context if that is shorter.
	Context int
	// Cache is the number of tokens that all sessions together can have. 0 means Sessions times
	// Context. It is rounded up to whole pages.
	Cache int
	// Sessions is the number of sessions that can be full at once, if Cache is 0. 0 means 1.
	Sessions int
	// CacheType is the type of keys and values in the cache: op.F32 (the default), op.F16, which takes half the
	// memory, or op.Q8_0, 8-bit numbers with a factor for each 32, which takes little more than a quarter.
	// Attention reads F32 and F16 directly. With Q8_0, each pass converts Context tokens to f32, so Context
	// should be no larger than needed.
	CacheType op.DType
	// Chunk is the number of tokens of a prompt in one pass; 0 means 256. Larger chunks need more
	// memory for temporaries.
	Chunk int
	// Exact keeps the activations that are multiplied by quantised weights in float32. Without it
	// they are rounded to 8 bits if the device is faster then (see [op.MatMulQOpts]); the error of
	// the logits is about that of 8-bit weights.
	Exact bool
	// Reclaim, if not nil, is called when a session needs memory of the cache and none is free. It may close unused
	// sessions, and reports whether it closed one; it is called again until there is enough memory. It must not use
	// the session that needs the memory.
	Reclaim func() bool
}

const (
	defaultContext = 4096
	defaultChunk   = 256
	// fewTokens is the number of rows of the plan for few tokens.
	fewTokens = 16
	// maxChunk bounds Options.Chunk.
	maxChunk = 1 << 16
)

// shortChunks are the numbers of rows of the plans for prompts shorter than Options.Chunk.
var shortChunks = [...]int{fewTokens, 64}

// Model is a model on a device. Its methods are safe for concurrent use.
type Model struct {
	dev     *device.Device
	config  Config
	arch    *architecture
	weights *weights
	loaded  *loader
	cache   *cache // nil for models without a causal mask
	ropes   [2]ropeTable
	context int
	chunk   int
	exact   bool // Options.Exact
	ends    []int32

	mu     sync.Mutex
	closed bool
	users  sync.WaitGroup // running passes
	plans  map[passShape]*pass
	uses   int64 // number of calls of pass
	moves  *pageMoves
}

// ropeTable has the parameters of rope, for layers with a window or for the others.
type ropeTable struct {
	base        float32
	frequencies *device.Buffer // nil for powers of the base
	magnitude   float32
}

// Open loads a model from a GGUF file. For a split file, path may name any of its parts. The file
// can be deleted afterwards.
//
// # Errors
//   - those of [gguf.Open].
//   - [ConfigError] and [TensorError], which wrap [ErrModel], for a file without a model
//     of a known architecture.
//   - [device.ErrOutOfMemory] and [device.ErrLimit] if weights or cache are too large for the device.
//   - [device.ErrShape] for options below 0.
func Open(ctx context.Context, dev *device.Device, path string, o Options) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Load(ctx, dev, f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Load is [Open] for an open file. It does not use the file after it returns.
func Load(ctx context.Context, dev *device.Device, f *gguf.File, o Options) (*Model, error) {
	c, arch, err := configOf(f)
	if err != nil {
		return nil, err
	}
	m := &Model{dev: dev, arch: arch, exact: o.Exact, plans: make(map[passShape]*pass)}
	pages, err := m.sizes(&c, o)
	if err != nil {
		return nil, err
	}
	m.loaded = &loader{ctx: ctx, dev: dev, f: f, context: m.context, used: make(map[string]bool)}
	m.weights = m.loaded.load(&c, arch)
	m.config = c
	m.ropes[0], m.ropes[1] = m.loaded.rope(&c, false, m.weights.ropeFactors), m.loaded.rope(&c, true, m.weights.ropeFactors)
	if m.loaded.err != nil {
		m.loaded.close()
		return nil, m.loaded.err
	}
	if c.Causal {
		typ := o.CacheType
		if typ == op.InvalidType {
			typ = op.F32
		}
		if m.cache, err = newCache(ctx, dev, &m.config, typ, pages, ceilDiv(m.context+m.chunk, PageSize)); err != nil {
			m.loaded.close()
			return nil, fmt.Errorf("cache of %d tokens: %w", pages*PageSize, err)
		}
	}
	if m.cache != nil {
		m.cache.reclaim = o.Reclaim
	}
	m.ends = endTokens(f.Metadata(), c.Vocabulary)
	return m, nil
}

func ceilDiv(n, m int) int { return (n-1)/m + 1 }

// sizes checks the options and returns the number of pages of the cache.
func (m *Model) sizes(c *Config, o Options) (pages int, err error) {
	if o.Context < 0 || o.Cache < 0 || o.Sessions < 0 || o.Chunk < 0 || o.Chunk > maxChunk {
		return 0, fmt.Errorf("the options have a context of %d tokens, a cache of %d, %d sessions and chunks of %d: expected 0 or more, and chunks of at most %d: %w", o.Context, o.Cache, o.Sessions, o.Chunk, maxChunk, device.ErrShape)
	}
	switch o.CacheType {
	case op.InvalidType, op.F32, op.F16, op.Q8_0:
	default:
		return 0, fmt.Errorf("CacheType is %v, expected f32, f16 or q8_0: %w", o.CacheType, device.ErrUnsupported)
	}
	m.context = o.Context
	if m.context == 0 {
		m.context = min(defaultContext, c.Context)
	}
	m.context = min(m.context, maxContext)
	if !c.Causal {
		m.context = min(m.context, c.Context)
	}
	m.chunk = o.Chunk
	if m.chunk == 0 {
		m.chunk = defaultChunk
	}
	m.chunk = min(m.chunk, ceilDiv(m.context, fewTokens)*fewTokens)
	perSession, sessions := ceilDiv(max(m.context, 1), PageSize), max(o.Sessions, 1)
	pages = ceilDiv(max(o.Cache, 1), PageSize)
	if o.Cache == 0 && sessions <= math.MaxInt32/perSession {
		pages = perSession * sessions
	}
	if o.Cache == 0 && sessions > math.MaxInt32/perSession || pages > math.MaxInt32/PageSize {
		return 0, fmt.Errorf("the options ask for a cache of %d tokens, or for %d sessions of %d; at most %d tokens are supported: %w", o.Cache, o.Sessions, m.context, math.MaxInt32, device.ErrLimit)
	}
	return pages, nil
}

// rope makes the table of the layers with a window (local), or of the others.
func (l *loader) rope(c *Config, local bool, factors []float32) ropeTable {
	t := ropeTable{base: c.Rope.Base, magnitude: 1}
	if local {
		t.base = c.Rope.BaseLocal
	}
	if c.Rope.Dimensions == 0 || l.err != nil {
		return t
	}
	scaled := !local || !c.Rope.Scaling.LocalLayersUnaffected
	if c.Rope.plain(scaled, factors) {
		return t
	}
	var f []float32
	f, t.magnitude = c.Rope.frequencies(t.base, scaled, factors)
	t.frequencies = l.keep(device.Upload(l.ctx, l.dev, f))
	return t
}

func (m *Model) ropeOf(i int) *ropeTable { return &m.ropes[min(1, m.config.Window[i])] }

// turns reports whether layer i rotates its queries and keys by their positions.
func (m *Model) turns(i int) bool {
	return m.arch.rope != noRope && (m.arch.ropeless == 0 || (i+1)%m.arch.ropeless != 0)
}

// endTokens returns the tokens that end a text or a turn, according to the metadata.
func endTokens(meta *gguf.Metadata, vocabulary int) []int32 {
	var ends []int32
	for _, key := range []string{"eos", "eot", "eom"} {
		if id, ok := meta.Uint("tokenizer.ggml." + key + "_token_id"); ok && id < uint64(vocabulary) {
			ends = append(ends, int32(id))
		}
	}
	return ends
}

// Config returns the model's configuration from the file.
func (m *Model) Config() Config {
	c := m.config
	c.Window = append([]int(nil), c.Window...)
	return c
}

// Device returns the device of the model.
func (m *Model) Device() *device.Device { return m.dev }

// Context returns the maximum number of tokens of a session.
func (m *Model) Context() int { return m.context }

// EndTokens returns the tokens that end a text or a turn, according to the metadata of the file.
// [Session.Generate] stops at these too.
func (m *Model) EndTokens() []int32 { return append([]int32(nil), m.ends...) }

// Close waits for running passes and frees the device memory of the model and all its sessions.
// Their methods return [ErrClosed] afterwards. A second Close does nothing.
func (m *Model) Close() error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	m.users.Wait()
	for _, p := range m.plans {
		_ = p.plan.Close()
	}
	if m.moves != nil {
		m.moves.close()
	}
	if m.cache != nil {
		m.cache.close()
	}
	m.loaded.close()
	return nil
}

// begin registers a running pass; users.Done ends it. It returns an error if the model is closed.
func (m *Model) begin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("model: %w", ErrClosed)
	}
	m.users.Add(1)
	return nil
}

// pass is a plan with its operands.
type pass struct {
	plan *batch.Plan
	recorder
	y     batch.Value
	width int          // number of elements in a row of the result
	free  sync.Pool    // of *passRun
	busy  atomic.Int32 // calls of Model.pass whose do has not returned
	used  int64        // value of Model.uses at the last of these calls
}

// maxPlans is the maximum number of plans of passes. A plan of a model of 30 layers takes about a megabyte. A scheduler of 8 sessions uses
// about 20.
const maxPlans = 64

// passRun holds the operands of one run.
type passRun struct {
	tokens, positions, places, lengths, table, last []int32
	all                                             []int32 // rows of the pages of the table
	bind                                            []batch.Binding
}

// pass returns the plan of a shape, which stays open until [pass.do] returns. It compiles the plan on first use, and closes the least recently
// used plan if there are too many.
func (m *Model) pass(ctx context.Context, s passShape) (*pass, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.plans[s]
	if p == nil {
		var err error
		if p, err = m.compile(ctx, s); err != nil {
			return nil, err
		}
		m.evict()
		m.plans[s] = p
	}
	m.uses++
	p.used = m.uses
	p.busy.Add(1)
	return p, nil
}

// evict closes the least recently used idle plans until there are fewer than maxPlans. The lock is held.
func (m *Model) evict() {
	for len(m.plans) >= maxPlans {
		var oldest *pass
		for _, p := range m.plans {
			if p.busy.Load() == 0 && (oldest == nil || p.used < oldest.used) {
				oldest = p
			}
		}
		if oldest == nil {
			return
		}
		delete(m.plans, oldest.passShape)
		_ = oldest.plan.Close()
	}
}

// compile compiles the plan of a shape. The lock is held.
func (m *Model) compile(ctx context.Context, s passShape) (*pass, error) {
	p := &pass{recorder: recorder{Batch: batch.New(m.dev), m: m, passShape: s}}
	p.y = p.record()
	var err error
	if p.plan, err = p.Compile(ctx, p.y); err != nil {
		return nil, fmt.Errorf("%s, a pass over %d tokens of %d sequences: %w", m.config.Architecture, s.rows, s.sequences, err)
	}
	p.width = m.config.Vocabulary
	if n := s.result.tokens(p.width); n > 0 {
		p.width = 2 * n
	}
	if s.result == hiddenStates {
		p.width = m.config.Width
	}
	return p, nil
}

// run returns operands for one run, in which unused sequences are inactive.
func (p *pass) run() *passRun {
	r, ok := p.free.Get().(*passRun)
	if !ok {
		n := p.passShape.tokens()
		r = &passRun{tokens: make([]int32, n), positions: make([]int32, n), lengths: make([]int32, p.sequences), last: make([]int32, p.lookups())}
		if k := p.m.cache; k != nil {
			r.places, r.table = make([]int32, n), make([]int32, p.sequences*k.perSequence)
			if !k.floats() {
				r.all = make([]int32, len(r.table)*PageSize)
			}
		}
	}
	clear(r.tokens)
	clear(r.positions)
	clear(r.lengths)
	for i := range r.places {
		r.places[i] = int32(p.m.cache.pages * PageSize) // beyond the cache: the row is not stored
	}
	for i := range r.table {
		r.table[i] = -1
	}
	for i := range r.all {
		r.all[i] = int32(p.m.cache.pages * PageSize)
	}
	clear(r.last)
	return r
}

// set sets the tokens of sequence i. They follow start earlier tokens, which are in the pages.
func (r *passRun) set(p *pass, i int, tokens []int32, start int, pages []int32) {
	first := i * p.rows
	copy(r.tokens[first:], tokens)
	for j := range p.rows {
		r.positions[first+j] = int32(min(start+j, maxContext))
	}
	if p.rows > 1 && len(r.last) > 0 {
		r.last[i] = int32(first + len(tokens) - 1)
	}
	if k := p.m.cache; k != nil {
		// Count rows without a token too, because attention puts the last row at the position of the last key.
		r.lengths[i] = int32(start + p.rows)
		copy(r.table[i*k.perSequence:], pages)
		if r.all != nil {
			for j := range len(pages) * PageSize {
				r.all[i*k.perSequence*PageSize+j] = pages[j/PageSize]*PageSize + int32(j%PageSize)
			}
		}
		for j := range tokens {
			at := start + j
			r.places[first+j] = pages[at/PageSize]*PageSize + int32(at%PageSize)
		}
		return
	}
	r.lengths[i] = int32(len(tokens))
}

// do runs the plan with the operands and writes the result to y. It ends the use of p that [Model.pass] began.
func (p *pass) do(ctx context.Context, r *passRun, y []float32) error {
	defer p.busy.Add(-1)
	r.bind = append(r.bind[:0], batch.BindInput(p.recorder.tokens, r.tokens), batch.BindInput(p.lengths, r.lengths), batch.BindOutput(p.y, y))
	if p.m.usesPositions() {
		r.bind = append(r.bind, batch.BindInput(p.positions, r.positions))
	}
	if p.m.cache != nil {
		r.bind = append(r.bind, batch.BindInput(p.places, r.places))
		if r.all != nil {
			r.bind = append(r.bind, batch.BindInput(p.all, r.all))
		} else {
			r.bind = append(r.bind, batch.BindInput(p.table, r.table))
		}
	}
	if len(r.last) > 0 {
		r.bind = append(r.bind, batch.BindInput(p.last, r.last))
	}
	err := p.plan.Run(ctx, r.bind...)
	clear(r.bind)
	p.free.Put(r)
	return err
}

// usesPositions reports whether the positions are operands.
func (m *Model) usesPositions() bool { return m.arch.rope != noRope || m.weights.positions != nil }
