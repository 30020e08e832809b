// Command llm_extract has a language model fill in a form: the answer follows a JSON schema, whatever the model
// would rather say.
//
//	go run ./examples/llm_extract model.gguf "Ada Lovelace was born in London in 1815."
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/grammar"
)

const schema = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "maxLength": 40},
		"born": {"type": "integer", "minimum": 0, "maximum": 2100},
		"city": {"type": "string", "maxLength": 40}
	},
	"required": ["name", "born", "city"],
	"additionalProperties": false
}`

// person is the value that the schema describes.
type person struct {
	Name string
	Born int
	City string
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: llm_extract model.gguf text")
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2]); err != nil {
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
	g, err := grammar.FromJSONSchema([]byte(schema))
	if err != nil {
		return err
	}
	r := a.NewConversation("").Request("Write the name, the year of birth and the city of the person as JSON. " + text)
	r.Grammar, r.Sampling = g, llm.Sampling{MaxTokens: 200}
	var answer strings.Builder
	for p, err := range a.Generate(ctx, r) {
		if err != nil {
			return err
		}
		answer.WriteString(p.Text)
	}
	var p person
	if err := json.Unmarshal([]byte(answer.String()), &p); err != nil {
		return fmt.Errorf("the answer was cut off: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s, born %d in %s\n", p.Name, p.Born, p.City)
	return err
}
