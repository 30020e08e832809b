package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/llm/grammar"
)

// tool is a function that the model may call.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

// toolsText precedes the tools in a system message for a template that does not describe them.
const toolsText = `You can call functions. To call one, answer only with JSON of this form: {"name": "FUNCTION", "parameters": {}}. These are the functions:`

// describeTools adds a description of tools to the system message, or a system message. If the template rejects that, it adds the description to the
// first message.
func describeTools(t *chat.Template, in *chat.Input, tools []tool) error {
	text := toolsText
	for _, one := range tools {
		b, err := json.Marshal(one.Function)
		if err != nil {
			return invalid("tools", err.Error())
		}
		text += "\n" + string(b)
	}
	switch {
	case len(in.Messages) == 0: // there is nothing to answer
		return nil
	case in.Messages[0].Role == "system":
		in.Messages[0].Content += "\n\n" + text
		return nil
	}
	with := *in
	with.Messages = slices.Insert(slices.Clone(in.Messages), 0, chat.Message{Role: "system", Content: text})
	if _, err := t.Render(&with, chat.Limits{}); errors.Is(err, chat.ErrRaised) {
		in.Messages[0].Content = text + "\n\n" + in.Messages[0].Content
		return nil
	}
	*in = with
	return nil
}

// forced returns the tools that the answer must call, one of them: all if tool_choice is "required", and the tool that it names. It
// returns none if the model decides.
func (r *chatRequest) forced() ([]tool, error) {
	choice := string(r.ToolChoice)
	switch choice {
	case "", "null", `"auto"`, `"none"`:
		return nil, nil
	case `"required"`:
		if len(r.Tools) == 0 {
			return nil, invalid("tool_choice", `tool_choice is "required", but the request has no tools`)
		}
		return r.Tools, nil
	}
	var named struct{ Function struct{ Name string } }
	if json.Unmarshal(r.ToolChoice, &named) != nil || named.Function.Name == "" {
		return nil, invalid("tool_choice", fmt.Sprintf("tool_choice is %.80s, expected \"auto\", \"none\", \"required\" or the function of a tool", choice))
	}
	for i := range r.Tools {
		if r.Tools[i].Function.Name == named.Function.Name {
			return r.Tools[i : i+1], nil
		}
	}
	return nil, invalid("tool_choice", fmt.Sprintf("tool_choice names the function %.80q, expected the name of one of the %d tools", named.Function.Name, len(r.Tools)))
}

// callSchema is the JSON schema of a call. The order of the fields is the order in an answer.
type callSchema struct {
	Type       string `json:"type"`
	Properties struct {
		Name struct {
			Const string `json:"const"`
		} `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"properties"`
	Required             []string `json:"required"`
	AdditionalProperties bool     `json:"additionalProperties"`
}

// callGrammar returns the grammar of answers that are a call of one of the tools, in JSON.
func callGrammar(tools []tool) (*grammar.Grammar, error) {
	var root struct {
		AnyOf       []callSchema               `json:"anyOf"`
		Defs        map[string]json.RawMessage `json:"$defs,omitempty"`
		Definitions map[string]json.RawMessage `json:"definitions,omitempty"`
	}
	for _, t := range tools {
		c := callSchema{Type: "object", Required: []string{"name", "arguments"}}
		c.Properties.Name.Const = t.Function.Name
		parameters := map[string]json.RawMessage{}
		if p := t.Function.Parameters; len(p) > 0 && json.Unmarshal(p, &parameters) != nil {
			return nil, invalid("tools", fmt.Sprintf("the parameters of the tool %.80q are %.80s, expected a JSON schema of an object", t.Function.Name, p))
		}
		if len(parameters) == 0 {
			parameters = map[string]json.RawMessage{"type": json.RawMessage(`"object"`)}
		}
		for key, all := range map[string]*map[string]json.RawMessage{"$defs": &root.Defs, "definitions": &root.Definitions} {
			if err := hoist(all, parameters, key); err != nil {
				return nil, err
			}
		}
		c.Properties.Arguments, _ = json.Marshal(parameters)
		root.AnyOf = append(root.AnyOf, c)
	}
	schema, err := json.Marshal(root)
	if err != nil {
		return nil, invalid("tools", err.Error())
	}
	g, err := grammar.FromJSONSchema(schema)
	if err != nil {
		return nil, invalid("tools", err.Error())
	}
	return g, nil
}

// hoist moves definitions from a schema to all, because references begin at the root.
func hoist(all *map[string]json.RawMessage, schema map[string]json.RawMessage, key string) error {
	var defs map[string]json.RawMessage
	if json.Unmarshal(schema[key], &defs) != nil {
		return nil // there are none, or FromJSONSchema reports the error
	}
	delete(schema, key)
	if *all == nil {
		*all = map[string]json.RawMessage{}
	}
	for name, d := range defs {
		if old, ok := (*all)[name]; ok && !bytes.Equal(old, d) {
			return invalid("tools", fmt.Sprintf("two tools have different definitions of %.80q, expected one: choose another name", name))
		}
		(*all)[name] = d
	}
	return nil
}

// force restricts the answer to a call of the tools.
func (f *form) force(tools []tool) error {
	if f.request.Grammar != nil {
		return invalid("tool_choice", "tool_choice requires a call, and response_format or grammar another answer: leave one of them out")
	}
	g, err := callGrammar(tools)
	f.request.Grammar = g
	return err
}
