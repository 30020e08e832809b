package llm

import "slices"

// Sessions that begin with the same tokens share pages. A full page is identified by its tokens and
// the page before it; such a page is known. Unused known pages keep their contents until the cache
// needs them; it reuses the least recently used page first.

// prefix identifies the contents of a full page. It is compared completely, so different prefixes
// are never confused.
type prefix struct {
	parent int64 // id of the prefix that ends before this page; 0 for the first page
	tokens [PageSize]int32
}

// prefixPage is the page of a prefix.
type prefixPage struct {
	id   int64 // never reused
	page int32
}

// prefixes are the full pages of a cache, under its lock.
type prefixes struct {
	pages map[prefix]prefixPage
	of    map[int32]prefix // prefix of each known page
	idle  []int32          // unused known pages, the least recently used first
	last  int64
}

// find returns the page with the given tokens after a prefix, and adds a user to it.
func (k *cache) find(parent int64, tokens []int32) (prefixPage, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.known.pages[prefix{parent, [PageSize]int32(tokens)}]
	if !ok {
		return p, false
	}
	if k.refs[p.page] == 0 {
		i := slices.Index(k.known.idle, p.page)
		k.known.idle = slices.Delete(k.known.idle, i, i+1)
	}
	k.refs[p.page]++
	return p, true
}

// publish makes a full page known, unless another page has the same prefix. It returns the id of
// the prefix.
func (k *cache) publish(parent int64, tokens []int32, page int32) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := prefix{parent, [PageSize]int32(tokens)}
	if p, ok := k.known.pages[key]; ok {
		return p.id
	}
	k.known.last++
	k.known.pages[key] = prefixPage{k.known.last, page}
	k.known.of[page] = key
	return k.known.last
}

// forget makes a page unknown. The lock is held.
func (k *cache) forget(page int32) {
	if key, ok := k.known.of[page]; ok {
		delete(k.known.pages, key)
		delete(k.known.of, page)
	}
}

// claim reports whether a page may be written, because no other session uses it. If so, it makes
// the page unknown.
func (k *cache) claim(page int32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refs[page] > 1 {
		return false
	}
	k.forget(page)
	return true
}

// adopt gives an empty session the known pages with the beginning of tokens. It leaves out the last
// token, because the session has to compute the logits after it.
func (s *Session) adopt(tokens []int32) {
	parent := int64(0)
	for s.done+PageSize < len(tokens) {
		p, ok := s.m.cache.find(parent, tokens[s.done:s.done+PageSize])
		if !ok {
			return
		}
		parent = p.id
		s.pages, s.prefixes, s.done = append(s.pages, p.page), append(s.prefixes, p.id), s.done+PageSize
	}
}

// advance records that n more tokens are in the cache, and makes the pages known that are full now.
func (s *Session) advance(n int) {
	s.done += n
	for i := len(s.prefixes); !s.private && i < s.done/PageSize; i++ {
		parent := int64(0)
		if i > 0 {
			parent = s.prefixes[i-1]
		}
		s.prefixes = append(s.prefixes, s.m.cache.publish(parent, s.tokens[i*PageSize:(i+1)*PageSize], s.pages[i]))
	}
}
