package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/llm/grammar"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

func open(t testing.TB, o assistant.Options) *assistant.Assistant {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	if o.Model.Context == 0 {
		o.Model.Context = 256
	}
	a, err := assistant.Load(context.Background(), dev, tinymodel.File(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return a
}

// all returns the whole text and the last piece.
func all(t testing.TB, a *assistant.Assistant, r assistant.Request) (string, assistant.Piece) {
	t.Helper()
	var text strings.Builder
	var last assistant.Piece
	for p, err := range a.Generate(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(p.Text)
		last = p
	}
	return text.String(), last
}

// greedy returns options that generate exactly n tokens: they exclude the end token.
func greedy(n int) llm.Sampling {
	return llm.Sampling{MaxTokens: n, LogitBias: map[int32]float32{tinymodel.End: -1e9}}
}

// TestGenerate compares with the tokens of a session.
func TestGenerate(t *testing.T) {
	a := open(t, assistant.Options{})
	s := a.Model().NewSession()
	want := ""
	for tok, err := range s.Generate(t.Context(), a.Tokenizer().Encode("Once upon", tokenizer.Options{}), greedy(20)) {
		if err != nil {
			t.Fatal(err)
		}
		want += string(a.Tokenizer().Piece(tok.ID))
	}
	s.Close()
	for range 2 { // the second time the prompt is in the cache
		text, last := all(t, a, assistant.Request{Prompt: "Once upon", Sampling: greedy(20)})
		if text != want || last.Finish != assistant.Truncated || last.Usage.Prompt != 9 || last.Usage.Generated != 20 {
			t.Errorf("%q, want %q; %+v", text, want, last)
		}
	}
	if _, last := all(t, a, assistant.Request{Prompt: "Once upon", Sampling: greedy(1)}); last.Usage.Cached != 8 {
		t.Errorf("%+v, want 8 cached tokens", last.Usage)
	}
	// A string of Stop ends the text before it, wherever tokens begin.
	for i := range len(want) - 3 {
		stop := want[i : i+3]
		before, _, _ := strings.Cut(want, stop)
		text, last := all(t, a, assistant.Request{Prompt: "Once upon", Sampling: greedy(20), Stop: []string{"not there", stop}})
		if text != before || last.Finish != assistant.Stopped {
			t.Errorf("stop %q: %q, want %q; %v", stop, text, before, last.Finish)
		}
	}
	// Text that is only the beginning of a stop string is returned at the end.
	if text, _ := all(t, a, assistant.Request{Prompt: "Once upon", Sampling: greedy(20), Stop: []string{want[17:] + "?"}}); text != want {
		t.Errorf("%q, want %q", text, want)
	}
	// A full context ends the text.
	if text, last := all(t, a, assistant.Request{Prompt: "Once upon", Sampling: greedy(0)}); len(text) < a.Model().Context()-10 || last.Finish != assistant.Truncated {
		t.Errorf("%d bytes, %v", len(text), last.Finish)
	}
}

// TestGrammar checks that the grammar makes a random model write JSON that fits a schema.
func TestGrammar(t *testing.T) {
	a := open(t, assistant.Options{})
	g, err := grammar.FromJSONSchema([]byte(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"], "additionalProperties": false}`))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		text, last := all(t, a, assistant.Request{Prompt: "A person: ", Sampling: llm.Sampling{Temperature: 1, Seed: seed + 1}, Grammar: g})
		var v struct {
			Name *string
			Age  *int
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || v.Name == nil || v.Age == nil || *v.Age < 0 || *v.Age > 150 || last.Finish != assistant.Stopped {
			t.Errorf("%q: %v, %v", text, err, last.Finish)
		}
	}
}

// TestConversation checks that a conversation keeps its messages, and computes only new tokens.
func TestConversation(t *testing.T) {
	a := open(t, assistant.Options{})
	c := a.NewConversation("Be kind.")
	c.Sampling = greedy(6)
	for i := range 3 {
		answer := ""
		for text, err := range c.Say(t.Context(), fmt.Sprint("Question ", i)) {
			if err != nil {
				t.Fatal(err)
			}
			answer += text
		}
		if last := c.Messages[len(c.Messages)-1]; len(answer) != 6 || last.Content != answer || last.Role != "assistant" || len(c.Messages) != 3+2*i {
			t.Errorf("%q, %+v", answer, c.Messages)
		}
	}
	prompt, err := a.Encode(&assistant.Request{Chat: &chat.Input{Messages: c.Messages}})
	if err != nil {
		t.Fatal(err)
	}
	if _, last := all(t, a, c.Request("More")); last.Usage.Cached < len(prompt)-30 {
		t.Errorf("%+v, of a conversation of %d tokens", last.Usage, len(prompt))
	}
}

// TestTogether generates several texts at once: each equals the text generated alone.
func TestTogether(t *testing.T) {
	a := open(t, assistant.Options{Parallel: 4})
	alone := make([]string, 12)
	for i := range alone {
		alone[i], _ = all(t, a, assistant.Request{Prompt: fmt.Sprint("Text ", i), Sampling: greedy(10)})
	}
	var wg sync.WaitGroup
	for i := range alone {
		wg.Go(func() {
			text := ""
			for p, err := range a.Generate(context.Background(), assistant.Request{Prompt: fmt.Sprint("Text ", i), Sampling: greedy(10)}) {
				if err != nil {
					t.Error(err)
				}
				text += p.Text
			}
			if text != alone[i] {
				t.Errorf("text %d: %q, alone %q", i, text, alone[i])
			}
		})
	}
	wg.Wait()
}

func TestMistakes(t *testing.T) {
	a := open(t, assistant.Options{})
	for name, c := range map[string]struct {
		r    assistant.Request
		want error
	}{
		"nothing":     {assistant.Request{}, assistant.ErrRequest},
		"both":        {assistant.Request{Prompt: "x", Chat: &chat.Input{Messages: []chat.Message{{Role: "user"}}}}, assistant.ErrRequest},
		"both kinds":  {assistant.Request{Prompt: "x", Tokens: []int32{1}}, assistant.ErrRequest},
		"no tokens":   {assistant.Request{Tokens: []int32{}}, assistant.ErrRequest},
		"wrong token": {assistant.Request{Tokens: []int32{1, 1 << 20}}, llm.ErrToken},
		"below 0":     {assistant.Request{Tokens: []int32{1, -1}}, llm.ErrToken},
		"no messages": {assistant.Request{Chat: &chat.Input{}}, assistant.ErrRequest},
		"role":        {assistant.Request{Chat: &chat.Input{Messages: []chat.Message{{Role: "nobody"}}}}, chat.ErrRaised},
		"sampling":    {assistant.Request{Prompt: "x", Sampling: llm.Sampling{Temperature: -1}}, llm.ErrSampling},
	} {
		n := 0
		for p, err := range a.Generate(t.Context(), c.r) {
			if n++; !errors.Is(err, c.want) || p.Text != "" {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d pieces", name, n)
		}
	}
	var full *llm.CapacityError
	for _, err := range a.Generate(t.Context(), assistant.Request{Prompt: strings.Repeat("x", 300)}) {
		if !errors.As(err, &full) {
			t.Errorf("long prompt: %v", err)
		}
	}
	// Generation stops within a token when the context is cancelled or the caller leaves the loop.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []error
	for _, err := range a.Generate(ctx, assistant.Request{Prompt: "x", Sampling: greedy(0)}) {
		got = append(got, err)
		cancel()
	}
	if len(got) != 2 || !errors.Is(got[1], context.Canceled) {
		t.Errorf("cancelled: %v", got)
	}
	for range a.Generate(t.Context(), assistant.Request{Prompt: "x", Sampling: greedy(0)}) {
		break
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range a.Generate(t.Context(), assistant.Request{Prompt: "x"}) {
		if !errors.Is(err, llm.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
	if _, err := assistant.Load(t.Context(), a.Model().Device(), tinymodel.File(t), assistant.Options{Parallel: -1}); !errors.Is(err, assistant.ErrRequest) {
		t.Errorf("Parallel -1: %v", err)
	}
	if _, err := assistant.Load(t.Context(), a.Model().Device(), tinymodel.File(t), assistant.Options{Template: "{% for %}"}); !errors.Is(err, chat.ErrSyntax) {
		t.Errorf("template: %v", err)
	}
}

// TestClosedWithDraft begins texts after Close. They must not wait for a session of the draft model.
func TestClosedWithDraft(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	draft, err := llm.Load(t.Context(), dev, tinymodel.File(t), llm.Options{Context: 256, Sessions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer draft.Close()
	a, err := assistant.Load(t.Context(), dev, tinymodel.File(t), assistant.Options{Parallel: 2, Draft: draft, Model: llm.Options{Context: 256}})
	if err != nil {
		t.Fatal(err)
	}
	r := assistant.Request{Prompt: "once", Sampling: llm.Sampling{MaxTokens: 8}}
	for range a.Generate(t.Context(), r) {
		if err := a.Close(); err != nil { // while a text uses one of the sessions
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil { // while no text uses one
		t.Fatal(err)
	}
	for range 3 {
		last := error(nil)
		for _, err := range a.Generate(t.Context(), r) {
			last = err
		}
		if !errors.Is(last, llm.ErrClosed) {
			t.Errorf("%v after Close, want ErrClosed", last)
		}
	}
}
