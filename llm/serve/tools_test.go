package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/serve"
)

// TestForcedCalls checks that an answer is a call of a tool, with arguments that follow its schema, where the request demands one.
func TestForcedCalls(t *testing.T) {
	url := start(t, 1, serve.Options{}) + "/v1/chat/completions"
	const tools = `[
		{"type": "function", "function": {"name": "light", "parameters": {"type": "object", "properties": {"on": {"$ref": "#/$defs/switch"}}, "required": ["on"],
			"additionalProperties": false, "$defs": {"switch": {"type": "boolean"}}}}},
		{"type": "function", "function": {"name": "colour", "parameters": {"type": "object", "properties": {"is": {"enum": ["red", "green"]}}, "required": ["is"], "additionalProperties": false}}},
		{"type": "function", "function": {"name": "stop"}}]`
	type arguments struct {
		On *bool
		Is string
	}
	valid := map[string]func(a arguments) bool{
		"light":  func(a arguments) bool { return a.On != nil },
		"colour": func(a arguments) bool { return a.Is == "red" || a.Is == "green" },
	}
	ids := map[string]bool{}
	for _, c := range []struct {
		choice string
		names  []string
	}{
		{`"required"`, []string{"light", "colour", "stop"}},
		{`{"type": "function", "function": {"name": "light"}}`, []string{"light"}},
		{`{"type": "function", "function": {"name": "colour"}}`, []string{"colour"}},
	} {
		for seed := range 4 {
			request := fmt.Sprintf(`{"messages": [{"role": "user", "content": "Hi"}], "seed": %d, "max_tokens": 200, "tools": %s, "tool_choice": %s}`, seed, tools, c.choice)
			status, b := post(t, url, request)
			var answer struct {
				Choices []struct {
					Finish  string `json:"finish_reason"`
					Message struct {
						Content   string
						ToolCalls []struct {
							ID       string
							Function struct{ Name, Arguments string }
						} `json:"tool_calls"`
					}
				}
			}
			if err := json.Unmarshal(b, &answer); err != nil || status != 200 || len(answer.Choices) != 1 {
				t.Fatalf("%s: %d, %s", request, status, b)
			}
			m := answer.Choices[0].Message
			if answer.Choices[0].Finish == "length" { // an object without a schema may have any length
				continue
			}
			if len(m.ToolCalls) != 1 || m.Content != "" || answer.Choices[0].Finish != "tool_calls" {
				t.Errorf("tool_choice %s: %s", c.choice, b)
				continue
			}
			id, f := m.ToolCalls[0].ID, m.ToolCalls[0].Function
			if len(id) != 9 || ids[id] {
				t.Errorf("the id %q of a call is not new, or does not have nine characters", id)
			}
			ids[id] = true
			var a arguments
			if err := json.Unmarshal([]byte(f.Arguments), &a); err != nil || !slices.Contains(c.names, f.Name) || valid[f.Name] != nil && !valid[f.Name](a) {
				t.Errorf("tool_choice %s: a call of %s with %s", c.choice, f.Name, f.Arguments)
			}
		}
	}
	if _, b := post(t, url, `{"messages": [{"role": "user", "content": "Hi"}], "stream": true, "tools": `+tools+`, "tool_choice": {"function": {"name": "light"}}}`); !strings.Contains(string(b), `"name":"light"`) {
		t.Errorf("a stream has no call: %s", b)
	}
}

// TestDescribedTools checks that a request with tools has a prompt with their description if the template does not use them, with and without a system
// message, and the same prompt if tool_choice is none.
func TestDescribedTools(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	const template = `{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}`
	url := startOn(t, dev, assistant.Options{Model: llm.Options{Context: 512}, Template: template}, serve.Options{}) + "/v1/chat/completions"
	prompt := func(messages, more string) int {
		status, a := ask(t, url, `{"messages": [`+messages+`{"role": "user", "content": "Hi"}], "max_tokens": 1`+more+`}`)
		if status != 200 {
			t.Fatalf("%d, %+v", status, a.Error)
		}
		return a.Usage.Prompt
	}
	const tools, system = `, "tools": [{"type": "function", "function": {"name": "light", "description": "turns the light on"}}]`, `{"role": "system", "content": "Be brief"},`
	for _, messages := range []string{"", system} {
		plain, described := prompt(messages, ""), prompt(messages, tools)
		if none := prompt(messages, tools+`, "tool_choice": "none"`); described < plain+len("light")+len("turns the light on") || none != plain {
			t.Errorf("with %q: %d tokens, %d with tools, %d with tool_choice none", messages, plain, described, none)
		}
	}
}

// TestDescribedToolsWithoutSystem checks that tools are described in the first message if the template rejects a system message, and that a request
// without messages stays one.
func TestDescribedToolsWithoutSystem(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	const template = `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}[{{ m.role }}] {{ m.content }} {% endfor %}`
	url := startOn(t, dev, assistant.Options{Model: llm.Options{Context: 512}, Template: template}, serve.Options{}) + "/v1/chat/completions"
	const more = `, "max_tokens": 1, "tools": [{"type": "function", "function": {"name": "light", "description": "turns the light on"}}]}`
	status, a := ask(t, url, `{"messages": [{"role": "user", "content": "Hi"}]`+more)
	if status != 200 || a.Usage.Prompt < 100 {
		t.Errorf("%d, %d tokens, %+v", status, a.Usage.Prompt, a.Error)
	}
	if status, _ := ask(t, url, `{"messages": []`+more); status != 400 {
		t.Errorf("no messages: %d", status)
	}
}
