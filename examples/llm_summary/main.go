// Command llm_summary summarises a text of any length: parts that fit the context of the model, then their
// summaries.
//
//	go run ./examples/llm_summary model.gguf CHANGELOG.md
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

const (
	instruction = "Summarise the text in a few sentences.\n\n"
	answer      = 120 // tokens of a summary
	template    = 100 // tokens of the instruction, and of the text that the chat template adds
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: llm_summary model.gguf file")
	}
	text, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = run(context.Background(), os.Stdout, os.Args[1], string(text))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, model, text string) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := assistant.Open(ctx, dev, model, assistant.Options{})
	if err != nil {
		return err
	}
	defer a.Close()
	room := a.Model().Context() - answer - template
	for {
		parts := split(a.Tokenizer(), text, room)
		var all []string
		for i, part := range parts {
			s, err := summary(ctx, a, part)
			if err != nil {
				return err
			}
			if len(parts) > 1 {
				fmt.Fprintf(w, "part %d of %d: %s\n\n", i+1, len(parts), s)
			}
			all = append(all, s)
		}
		if len(parts) == 1 {
			_, err := fmt.Fprintln(w, all[0])
			return err
		}
		text = strings.Join(all, "\n")
	}
}

// summary returns a summary of a text that fits the context.
func summary(ctx context.Context, a *assistant.Assistant, text string) (string, error) {
	r := a.NewConversation("").Request(instruction + text)
	// Guesses from the text come sooner where the summary quotes it.
	r.Sampling = llm.Sampling{MaxTokens: answer, RepeatPenalty: 1.1, Lookup: 8}
	var b strings.Builder
	for p, err := range a.Generate(ctx, r) {
		if err != nil {
			return "", err
		}
		b.WriteString(p.Text)
	}
	return strings.TrimSpace(b.String()), nil
}

// split cuts a text between lines, in parts of at most so many tokens. A line that is longer is cut itself.
func split(t *tokenizer.Tokenizer, text string, most int) []string {
	var parts []string
	var part []int32
	for line := range strings.Lines(text) {
		ids := t.Encode(line, tokenizer.Options{})
		for len(part)+len(ids) > most {
			n := 0
			if len(part) == 0 {
				n = most
			}
			parts = append(parts, t.Decode(append(part, ids[:n]...), tokenizer.DecodeOptions{}))
			part, ids = nil, ids[n:]
		}
		part = append(part, ids...)
	}
	return append(parts, t.Decode(part, tokenizer.DecodeOptions{}))
}
