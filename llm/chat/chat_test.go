package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestErrorLines checks that errors contain the line.
func TestErrorLines(t *testing.T) {
	for _, c := range []struct {
		source string
		line   int
		kind   error
	}{
		{"a\n{{ 1 + }}", 2, ErrSyntax},
		{"{% if x %}\n\n{% endfor %}", 3, ErrSyntax},
		{"{%- set x = 1 -%}\n\n  {{ x.y.z }}", 3, ErrRun},
		{"\n{# c\n #}\n{{ raise_exception('no') }}", 4, ErrRaised},
		{"{% macro f() %}\n{{ 1 // 0 }}{% endmacro %}\n\n{{ f() }}", 2, ErrRun},
		{"\n{% include 'x' %}", 2, ErrSyntax},
		{"{{ 'a\n'\n ~ (1 / 0) }}", 3, ErrRun},
		{"{% for i in [1] recursive %}{% endfor %}", 1, ErrSyntax},
		{"{% break %}", 1, ErrSyntax},
		{"\r\n{{ f(*x) }}", 2, ErrSyntax},
	} {
		_, err := render(c.source, &Input{})
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || !errors.Is(err, c.kind) {
			t.Errorf("%q: error %v, expected %v in line %d", c.source, err, c.kind, c.line)
		}
	}
}

// TestRejectedArguments checks the errors for arguments that Jinja or Python would accept.
func TestRejectedArguments(t *testing.T) {
	for source, want := range map[string]string{
		"{% macro f(a) %}{% endmacro %}{{ f(1, 2, 3) }}": "macro f is called with 3 arguments, expected at most 1",
		"{{ 'abab'.find('b', 2) }}":                      "positions",
		"{{ 'abab'.count('b', 2) }}":                     "positions",
		"{{ 'abab'.startswith('b', 1) }}":                "positions",
	} {
		if _, err := render(source, &Input{}); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", source, err, want)
		}
	}
}

// TestPythonStrings compares filters and methods with Jinja 3.1 and Python 3.
func TestPythonStrings(t *testing.T) {
	for source, want := range map[string]string{
		`{{ '日a'.title() }}|{{ '日a' | title }}|{{ 'a1b'.title() }}`:                                  "日A|日a|A1B",
		`{{ 'a\r\nb\rc\n'.splitlines(true) | join('+') | replace('\r', 'R') | replace('\n', 'N') }}`: "aRN+bR+cN",
		`{{ x.splitlines() | join('+') }}|{{ '\n'.splitlines() | length }}`:                          "a+b+c++d|1",
		`{{ [{'k': 'a'}, {'k': 'A'}, {'k': [1]}, {'k': [1]}] | unique(attribute='k') | list }}`:      "[{'k': 'a'}, {'k': [1]}]",
	} {
		got, err := render(source, &Input{Vars: map[string]any{"x": "a\vb\u0085c\u2028\x1cd"}})
		if got != want || err != nil {
			t.Errorf("%s: %q and error %v, expected %q", source, got, err, want)
		}
	}
}

// TestLimits checks that templates stop that never end or grow without limit.
func TestLimits(t *testing.T) {
	for name, source := range map[string]string{
		"steps":      "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
		"range":      "{{ range(100000000000) | list | length }}",
		"repeat":     "{{ 'a' * 100000000000 }}",
		"repeats":    "{{ [0] * 9223372036854775807 }}",
		"doubling":   "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"lists":      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
		"shared":     "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
		"equal":      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l == [ns.l[0], ns.l[1]] and ns.l < [ns.l[0], ns.l[1]] }}",
		"replace":    "{% set s = 'a' * 1000000 %}{{ s.replace('a', s) | length }}",
		"join":       "{{ range(100000) | join('a' * 100000) | length }}",
		"indent":     "{{ ('\n' * 1000000) | indent(256, true, true) | indent(256, true, true) | length }}",
		"unique":     "{% set s = 'a' * 10000000 %}{{ ([s] * 1000) | unique | length }}",
		"count":      "{% set s = 'a' * 10000000 %}{% for i in range(1000) %}{{ s.count('b') }}{% endfor %}",
		"same":       "{% set s, t = 'a' * 8000000, 'a' * 8000000 %}{% for i in range(1000) %}{{ s == t }}{% endfor %}",
		"key":        "{% set s = 'a' * 10000000 %}{% for i in range(1000) %}{{ {'a': 1}[s] }}{% endfor %}",
		"lines":      "{{ ('\n' * 10000000).splitlines() | length }}",
		"output":     "{% set s = 'a' * 1000000 %}{% for i in range(100) %}{{ s }}{% endfor %}",
		"recursion":  "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"deep":       "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"parens":     "{{ " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + " }}",
		"brackets":   "{{ " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + " }}",
		"nots":       "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"minus":      "{{ " + strings.Repeat("-", 100000) + "1 }}",
		"sums":       "{{ 1" + strings.Repeat("+1", 100000) + " }}",
		"attributes": "{{ a" + strings.Repeat(".a", 100000) + " }}",
		"compared":   "{{ 1" + strings.Repeat("<1", 100000) + " }}",
		"ifs":        strings.Repeat("{% if 1 %}", 10000),
		"else":       "{{ 1 " + strings.Repeat("if 1 else 1 ", 10000) + "}}",
		"long":       strings.Repeat("a", 2<<20),
	} {
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(&Input{}, Limits{Steps: 300_000, Memory: 32 << 20, Output: 4 << 20})
		}
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%s: error %v, expected %v", name, err, ErrLimit)
		}
	}
	tmpl, err := Parse("{% for i in range(100) %}{{ i }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []Limits{{Steps: 50}, {Memory: 500}, {Output: 100}} {
		if _, err := tmpl.Render(&Input{}, l); !errors.Is(err, ErrLimit) {
			t.Errorf("%+v: error %v, expected %v", l, err, ErrLimit)
		}
	}
}

// TestInput checks that values which JSON cannot represent give an error, and that other
// values of Go types reach the template unchanged.
func TestInput(t *testing.T) {
	deep := any("x")
	for range 1000 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{"channel": make(chan int), "deep": deep, "raw": json.RawMessage("{"), "more": json.RawMessage("1 2"),
		"deeper": json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "big": uint64(1 << 63)} {
		if _, err := render("{{ v }}", &Input{Vars: map[string]any{"v": v}}); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, expected %v", name, err, ErrInput)
		}
	}
	got, err := render("{{ v | tojson }}", &Input{Vars: map[string]any{"v": map[string]any{
		"b": []string{"x"}, "a": json.RawMessage(`{"z":1.5,"y":[null,true]}`), "c": uint8(3), "d": float32(0.5)}}})
	if want := `{"a": {"z": 1.5, "y": [null, true]}, "b": ["x"], "c": 3, "d": 0.5}`; got != want || err != nil {
		t.Errorf("%s and error %v, expected %s", got, err, want)
	}
	in := &Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage("nonsense")}}}}}
	if _, err := render("", in); !errors.Is(err, ErrInput) {
		t.Errorf("arguments: error %v", err)
	}
}

func TestToolCalls(t *testing.T) {
	for _, c := range []struct {
		style         Style
		text, content string
		want          []string // name and arguments
	}{
		{Llama3, `{"name": "f", "parameters": {"a": 1}}`, "", []string{"f", `{"a": 1}`}},
		{Llama3, `<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"b": [2]}}`, "", []string{"f", "{}", "g", `{"b": [2]}`}},
		{Llama3, `Look: {"name": "f", "parameters": {}}`, `Look: {"name": "f", "parameters": {}}`, nil},
		{Llama3, `{"name": "f", "parameters": {"a"`, `{"name": "f", "parameters": {"a"`, nil},
		{Hermes, "I ask.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"</x>\"}}\n</tool_call>\n<tool_call>{\"name\": \"g\"}</tool_call>", "I ask.", []string{"f", `{"a": "</x>"}`, "g", "{}"}},
		{Hermes, `<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call> done`, "done", []string{"f", `{"a": 1}`}},
		{Hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "", []string{"f", "{}"}},
		{Hermes, "<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>", nil},
		{Hermes, `<tool_call>{"name": "f", "arguments": 3}</tool_call>`, `<tool_call>{"name": "f", "arguments": 3}</tool_call>`, nil},
		{Gemma, "[f(a=1, b='x'), m.g(c=[True, None], d={'k': -2.5})]", "", []string{"f", `{"a": 1, "b": "x"}`, "m.g", `{"c": [true, null], "d": {"k": -2.5}}`}},
		{Gemma, "Sure.\n```tool_code\nf(a=\"q\")\n```", "Sure.", []string{"f", `{"a": "q"}`}},
		{Gemma, "```json\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}\n```", "", []string{"f", `{"a": 1}`}},
		{Gemma, "```go\nfmt.Println(1)\n```", "```go\nfmt.Println(1)\n```", nil},
		{Gemma, "f(open('x'))", "f(open('x'))", nil},
		{Gemma, "I like f(x) = 2 (see above)", "I like f(x) = 2 (see above)", nil},
		{Mistral, `[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "abc"}]`, "", []string{"f", `{"a": 1}`}},
		{NoTools, "<tool_call>{}", "<tool_call>{}", nil},
	} {
		content, calls := ParseToolCalls(c.style, c.text)
		var got []string
		ids := map[string]bool{}
		for _, call := range calls {
			got = append(got, call.Name, string(call.Arguments))
			ids[call.ID] = true
		}
		if content != c.content || !slices.Equal(got, c.want) || len(ids) != len(calls) || ids[""] {
			t.Errorf("%s %q: content %q, calls %q, expected %q and %q", c.style, c.text, content, got, c.content, c.want)
		}
	}
	for file, want := range map[string]Style{"llama3": Llama3, "qwen3": Hermes, "gemma3": Gemma, "mistral": Mistral, "phi3": NoTools} {
		source, err := os.ReadFile(filepath.Join("testdata", file+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(source))
		if err != nil {
			t.Fatal(err)
		}
		if got := tmpl.ToolStyle(); got != want {
			t.Errorf("%s: style %q, expected %q", file, got, want)
		}
		if got, want := tmpl.UsesTools(), file != "gemma3" && file != "phi3"; got != want {
			t.Errorf("%s: uses tools: %v, expected %v", file, got, want)
		}
	}
}

// FuzzRender checks that no template panics or exceeds the limits.
func FuzzRender(f *testing.F) {
	for _, c := range readGolden(f).Snippets {
		f.Add(c.Template, "hello")
	}
	files, _ := filepath.Glob("testdata/*.jinja")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(string(b), "hello")
		}
	}
	f.Fuzz(func(t *testing.T, source, content string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		limits := Limits{Steps: 20000, Memory: 1 << 20, Output: 1 << 16}
		in := &Input{Messages: []Message{{Role: "user", Content: content}}, Now: now, Vars: map[string]any{
			"n": 7, "s": "héllo", "l": []any{3, 1, 2}, "d": map[string]any{"a": 1, "b": []any{nil, true, 2.5}}}}
		if out, err := tmpl.Render(in, limits); err == nil && len(out) > limits.Output {
			t.Errorf("%d bytes of output", len(out))
		}
	})
}

// FuzzToolCalls checks that no answer causes a panic, and that all arguments are objects.
func FuzzToolCalls(f *testing.F) {
	f.Add(`<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`)
	f.Add(`[f(a=1, b={'x': [None]})]`)
	f.Add("```json\n{\"name\": \"f\", \"parameters\": {}}\n```")
	f.Fuzz(func(t *testing.T, text string) {
		for style := range calls {
			_, found := ParseToolCalls(style, text)
			for _, c := range found {
				var object map[string]any
				if c.Name == "" || json.Unmarshal(c.Arguments, &object) != nil {
					t.Errorf("%s: %q is no call", style, c)
				}
			}
		}
	})
}
