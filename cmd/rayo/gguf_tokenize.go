package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/llm/tokenizer"
)

type ggufTokenizeCmd struct {
	File    string `arg:"" help:"A GGUF file with a vocabulary."`
	Text    string `arg:"" help:"The text."`
	Special bool   `help:"Add the tokens before and after a text, and encode the texts of control tokens, such as <|im_start|>, as these tokens."`
	IDs     bool   `name:"ids" help:"Write only the ids, in one line."`
}

func (c *ggufTokenizeCmd) Run(a *app) error {
	f, err := openModel(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := tokenizer.New(f.Metadata())
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	ids := t.Encode(c.Text, tokenizer.Options{AddSpecial: c.Special, ParseSpecial: c.Special})
	if c.IDs {
		_, err := fmt.Fprintln(a.out, strings.Trim(fmt.Sprint(ids), "[]"))
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, id := range ids {
		fmt.Fprintf(w, "%d\t  %q\n", id, t.Piece(id))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%d tokens\n", len(ids))
	return err
}
