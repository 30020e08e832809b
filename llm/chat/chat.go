// Package chat renders the chat templates of language models, and finds tool calls in the answers
// of models.
//
//	t, err := chat.Parse(source) // of the key tokenizer.chat_template of a GGUF file
//	if err != nil { ... }
//	prompt, err := t.Render(&chat.Input{
//		Messages:            []chat.Message{{Role: "user", Content: "Hello"}},
//		AddGenerationPrompt: true,
//	}, chat.Limits{})
//
// Templates are Jinja programs written by the publisher of the model. This package interprets them
// without access to files, the network or Go values, and limits steps, memory and output by
// [Limits]; the Jinja packages for Go do not have such limits. It supports the subset of Jinja that
// models use: for, if, set, macro, call, filter, with, raw, generation, break and continue, the
// usual filters and tests, methods of strings and mappings, namespace, range, raise_exception and
// strftime_now. White space is treated as Hugging Face's transformers does: trim_blocks and
// lstrip_blocks are on.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The errors. The package returns them wrapped, mostly in an [Error].
var (
	ErrSyntax = errors.New("the template is malformed")
	ErrRun    = errors.New("the template failed")
	ErrRaised = errors.New("the template rejects the input") // the template called raise_exception
	ErrLimit  = errors.New("too large")
	ErrInput  = errors.New("the input is not a value of a type that templates support")
)

// Error reports an error and its line in a template.
type Error struct {
	Line int
	Err  error // wraps one of the errors of the package
}

// Error returns the line and the error.
func (e *Error) Error() string {
	return fmt.Sprintf("chat: line %d of the template: %v", e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Message is one message of a conversation.
type Message struct {
	Role       string // system, user, assistant, tool
	Content    string
	Reasoning  string     // the assistant's reasoning; templates see it as reasoning_content
	ToolCalls  []ToolCall // calls of the assistant
	ToolCallID string     // id of the call that a message of a tool answers
	Name       string     // name of the tool
}

// ToolCall is a call of a function that a model requests.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // an object
}

// Tool describes a function that a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema, or empty
}

// Input is the input of a template.
type Input struct {
	Messages            []Message
	Tools               []Tool
	AddGenerationPrompt bool   // the output ends where the assistant's answer begins
	BOS, EOS            string // texts of the tokens; bos_token and eos_token in templates
	// Vars has additional variables, for example enable_thinking. The values have the types that
	// encoding/json produces. They override the variables that the other fields define.
	Vars map[string]any
	Now  time.Time // for strftime_now; zero means the time of the call
}

// Limits are the limits of a template. A field of 0 means the default.
type Limits struct {
	Steps  int // steps of work; default 5 million
	Memory int // bytes of all values that the template creates; default 256 MiB
	Output int // bytes of output; default 16 MiB
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		limit *int
		value int
	}{{&l.Steps, 5_000_000}, {&l.Memory, 256 << 20}, {&l.Output, 16 << 20}} {
		if *f.limit <= 0 {
			*f.limit = f.value
		}
	}
	return l
}

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	source string
	body   []stmt
}

// Parse parses a template. The error is an [Error] that wraps [ErrSyntax], or wraps [ErrLimit] for a
// template that is too long or nested too deeply.
func Parse(source string) (*Template, error) {
	body, err := parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{source, body}, nil
}

// Source returns the text of the template.
func (t *Template) Source() string { return t.source }

// Render returns the output of the template for the input. The error is an [Error] that wraps
// [ErrRaised] with the template's message if the template rejects the input, [ErrLimit] if it
// exceeds a limit, or [ErrRun] for other errors. The error wraps [ErrInput] if Vars, Arguments or
// Parameters contain values that are not JSON.
func (t *Template) Render(in *Input, limits Limits) (string, error) {
	m, err := newMachine(in, limits)
	if err != nil {
		return "", err
	}
	if err := m.run(t.body); err != nil {
		return "", err
	}
	return m.out.String(), nil
}
