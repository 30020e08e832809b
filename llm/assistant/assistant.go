// Package assistant generates text: it combines a language model with its tokenizer and its chat template.
//
//	a, err := assistant.Open(ctx, dev, "model.gguf", assistant.Options{})
//	if err != nil { ... }
//	defer a.Close()
//	c := a.NewConversation("You are a helpful assistant.")
//	for text, err := range c.Say(ctx, "Why is the sky blue?") {
//		if err != nil { ... }
//		fmt.Print(text)
//	}
//
// [Assistant.Generate] is the general form: a prompt or messages, sampling, strings that end the
// text, a grammar, and the count of tokens. Several goroutines may generate at a time: one pass
// computes the tokens of all of them, and a common beginning of prompts is computed once.
package assistant

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/llm/grammar"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

// ErrNoTemplate is wrapped by errors about messages for a model whose file has no chat template:
// set [Options.Template], or use [Request.Prompt].
var ErrNoTemplate = errors.New("the model has no chat template")

// ErrRequest is wrapped by errors about requests that are empty or contradict themselves.
var ErrRequest = errors.New("invalid request")

// Options has the options of [Open]. The zero value is the default.
type Options struct {
	// Model has the options of [llm.Open]. The cache has room for at least Parallel sessions.
	Model llm.Options
	// Parallel is the number of texts that are generated at once; 0 means 1. Further texts wait.
	Parallel int
	// Draft, if not nil, is a smaller model with the same vocabulary, which guesses DraftTokens
	// tokens at a time, as [llm.Sampling.Draft] says; the texts do not change, except by rounding. A request's own
	// Lookup or Draft takes precedence. The draft model needs a cache for Parallel sessions
	// (llm.Options.Sessions). The caller closes it after the Assistant.
	Draft       *llm.Model
	DraftTokens int
	// Template is the chat template; "" means the template in the file.
	Template string
	// Limits are the limits of the template.
	Limits chat.Limits
}

// Assistant is an open model. Its methods are safe for concurrent use.
type Assistant struct {
	model     *llm.Model
	scheduler *llm.Scheduler
	tokens    *tokenizer.Tokenizer
	template  *chat.Template
	limits    chat.Limits
	name      string
	turn      chan struct{} // holds a value for each text that is being generated
	prefixes  prefixes

	draftScheduler *llm.Scheduler
	drafts         chan *llm.Session // sessions of Options.Draft, one for each parallel text; nil without Draft
	draftTokens    int

	vocabulary func() *grammar.Vocabulary
}

// Open loads a model from a GGUF file. See [llm.Open] for errors; errors of the tokenizer and the
// template wrap an error of package tokenizer or chat.
func Open(ctx context.Context, dev *device.Device, path string, o Options) (*Assistant, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Load(ctx, dev, f, o)
}

// Load is [Open] for an open file. It does not use the file after it returns.
func Load(ctx context.Context, dev *device.Device, f *gguf.File, o Options) (*Assistant, error) {
	if o.Parallel < 0 {
		return nil, fmt.Errorf("assistant: Parallel is %d, expected 1 or more, or 0 for 1: %w", o.Parallel, ErrRequest)
	}
	o.Parallel = max(o.Parallel, 1)
	a := &Assistant{limits: o.Limits, turn: make(chan struct{}, o.Parallel)}
	var err error
	if a.tokens, err = tokenizer.New(f.Metadata()); err != nil {
		return nil, err
	}
	source := o.Template
	if source == "" {
		source, _ = f.Metadata().Text("tokenizer.chat_template")
	}
	if source != "" {
		if a.template, err = chat.Parse(source); err != nil {
			return nil, err
		}
	}
	a.name, _ = f.Metadata().Text("general.name")
	a.vocabulary = sync.OnceValue(a.newVocabulary)
	o.Model.Sessions = max(o.Model.Sessions, o.Parallel)
	if o.Model.Reclaim == nil {
		o.Model.Reclaim = a.prefixes.drop
	}
	if a.model, err = llm.Load(ctx, dev, f, o.Model); err != nil {
		return nil, err
	}
	a.scheduler = a.model.NewScheduler(o.Parallel)
	a.prefixes.most = 2 * o.Parallel
	if o.Draft != nil {
		a.draftScheduler, a.draftTokens = o.Draft.NewScheduler(o.Parallel), o.DraftTokens
		a.drafts = make(chan *llm.Session, o.Parallel)
		for range o.Parallel {
			a.drafts <- a.draftScheduler.NewSession()
		}
	}
	return a, nil
}

// closeDrafts closes the sessions of the draft model that no text uses. They stay in the channel, so
// that a text that begins later does not wait for one.
func (a *Assistant) closeDrafts() {
	for range len(a.drafts) {
		select {
		case s := <-a.drafts:
			_ = s.Close()
			a.drafts <- s
		default: // a text uses the session and will return it
		}
	}
}

// giveDraft returns a session of the draft model after a text.
func (a *Assistant) giveDraft(s *llm.Session) {
	a.drafts <- s
	if a.prefixes.isClosed() {
		a.closeDrafts()
	}
}

// newVocabulary returns the vocabulary for grammars. Control tokens have no text in it.
func (a *Assistant) newVocabulary() *grammar.Vocabulary {
	texts := make([][]byte, a.model.Config().Vocabulary)
	for i := range min(len(texts), a.tokens.Size()) {
		if k := a.tokens.Kind(int32(i)); k == tokenizer.Normal || k == tokenizer.UserDefined || k == tokenizer.Byte {
			texts[i] = a.tokens.Piece(int32(i))
		}
	}
	return grammar.NewVocabulary(texts)
}

// Model returns the model.
func (a *Assistant) Model() *llm.Model { return a.model }

// Tokenizer returns the tokenizer of the model.
func (a *Assistant) Tokenizer() *tokenizer.Tokenizer { return a.tokens }

// Template returns the chat template, or nil if the model has none.
func (a *Assistant) Template() *chat.Template { return a.template }

// Name returns the name of the model in the file, or "".
func (a *Assistant) Name() string { return a.name }

// Close waits for running passes and frees the model. Running generations end with [llm.ErrClosed].
// A second Close does nothing.
func (a *Assistant) Close() error {
	a.prefixes.close()
	a.closeDrafts()
	err := errors.Join(a.scheduler.Close(), a.model.Close())
	if a.draftScheduler != nil {
		err = errors.Join(err, a.draftScheduler.Close())
	}
	return err
}

// Embed returns the embedding of a text, of length 1. See [llm.Model.Embed] for errors.
func (a *Assistant) Embed(ctx context.Context, text string) ([]float32, error) {
	return a.model.Embed(ctx, a.tokens.Encode(text, tokenizer.Options{AddSpecial: true}))
}

// Encode returns the tokens of a request's prompt.
func (a *Assistant) Encode(r *Request) ([]int32, error) {
	switch {
	case r.Tokens != nil && (r.Prompt != "" || r.Chat != nil):
		return nil, fmt.Errorf("assistant: the request has Tokens and Prompt or Chat, expected one of them: %w", ErrRequest)
	case r.Tokens != nil:
		return r.Tokens, nil
	case r.Chat == nil:
		return a.tokens.Encode(r.Prompt, tokenizer.Options{AddSpecial: true}), nil
	case r.Prompt != "":
		return nil, fmt.Errorf("assistant: the request has both Prompt and Chat, expected one of them: %w", ErrRequest)
	case len(r.Chat.Messages) == 0:
		return nil, fmt.Errorf("assistant: no messages: %w", ErrRequest)
	case a.template == nil:
		return nil, fmt.Errorf("assistant: %w", ErrNoTemplate)
	}
	in := *r.Chat
	in.AddGenerationPrompt = true
	s := a.tokens.Special()
	if in.BOS == "" {
		in.BOS = a.tokens.Text(s.BOS)
	}
	if in.EOS == "" {
		in.EOS = a.tokens.Text(s.EOS)
	}
	text, err := a.template.Render(&in, a.limits)
	if err != nil {
		return nil, err
	}
	return a.tokens.Encode(text, tokenizer.Options{AddSpecial: true, ParseSpecial: true}), nil
}
