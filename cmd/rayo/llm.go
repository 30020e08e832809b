package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf/convert"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/grammar"
	"github.com/rayo-go/rayo/op"
)

// modelFlags are the flags that say how a model is opened.
type modelFlags struct {
	Model   string `arg:"" help:"A GGUF file, or a folder with config.json, a tokenizer and safetensors files."`
	Context int    `placeholder:"N" help:"Maximum number of tokens of a text, including the prompt; by default 4096, or the model's training length if it is shorter."`
	Cache   string `enum:"f32,f16,q8_0" default:"f32" help:"Type of keys and values: f32; f16 for half the memory; q8_0 for little more than a quarter of it, which is slower."`
	Exact   bool   `help:"Keep activations in float32 in products with quantised weights, instead of rounding them to 8 bits: slower."`
}

// draftFlags are the flags of a smaller model that guesses tokens.
type draftFlags struct {
	Draft   string `type:"existingfile" placeholder:"FILE" help:"A GGUF file of a smaller model with the same vocabulary. It guesses tokens, and the model checks several of them in one pass. The answers do not change, except by rounding."`
	Guesses int    `default:"4" help:"Number of tokens that the smaller model guesses at a time, at most 15."`
}

// openDraft opens the smaller model, or returns nil if there is none.
func (f *draftFlags) openDraft(ctx context.Context, dev *device.Device, o llm.Options) (*llm.Model, error) {
	if f.Draft == "" {
		return nil, nil
	}
	if f.Guesses < 1 || f.Guesses > 15 {
		return nil, fmt.Errorf("--guesses is %d: expected 1 to 15", f.Guesses)
	}
	return llm.Open(ctx, dev, f.Draft, o)
}

// open opens the device and the model. Close closes both.
func (f *modelFlags) open(ctx context.Context, parallel int) (*assistant.Assistant, *device.Device, error) {
	a, _, dev, err := f.openWith(ctx, parallel, &draftFlags{})
	return a, dev, err
}

// openWith is open, and also opens the smaller model that guesses tokens, which is nil if there is none.
func (f *modelFlags) openWith(ctx context.Context, parallel int, d *draftFlags) (*assistant.Assistant, *llm.Model, *device.Device, error) {
	dev, err := device.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	o := assistant.Options{Parallel: parallel, Model: llm.Options{Context: f.Context, CacheType: cacheTypes[f.Cache], Exact: f.Exact}}
	path, remove, err := ggufOf(ctx, f.Model)
	if err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	defer remove()
	o.DraftTokens = d.Guesses
	if o.Draft, err = d.openDraft(ctx, dev, llm.Options{Context: f.Context, Sessions: parallel}); err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	a, err := assistant.Open(ctx, dev, path, o)
	if err != nil {
		if o.Draft != nil {
			_ = o.Draft.Close()
		}
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	return a, o.Draft, dev, nil
}

// ggufOf returns the GGUF file of a model. For a folder it writes a temporary file, which the function
// remove deletes.
func ggufOf(ctx context.Context, model string) (path string, remove func(), err error) {
	if info, err := os.Stat(model); err != nil || !info.IsDir() {
		return model, func() {}, nil // opening the file reports if it does not exist
	}
	dir, err := os.MkdirTemp("", "rayo")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "model.gguf")
	if err := convert.Folder(ctx, os.DirFS(model), path, convert.Options{}); err != nil {
		remove()
		return "", nil, fmt.Errorf("%s: %w", model, err)
	}
	return path, remove, nil
}

// cacheTypes are the types of keys and values.
var cacheTypes = map[string]op.DType{"f32": op.F32, "f16": op.F16, "q8_0": op.Q8_0}

// samplingFlags are the flags that say how tokens are chosen.
type samplingFlags struct {
	Tokens      int     `short:"n" default:"0" help:"Maximum number of tokens to generate; 0 to fill the context."`
	Temperature float32 `default:"0.8" help:"Sampling temperature; 0 always takes the most likely token."`
	TopK        int     `default:"40" help:"Sample from this many of the most likely tokens; 0 for all."`
	TopP        float32 `default:"0.95" help:"Sample from the fewest most likely tokens whose total probability reaches this number."`
	MinP        float32 `default:"0.05" help:"Drop tokens less likely than this fraction of the most likely one."`
	Repeat      float32 `default:"1" help:"Factor that makes tokens less likely if they already occurred; 1 for none."`
	Seed        uint64  `placeholder:"N" help:"Seed of the random numbers; 0 for the time."`
}

func (f *samplingFlags) sampling() llm.Sampling {
	seed := f.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	return llm.Sampling{MaxTokens: f.Tokens, Temperature: f.Temperature, TopK: f.TopK, TopP: f.TopP, MinP: f.MinP, RepeatPenalty: f.Repeat, Seed: seed}
}

type runCmd struct {
	modelFlags    `embed:""`
	samplingFlags `embed:""`
	Prompt        string `short:"p" placeholder:"TEXT" help:"Answer this prompt and exit; without it, start a conversation."`
	System        string `placeholder:"TEXT" help:"System message at the start of a conversation."`
	Raw           bool   `help:"Continue the prompt without applying the model's chat template."`
	Schema        string `type:"existingfile" placeholder:"FILE" help:"A file with a JSON schema that the answer follows."`
	Grammar       string `type:"existingfile" placeholder:"FILE" help:"A file with a grammar in GBNF that the answer follows."`
	draftFlags    `embed:""`
	Lookup        int  `default:"0" help:"Number of tokens to guess at a time where the answer repeats the conversation, at most 15; 0 for none. The answer does not change, except by rounding."`
	Quiet         bool `short:"q" help:"Do not print speeds."`
}

func (c *runCmd) Run(a *app) error {
	rules, err := c.rules()
	if err != nil {
		return err
	}
	start := time.Now()
	as, dev, err := c.open(a.ctx, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer as.Close()
	if !c.Quiet {
		fmt.Fprintf(a.err, "%s on %v, %.1f s\n", plain(as.Name()), dev, time.Since(start).Seconds())
	}
	sampling := c.sampling()
	sampling.Lookup = c.Lookup
	if !as.Model().Config().Causal {
		return fmt.Errorf("%s is a model for embeddings: use rayo embed %[1]s", c.Model)
	}
	draft, err := c.openDraft(a.ctx, dev, llm.Options{Context: as.Model().Context()})
	if err != nil {
		return err
	}
	if draft != nil {
		defer draft.Close()
		sampling.Draft, sampling.DraftTokens = draft.NewSession(), c.Guesses
	}
	raw := c.Raw || as.Template() == nil
	if c.Prompt == "" {
		if raw {
			return fmt.Errorf("a conversation needs a model with a chat template; -p PROMPT continues a text")
		}
		return c.converse(a, as, sampling)
	}
	r := assistant.Request{Prompt: c.Prompt, Sampling: sampling, Grammar: rules}
	if !raw {
		conversation := as.NewConversation(c.System)
		r = conversation.Request(c.Prompt)
		r.Sampling, r.Grammar = sampling, rules
	}
	return c.show(a, as.Generate(a.ctx, r))
}

// rules returns the grammar that the answer follows, or nil.
func (c *runCmd) rules() (*grammar.Grammar, error) {
	switch {
	case c.Schema != "" && c.Grammar != "":
		return nil, errors.New("--schema and --grammar exclude each other: give one of them")
	case c.Schema != "":
		b, err := os.ReadFile(c.Schema)
		if err != nil {
			return nil, err
		}
		return grammar.FromJSONSchema(b)
	case c.Grammar != "":
		b, err := os.ReadFile(c.Grammar)
		if err != nil {
			return nil, err
		}
		return grammar.Parse(string(b))
	}
	return nil, nil
}

// show writes a text piece by piece, and the speed.
func (c *runCmd) show(a *app, pieces iter.Seq2[assistant.Piece, error]) error {
	start := time.Now()
	var first time.Time
	var last assistant.Piece
	for p, err := range pieces {
		if err != nil {
			fmt.Fprintln(a.out)
			return err
		}
		if first.IsZero() {
			first = time.Now()
		}
		last = p
		fmt.Fprint(a.out, p.Text)
	}
	fmt.Fprintln(a.out)
	if c.Quiet || last.Usage.Generated < 2 {
		return nil
	}
	u, read, wrote := last.Usage, first.Sub(start).Seconds(), time.Since(first).Seconds()
	fmt.Fprintf(a.err, "%d tokens read (%d kept) in %.2f s, %d generated, %.1f a second\n", u.Prompt, u.Cached, read, u.Generated, float64(u.Generated-1)/wrote)
	return nil
}

// converse reads messages until the input ends. On a terminal, an interrupt ends the running answer, or the
// conversation if no answer is running.
func (c *runCmd) converse(a *app, as *assistant.Assistant, sampling llm.Sampling) error {
	conversation := as.NewConversation(c.System)
	conversation.Sampling = sampling
	next, ctx := lines(), a.ctx
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		next, ctx = edited(), context.WithoutCancel(a.ctx)
	}
	fmt.Fprintln(a.err, `Type a message and Enter; """ begins and ends one of several lines. Ctrl-D ends.`)
	for ctx.Err() == nil {
		text, err := message(next)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := answer(ctx, a.out, conversation, text); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// answer writes an answer piece by piece, until an interrupt.
func answer(ctx context.Context, out io.Writer, c *assistant.Conversation, text string) error {
	inner, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	for piece, err := range c.Say(inner, text) {
		if err != nil && inner.Err() != nil && ctx.Err() == nil {
			break
		}
		if err != nil {
			return err
		}
		fmt.Fprint(out, piece)
	}
	fmt.Fprintln(out)
	return nil
}

// lines returns a function that reads a line of the input.
func lines() func() (string, error) {
	in := bufio.NewReader(os.Stdin)
	return func() (string, error) {
		line, err := in.ReadString('\n')
		if line != "" {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	}
}

// edited is lines for a terminal, with editing and a history. The terminal is in raw mode only while the
// function reads a line.
func edited() func() (string, error) {
	fd := int(os.Stdin.Fd())
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}, "> ")
	return func() (string, error) {
		old, err := term.MakeRaw(fd)
		if err != nil {
			return "", err
		}
		defer func() { _ = term.Restore(fd, old) }()
		return t.ReadLine()
	}
}

// message reads a line, or several lines: the first begins and the last ends with three quotes.
func message(next func() (string, error)) (string, error) {
	const quotes = `"""`
	line, err := next()
	rest, several := strings.CutPrefix(strings.TrimSpace(line), quotes)
	if err != nil || !several {
		return line, err
	}
	lines := []string{rest}
	for {
		if body, ended := strings.CutSuffix(strings.TrimRight(lines[len(lines)-1], " "), quotes); ended {
			lines[len(lines)-1] = body
			return strings.Trim(strings.Join(lines, "\n"), "\n"), nil
		}
		if line, err = next(); err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
}

type embedCmd struct {
	modelFlags `embed:""`
	Texts      []string `arg:"" optional:"" help:"Texts; by default the lines of standard input."`
}

func (c *embedCmd) Run(a *app) error {
	as, dev, err := c.open(a.ctx, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer as.Close()
	e := json.NewEncoder(a.out)
	embed := func(text string) error {
		v, err := as.Embed(a.ctx, text)
		if err != nil {
			return err
		}
		return e.Encode(struct {
			Text      string    `json:"text"`
			Embedding []float32 `json:"embedding"`
		}{text, v})
	}
	for _, text := range c.Texts {
		if err := embed(text); err != nil {
			return err
		}
	}
	if len(c.Texts) > 0 {
		return nil
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := embed(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
