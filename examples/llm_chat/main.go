// Command llm_chat talks to a language model: go run ./examples/llm_chat model.gguf
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: llm_chat model.gguf")
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, os.Args[1], llm.Sampling{Temperature: 0.7, TopP: 0.95}); err != nil {
		log.Fatal(err)
	}
}

// run answers each line of in.
func run(ctx context.Context, in io.Reader, out io.Writer, path string, s llm.Sampling) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := assistant.Open(ctx, dev, path, assistant.Options{})
	if err != nil {
		return err
	}
	defer a.Close()
	c := a.NewConversation("You are a helpful assistant. Answer briefly.")
	c.Sampling = s
	for lines := bufio.NewScanner(in); lines.Scan(); fmt.Fprintln(out) {
		for text, err := range c.Say(ctx, lines.Text()) {
			if err != nil {
				return err
			}
			fmt.Fprint(out, text)
		}
	}
	return nil
}
