package tokenizer

import "encoding/binary"

// encoder has the memory of one call.
type encoder struct {
	ids   []int32
	text  []byte
	syms  []symbol
	heap  []uint64
	cache wordCache
}

// release drops references to the caller's data, and large buffers of long words.
func (e *encoder) release() {
	e.ids = nil
	if cap(e.syms) > 1<<14 || cap(e.text) > 1<<18 {
		e.text, e.syms, e.heap = nil, nil, nil
	}
}

// symbol is a part of a word: a token, or a character without a token. The symbols of a word form a
// list: next is the next symbol, 0 at the end, and prev the previous one.
type symbol struct {
	start, end int32 // range in the word; end is 0 after the symbol was merged into its neighbour
	prev, next int32
	id         int32
	prio       uint32 // priority of merging with next, or noMerge
	merged     int32  // id of the merged symbol
}

const noMerge = 1<<32 - 1

// merger decides which neighbours merge.
type merger interface {
	// pair returns the priority of merging two neighbours (the lowest merges first) and the id of
	// the result. The priority is noMerge if they do not merge.
	pair(word []byte, left, right *symbol) (prio uint32, id int32)
}

// merge merges the symbols of a word until no neighbours merge: always the pair with the lowest
// priority, and of pairs with equal priority the leftmost. The list from symbol 0 on has the
// remaining symbols.
func (e *encoder) merge(m merger, word []byte) {
	e.heap = e.heap[:0]
	s := e.syms
	for i := range s {
		s[i].prev, s[i].next = int32(i)-1, int32(i)+1
	}
	if len(s) == 0 {
		return
	}
	s[len(s)-1].next = 0
	for i := range s {
		e.score(m, word, int32(i), false)
	}
	for i := len(e.heap)/2 - 1; i >= 0; i-- {
		e.sink(i)
	}
	for len(e.heap) > 0 {
		top := e.pop()
		i := int32(uint32(top))
		l := &s[i]
		if l.end == 0 || l.prio != uint32(top>>32) {
			continue // one of the two has been merged with another symbol
		}
		r := &s[l.next]
		l.end, l.id, l.next = r.end, l.merged, r.next
		r.end = 0
		if l.next != 0 {
			s[l.next].prev = i
		}
		e.score(m, word, i, true)
		if l.prev >= 0 {
			e.score(m, word, l.prev, true)
		}
	}
}

// score sets the priority of merging symbol i with the next.
func (e *encoder) score(m merger, word []byte, i int32, heap bool) {
	l := &e.syms[i]
	l.prio = noMerge
	if l.next == 0 {
		return
	}
	l.prio, l.merged = m.pair(word, l, &e.syms[l.next])
	if l.prio == noMerge {
		return
	}
	e.heap = append(e.heap, uint64(l.prio)<<32|uint64(i))
	if heap {
		e.rise(len(e.heap) - 1)
	}
}

func (e *encoder) rise(i int) {
	h := e.heap
	for x := h[i]; i > 0; {
		up := (i - 1) / 2
		if h[up] <= x {
			break
		}
		h[i], h[up] = h[up], x
		i = up
	}
}

func (e *encoder) sink(i int) {
	h := e.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func (e *encoder) pop() uint64 {
	h := e.heap
	top := h[0]
	h[0] = h[len(h)-1]
	e.heap = h[:len(h)-1]
	e.sink(0)
	return top
}

// maxWord is the maximum length of a word. Longer words are cut, so that positions fit into an int32.
const maxWord = 1 << 28

// wordCache has the ids of short words, because most words of a text are repeated.
type wordCache [1 << cacheBits]cachedWord

const cacheBits = 13

type cachedWord struct {
	key [24]byte // the word and its length
	ids [5]int32
	n   int32 // number of ids; 0 means that the slot is empty
}

// place returns the slot of a word and whether it contains the word. The slot is nil for a word
// that is too long.
func place[T string | []byte](c *wordCache, word T) (w *cachedWord, key [24]byte, hit bool) {
	if len(word) >= len(key) {
		return nil, key, false
	}
	copy(key[:], word)
	key[len(key)-1] = byte(len(word))
	h := binary.LittleEndian.Uint64(key[:])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(key[8:])*0xC2B2AE3D27D4EB4F ^ binary.LittleEndian.Uint64(key[16:])*0x165667B19E3779F9
	h *= 0xD6E8FEB86659FD93
	w = &c[h>>(64-cacheBits)]
	return w, key, w.n > 0 && w.key == key
}

func (w *cachedWord) store(key [24]byte, ids []int32) {
	if len(ids) == 0 || len(ids) > len(w.ids) {
		return
	}
	w.key, w.n = key, int32(copy(w.ids[:], ids))
}

// cached appends the ids of a word, from the cache or by encode.
func cached[T string | []byte](e *encoder, word T, encode func(*encoder, T)) {
	w, key, hit := place(&e.cache, word)
	if hit {
		e.ids = append(e.ids, w.ids[:w.n]...)
		return
	}
	n := len(e.ids)
	for len(word) > maxWord {
		cut := maxWord
		for word[cut]&0xC0 == 0x80 && cut > maxWord-4 {
			cut--
		}
		encode(e, word[:cut])
		word = word[cut:]
	}
	encode(e, word)
	if w != nil {
		w.store(key, e.ids[n:])
	}
}
