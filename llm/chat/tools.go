package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Style is the notation of tool calls of a family of models.
type Style string

// The styles.
const (
	NoTools Style = ""
	Llama3  Style = "llama3"  // {"name": …, "parameters": {…}}, also after <|python_tag|>; calls are separated by ;
	Hermes  Style = "hermes"  // <tool_call>{"name": …, "arguments": {…}}</tool_call>: Qwen, Hermes, SmolLM3
	Gemma   Style = "gemma"   // [name(key=value)] or JSON, bare or in a block of code
	Mistral Style = "mistral" // [TOOL_CALLS][{"name": …, "arguments": {…}}]
)

// styleMarks lists strings that identify a style in a model's template, the most specific first.
var styleMarks = []struct {
	mark  string
	style Style
}{
	{"<tool_call>", Hermes}, {"[TOOL_CALLS]", Mistral}, {"<|python_tag|>", Llama3}, {"<|start_header_id|>", Llama3},
	{"<start_of_turn>", Gemma}, {"<|im_start|>", Hermes},
}

// ToolStyle guesses the style of tool calls from the text of the template.
func (t *Template) ToolStyle() Style {
	for _, s := range styleMarks {
		if strings.Contains(t.source, s.mark) {
			return s.style
		}
	}
	return NoTools
}

// UsesTools reports whether the template reads the variable tools. Other templates do not describe tools to the model.
func (t *Template) UsesTools() bool {
	tokens, err := tokenize(t.source)
	return err == nil && slices.ContainsFunc(tokens, func(k token) bool { return k.kind == tokName && k.text == "tools" })
}

// calls has the parsers of the styles. They return the text outside of calls, and the calls.
var calls = map[Style]func(text string) (string, []ToolCall){
	Llama3: llama3Calls, Hermes: hermesCalls, Gemma: gemmaCalls, Mistral: mistralCalls,
}

// ParseToolCalls returns the tool calls in a model's answer, and the remaining text. A call that is
// malformed, or truncated at the end of the answer, stays in the text. Calls without an id get the
// ids call_0, call_1 and so on. The names are not checked: compare them with your tools.
func ParseToolCalls(style Style, text string) (content string, found []ToolCall) {
	parse := calls[style]
	if parse == nil {
		return text, nil
	}
	content, found = parse(text)
	if len(found) == 0 {
		return text, nil
	}
	for i := range found {
		if found[i].ID == "" {
			found[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	return strings.TrimSpace(content), found
}

// jsonCall is the JSON form of a call.
type jsonCall struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
	Function   *jsonCall       `json:"function"`
}

func (c jsonCall) call() (ToolCall, bool) {
	if c.Function != nil && c.Name == "" {
		id := c.ID
		c = *c.Function
		c.ID = id
		c.Function = nil
	}
	args := c.Arguments
	if len(args) == 0 {
		args = c.Parameters
	}
	// Some models encode the object as a JSON string.
	var text string
	if json.Unmarshal(args, &text) == nil && json.Valid([]byte(text)) {
		args = json.RawMessage(text)
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil {
		return ToolCall{}, false
	}
	return ToolCall{c.ID, c.Name, args}, c.Name != ""
}

// jsonCalls parses a call, or a list of calls, at the beginning of a text, and returns the rest.
func jsonCalls(text string) (found []ToolCall, rest string) {
	dec := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return nil, text
	}
	var cs []jsonCall
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		if json.Unmarshal(raw, &cs) != nil {
			return nil, text
		}
	} else {
		cs = make([]jsonCall, 1)
		if json.Unmarshal(raw, &cs[0]) != nil {
			return nil, text
		}
	}
	for _, c := range cs {
		call, ok := c.call()
		if !ok {
			return nil, text
		}
		found = append(found, call)
	}
	return found, text[dec.InputOffset():]
}

func llama3Calls(text string) (string, []ToolCall) {
	content, rest, tagged := strings.Cut(text, "<|python_tag|>")
	if !tagged {
		content, rest = "", text
	}
	var found []ToolCall
	for {
		cs, after := jsonCalls(strings.TrimLeft(rest, " \n\t;"))
		if len(cs) == 0 {
			return content + rest, found
		}
		found, rest = append(found, cs...), after
	}
}

func hermesCalls(text string) (string, []ToolCall) {
	var content strings.Builder
	var found []ToolCall
	for {
		before, inner, ok := strings.Cut(text, "<tool_call>")
		content.WriteString(before)
		if !ok {
			return content.String(), found
		}
		cs, rest := jsonCalls(inner)
		end := strings.HasPrefix(strings.TrimSpace(rest), "</tool_call>")
		if len(cs) == 0 || !end && strings.TrimSpace(rest) != "" {
			content.WriteString("<tool_call>")
			text = inner
			continue
		}
		found = append(found, cs...)
		_, text, _ = strings.Cut(rest, "</tool_call>")
	}
}

func mistralCalls(text string) (string, []ToolCall) {
	content, rest, ok := strings.Cut(text, "[TOOL_CALLS]")
	if !ok {
		return text, nil
	}
	found, rest := jsonCalls(rest)
	return content + rest, found
}

// gemmaCalls returns the calls in the first block of code that consists of calls, or the calls that
// form the whole text.
func gemmaCalls(text string) (string, []ToolCall) {
	for from := 0; ; {
		i := strings.Index(text[from:], "```")
		if i < 0 {
			break
		}
		begin := from + i
		_, inner, ok := strings.Cut(text[begin+3:], "\n")
		end := strings.Index(inner, "```")
		if !ok || end < 0 {
			break
		}
		if found := wholeCalls(inner[:end]); len(found) > 0 {
			return text[:begin] + inner[end+3:], found
		}
		from = len(text) - len(inner) + end + 3
	}
	return "", wholeCalls(text)
}

// wholeCalls parses a text that consists of calls, in JSON or in Python.
func wholeCalls(text string) []ToolCall {
	text = strings.TrimSpace(text)
	if found, rest := jsonCalls(text); len(found) > 0 && rest == "" {
		return found
	}
	return pythonCalls(text)
}
