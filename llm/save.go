package llm

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// A saved session is, little-endian: the magic, the identity of the model (8 bytes), the number of
// tokens and the number of computed tokens (4 bytes each), the tokens (4 bytes each), and then for
// each page the rows of keys and of values of each layer, as f32.
const stateMagic = "rayoLLM1"

// identity distinguishes models whose sessions are incompatible: it covers the sizes, not the
// weights.
func (m *Model) identity() uint64 {
	c, h := &m.config, fnv.New64a()
	fmt.Fprint(h, c.Architecture, c.Layers, c.Width, c.Heads, c.KVHeads, c.KeyLength, c.ValueLength, c.FeedForward, c.Vocabulary, c.Rope.Base)
	return h.Sum64()
}

// Save writes the tokens of the session, with their keys and values, for [Model.LoadSession].
// Loading it takes less time than computing the tokens again.
func (s *Session) Save(ctx context.Context, w io.Writer) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	out := bufio.NewWriterSize(w, 1<<16)
	head := binary.LittleEndian.AppendUint64([]byte(stateMagic), s.m.identity())
	head = binary.LittleEndian.AppendUint32(head, uint32(len(s.tokens)))
	head = binary.LittleEndian.AppendUint32(head, uint32(s.done))
	for _, t := range s.tokens {
		head = binary.LittleEndian.AppendUint32(head, uint32(t))
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	data := s.m.cache.pageData()
	var raw []byte
	for at := 0; at < s.done; at += PageSize {
		if err := s.m.readPage(ctx, s.pages[at/PageSize], data); err != nil {
			return err
		}
		for _, x := range data {
			raw = raw[:0]
			for _, v := range x[:len(x)/PageSize*min(PageSize, s.done-at)] {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			if _, err := out.Write(raw); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// LoadSession reads a session that [Session.Save] wrote, from this model or from a model with the
// same sizes. With other weights the session's predictions are meaningless.
//
// # Errors
//   - [ErrState] for data that is something else, or of a model of other sizes.
//   - [CapacityError] if there is no room for the tokens.
//   - io.ErrUnexpectedEOF for data that ends too early, and the errors of r and ctx.
func (m *Model) LoadSession(ctx context.Context, r io.Reader) (*Session, error) {
	s := m.NewSession()
	if err := s.load(ctx, r); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) load(ctx context.Context, r io.Reader) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	in := bufio.NewReaderSize(r, 1<<16)
	head := make([]byte, len(stateMagic)+16)
	if err := full(in, head); err != nil {
		return err
	}
	identity := binary.LittleEndian.Uint64(head[len(stateMagic):])
	n, done := int64(binary.LittleEndian.Uint32(head[len(head)-8:])), int64(binary.LittleEndian.Uint32(head[len(head)-4:]))
	switch {
	case string(head[:len(stateMagic)]) != stateMagic:
		return fmt.Errorf("the data begins with %q, expected %q, as Session.Save writes it: %w", head[:len(stateMagic)], stateMagic, ErrState)
	case identity != s.m.identity():
		return fmt.Errorf("the data was saved from a model with other sizes: load it into the model that saved it: %w", ErrState)
	case done > n:
		return fmt.Errorf("the data says that %d tokens are computed, expected at most its number of tokens, %d: %w", done, n, ErrState)
	case n == 0:
		return nil
	case n > int64(s.m.context):
		return &CapacityError{Tokens: int(min(n, math.MaxInt32)), Capacity: s.m.context}
	}
	raw := make([]byte, 4*n)
	if err := full(in, raw); err != nil {
		return err
	}
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	s.private = true
	if err := s.add(tokens, false); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return s.loadPages(ctx, in, int(done))
}

// loadPages reads keys and values of done tokens.
func (s *Session) loadPages(ctx context.Context, in io.Reader, done int) error {
	data := s.m.cache.pageData()
	var raw []byte
	for ; s.done < done; s.done += min(PageSize, done-s.done) {
		for _, x := range data {
			clear(x)
			n := len(x) / PageSize * min(PageSize, done-s.done)
			if cap(raw) < 4*n {
				raw = make([]byte, 4*n)
			}
			if err := full(in, raw[:4*n]); err != nil {
				return err
			}
			for i := range n {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
		}
		if err := s.m.writePage(ctx, s.pages[s.done/PageSize], data); err != nil {
			return err
		}
	}
	return nil
}

// full fills b from r. An early end of r is io.ErrUnexpectedEOF.
func full(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
