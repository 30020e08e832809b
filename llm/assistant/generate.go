package assistant

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/llm/grammar"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

// Request has the prompt and the options of a generation.
type Request struct {
	Prompt string      // the beginning of the text; or Tokens, or Chat
	Tokens []int32     // the beginning of the text as tokens, which are used as they are
	Chat   *chat.Input // messages for the chat template, whose output must end where the assistant's answer begins

	// Sampling has the options for choosing tokens, and their maximum number. Its Mask is applied
	// before the grammar.
	Sampling llm.Sampling
	// Stop has strings that end the text. They are not part of it.
	Stop []string
	// Grammar, if not nil, restricts the text to the grammar.
	Grammar *grammar.Grammar
}

// Finish is the reason why a text ended.
type Finish string

// The reasons. The values are the same as in OpenAI's interface.
const (
	Stopped   Finish = "stop"   // the model ended the text, a string of Stop occurred, or the grammar is complete
	Truncated Finish = "length" // MaxTokens was reached, or the context is full
)

// Usage counts tokens.
type Usage struct {
	Prompt    int // tokens of the prompt
	Cached    int // tokens of the prompt that an earlier request has computed
	Generated int
	// Guessed is the number of tokens that a draft model or a lookup guessed, and Confirmed the
	// number of correct guesses.
	Guessed, Confirmed int
}

// Piece is a part of a generated text.
type Piece struct {
	Text   string      // whole characters; may be empty
	Tokens []llm.Token // tokens chosen since the last piece; the text of the last token may be in the next piece
	Finish Finish      // set in the last piece
	Usage  Usage       // so far
}

// Generate returns the text that follows a prompt, piece by piece. The last piece has Finish set. An error comes with
// the zero Piece and ends the sequence. When ctx is cancelled, the sequence ends within one token.
//
// # Errors
//   - [ErrRequest], [ErrNoTemplate] and the errors of package chat for an invalid request.
//   - [llm.CapacityError] for a prompt that is longer than the context.
//   - the errors of [llm.Session.Generate].
//   - grammar errors if no token fits the grammar.
func (a *Assistant) Generate(ctx context.Context, r Request) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		prompt, err := a.Encode(&r)
		if err != nil {
			yield(Piece{}, err)
			return
		}
		select {
		case a.turn <- struct{}{}:
		case <-ctx.Done():
			yield(Piece{}, ctx.Err())
			return
		}
		defer func() { <-a.turn }()
		g := &generation{a: a, r: &r, stream: a.tokens.Stream(tokenizer.DecodeOptions{Continue: true})}
		if err := g.run(ctx, prompt, yield); err != nil {
			yield(Piece{}, err)
		}
	}
}

// generation is a call of Generate.
type generation struct {
	a       *Assistant
	r       *Request
	stream  *tokenizer.Stream
	pending string // text that may be the start of a string of Stop
	usage   Usage
	matcher *grammar.Matcher
	matched int // number of generated tokens that the matcher has accepted
}

// run yields all pieces. It returns nil when the caller has left the loop.
func (g *generation) run(ctx context.Context, prompt []int32, yield func(Piece, error) bool) error {
	s, cached, err := g.a.prefixes.session(g.a.scheduler, prompt)
	if err != nil {
		return err
	}
	defer func() { g.a.prefixes.keep(s) }()
	g.usage = Usage{Prompt: len(prompt), Cached: cached}
	o := g.r.Sampling
	o.Stop = append(slices.Clone(o.Stop), g.a.tokens.EndTokens()...)
	if g.r.Grammar != nil {
		g.matcher = g.r.Grammar.Matcher(g.a.vocabulary())
		o.Mask, o.Lookup = g.mask, 0
	}
	if o.Draft == nil && o.Lookup == 0 && g.a.drafts != nil {
		o.Draft, o.DraftTokens = <-g.a.drafts, g.a.draftTokens // there is one for each parallel text
		defer func() { g.a.giveDraft(o.Draft) }()
	}
	for t, err := range s.Generate(ctx, prompt[cached:], o) {
		if err != nil {
			var full *llm.CapacityError
			if errors.As(err, &full) && g.usage.Generated > 0 {
				break // the context is full
			}
			return err
		}
		g.usage.Generated++
		g.usage.Guessed, g.usage.Confirmed = s.Guesses()
		p := Piece{Tokens: []llm.Token{t}}
		ended := t.Stop
		if !t.Stop {
			p.Text, ended = g.text(g.stream.Next(t.ID))
		}
		if ended {
			return g.finish(p, Stopped, yield)
		}
		p.Usage = g.usage
		if !yield(p, nil) {
			return nil
		}
	}
	return g.finish(Piece{}, Truncated, yield)
}

// finish yields the last piece. It leaves out the beginning of an incomplete character.
func (g *generation) finish(p Piece, why Finish, yield func(Piece, error) bool) error {
	if len(p.Tokens) == 0 || p.Tokens[0].Stop { // no string of Stop has occurred
		p.Text += g.pending
	}
	p.Finish, p.Usage = why, g.usage
	yield(p, nil)
	return nil
}

// text appends new text. It returns the part that is certain to be in the result, and whether a
// string of Stop ends the result there.
func (g *generation) text(new string) (string, bool) {
	g.pending += new
	first := -1
	for _, stop := range g.r.Stop {
		if i := strings.Index(g.pending, stop); stop != "" && i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		text := g.pending[:first]
		g.pending = ""
		return text, true
	}
	held := 0
	for _, stop := range g.r.Stop {
		for n := min(len(stop)-1, len(g.pending)); n > held; n-- {
			if strings.HasSuffix(g.pending, stop[:n]) {
				held = n
				break
			}
		}
	}
	text := g.pending[:len(g.pending)-held]
	g.pending = g.pending[len(text):]
	return text, false
}

// mask allows the tokens that the grammar accepts and, if the text may end here, the tokens that end it.
func (g *generation) mask(generated []int32, logits []float32) error {
	if f := g.r.Sampling.Mask; f != nil {
		if err := f(generated, logits); err != nil {
			return err
		}
	}
	for ; g.matched < len(generated); g.matched++ {
		if err := g.matcher.Accept(generated[g.matched]); err != nil {
			return err
		}
	}
	allowed, err := g.matcher.Allowed()
	if err != nil {
		return err
	}
	ends := map[int32]bool{}
	if g.matcher.Done() {
		for _, id := range slices.Concat(g.a.model.EndTokens(), g.a.tokens.EndTokens()) {
			ends[id] = true
		}
	}
	for i := range logits {
		if !allowed.Has(int32(i)) && !ends[int32(i)] {
			logits[i] = float32(math.Inf(-1))
		}
	}
	return nil
}
