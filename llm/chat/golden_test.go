package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// goldenCase is a template and its output by Jinja: see testdata/gen_golden.py.
type goldenCase struct {
	Template     string  `json:"template"`
	Conversation string  `json:"conversation"`
	Output       *string `json:"output"`
	Error        string  `json:"error"`
}

type goldenFile struct {
	Data          map[string]json.RawMessage `json:"data"`
	Snippets      []goldenCase               `json:"snippets"`
	Templates     []goldenCase               `json:"templates"`
	Conversations []struct {
		Name     string                       `json:"name"`
		Messages []map[string]json.RawMessage `json:"messages"`
		Tools    []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		} `json:"tools"`
		Prompt   bool  `json:"add_generation_prompt"`
		Thinking *bool `json:"enable_thinking"`
	} `json:"conversations"`
}

func readGolden(t testing.TB) (g goldenFile) {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Snippets) < 40 || len(g.Templates) < 40 {
		t.Fatalf("%d snippets and %d templates", len(g.Snippets), len(g.Templates))
	}
	return g
}

// now is the time in gen_golden.py.
var now = time.Date(2026, 3, 9, 14, 5, 7, 0, time.UTC)

func render(source string, in *Input) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(in, Limits{})
}

func (c goldenCase) check(t *testing.T, source string, in *Input) {
	t.Helper()
	got, err := render(source, in)
	var e *Error
	switch {
	case c.Output == nil && (!errors.As(err, &e) || e.Line < 1):
		t.Errorf("%s %s: output %q and error %v, expected an error of the kind %s with a line", c.Template, c.Conversation, got, err, c.Error)
	case c.Output == nil && (c.Error == "TemplateSyntaxError" || c.Error == "TemplateAssertionError") != errors.Is(err, ErrSyntax):
		t.Errorf("%s: error %v, expected the kind %s", c.Template, err, c.Error)
	case c.Output != nil && err != nil:
		t.Errorf("%s %s: %v", c.Template, c.Conversation, err)
	case c.Output != nil && got != *c.Output:
		t.Errorf("%s %s:\n got %q\nwant %q", c.Template, c.Conversation, got, *c.Output)
	}
}

// TestSnippets compares the output of short templates with Jinja.
func TestSnippets(t *testing.T) {
	g := readGolden(t)
	vars := map[string]any{}
	for k, v := range g.Data {
		vars[k] = v
	}
	for _, c := range g.Snippets {
		c.check(t, c.Template, &Input{Vars: vars, Now: now})
	}
}

// TestTemplates compares the output of templates in the style of models with Jinja.
func TestTemplates(t *testing.T) {
	g := readGolden(t)
	inputs := map[string]*Input{}
	for _, c := range g.Conversations {
		in := &Input{AddGenerationPrompt: c.Prompt, BOS: "<bos>", EOS: "<eos>", Now: now, Vars: map[string]any{}}
		if c.Thinking != nil {
			in.Vars["enable_thinking"] = *c.Thinking
		}
		for _, tool := range c.Tools {
			in.Tools = append(in.Tools, Tool(tool.Function))
		}
		for _, m := range c.Messages {
			in.Messages = append(in.Messages, goldenMessage(t, m))
		}
		inputs[c.Name] = in
	}
	for _, c := range g.Templates {
		source, err := os.ReadFile(filepath.Join("testdata", c.Template))
		if err != nil {
			t.Fatal(err)
		}
		c.check(t, string(source), inputs[c.Conversation])
	}
}

func goldenMessage(t *testing.T, fields map[string]json.RawMessage) (m Message) {
	t.Helper()
	var calls []struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	for key, to := range map[string]any{"role": &m.Role, "content": &m.Content, "tool_call_id": &m.ToolCallID, "name": &m.Name, "tool_calls": &calls} {
		if raw, ok := fields[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return m
}
