// Command llm_conversations talks to several people at once: each line of the input is a name, a colon and a
// message. The answers of all are computed together.
//
//	printf 'ann: What is a dog?\nbob: And a cat?\nann: Do they get along?\n' | go run ./examples/llm_conversations model.gguf
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: llm_conversations model.gguf")
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, os.Args[1], llm.Sampling{Temperature: 0.7, TopP: 0.95, MaxTokens: 200}); err != nil {
		log.Fatal(err)
	}
}

// run answers each line of in. A person's messages are answered one after the other, those of different persons at the
// same time.
func run(ctx context.Context, in io.Reader, out io.Writer, path string, s llm.Sampling) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := assistant.Open(ctx, dev, path, assistant.Options{Parallel: 8, Model: llm.Options{Context: 1024}})
	if err != nil {
		return err
	}
	defer a.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	messages := make(map[string]chan string)
	var people sync.WaitGroup
	var writing sync.Mutex
	for lines := bufio.NewScanner(in); lines.Scan() && ctx.Err() == nil; {
		name, text, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			cancel(fmt.Errorf("%q: expected a name, a colon and a message", lines.Text()))
			break
		}
		if messages[name] == nil {
			inbox := make(chan string, 100)
			messages[name] = inbox
			people.Go(func() {
				c := a.NewConversation("You are a helpful assistant. Answer briefly.")
				c.Sampling = s
				for text := range inbox {
					answer, err := say(ctx, c, text)
					if err != nil {
						cancel(err)
						return
					}
					writing.Lock()
					fmt.Fprintf(out, "to %s: %s\n", name, answer)
					writing.Unlock()
				}
			})
		}
		select {
		case messages[name] <- strings.TrimSpace(text):
		case <-ctx.Done():
		}
	}
	for _, inbox := range messages {
		close(inbox)
	}
	people.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// say returns the whole answer.
func say(ctx context.Context, c *assistant.Conversation, text string) (string, error) {
	var b strings.Builder
	for piece, err := range c.Say(ctx, text) {
		if err != nil {
			return "", err
		}
		b.WriteString(piece)
	}
	return b.String(), nil
}
