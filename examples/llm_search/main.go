// Command llm_search finds the paragraphs of Markdown files that are nearest in meaning to a question:
//
//	go run ./examples/llm_search minilm.gguf docs "how do I avoid copies?"
//
// The model is an embedder: rayo gguf convert makes the file of all-MiniLM-L6-v2, for example.
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: llm_search model.gguf folder question")
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.DirFS(os.Args[2]), os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

const (
	tokens = 256 // of a paragraph at most
	best   = 3
)

func run(ctx context.Context, w io.Writer, model string, folder fs.FS, question string) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := assistant.Open(ctx, dev, model, assistant.Options{Model: llm.Options{Context: tokens}})
	if err != nil {
		return err
	}
	defer a.Close()
	texts, err := paragraphs(folder)
	if err != nil {
		return err
	}
	var rows []float32
	for _, t := range append(slices.Clone(texts), question) {
		ids, err := a.Encode(&assistant.Request{Prompt: t})
		if err != nil {
			return err
		}
		v, err := a.Model().Embed(ctx, ids[:min(len(ids), a.Model().Context())])
		if err != nil {
			return err
		}
		rows = append(rows, v...)
	}
	return search(ctx, w, dev, texts, rows)
}

// search prints the texts whose rows are nearest to the last row. Rows have length 1, so that a
// product is the cosine of the angle.
func search(ctx context.Context, w io.Writer, dev *device.Device, texts []string, rows []float32) error {
	width := len(rows) / (len(texts) + 1)
	b := batch.New(dev)
	table := b.Upload(rows[:len(texts)*width], len(texts), width)
	question := b.Upload(rows[len(texts)*width:], width)
	cosines, places := b.TopK(b.MatVec(table, question), min(best, len(texts)))
	if err := b.Execute(ctx); err != nil {
		return err
	}
	values, err := batch.Read[float32](ctx, b, cosines)
	if err != nil {
		return err
	}
	at, err := batch.Read[int32](ctx, b, places)
	if err != nil {
		return err
	}
	for i, v := range values {
		fmt.Fprintf(w, "%.2f  %s\n\n", v, texts[at[i]])
	}
	return nil
}

// paragraphs returns those of all Markdown files.
func paragraphs(folder fs.FS) (list []string, err error) {
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		for _, p := range strings.Split(string(text), "\n\n") {
			if p = strings.TrimSpace(p); len(p) > 80 && !strings.HasPrefix(p, "|") {
				list = append(list, p)
			}
		}
		return err
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there are no Markdown files with paragraphs")
	}
	return list, err
}
