package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/llm/grammar"
)

// kinds has the statuses for errors of the packages that serve uses.
var kinds = []struct {
	is          func(error) bool
	status      int
	param, code string
}{
	{func(err error) bool { return errors.As(err, new(*llm.CapacityError)) }, http.StatusBadRequest, "messages", "context_length_exceeded"},
	{func(err error) bool { return errors.Is(err, llm.ErrSampling) }, http.StatusBadRequest, "", "invalid_sampling"},
	{func(err error) bool { return errors.Is(err, llm.ErrToken) }, http.StatusBadRequest, "", "invalid_tokens"},
	{func(err error) bool { return errors.Is(err, assistant.ErrNoTemplate) }, http.StatusBadRequest, "messages", "no_chat_template"},
	{func(err error) bool { return errors.Is(err, assistant.ErrRequest) }, http.StatusBadRequest, "", "invalid_request"},
	{func(err error) bool {
		return errors.Is(err, chat.ErrRaised) || errors.Is(err, chat.ErrInput) || errors.Is(err, chat.ErrLimit) || errors.Is(err, chat.ErrRun)
	}, http.StatusBadRequest, "messages", "chat_template"},
	{func(err error) bool { return errors.As(err, new(*grammar.Error)) }, http.StatusBadRequest, "grammar", "invalid_grammar"},
	{func(err error) bool { return errors.Is(err, context.Canceled) }, 499, "", "client_closed_request"},
	{func(err error) bool { return errors.Is(err, llm.ErrClosed) }, http.StatusServiceUnavailable, "", "shutting_down"},
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// errorObject returns an error in the form of OpenAI's interface.
func errorObject(e *requestError) any {
	kind := "invalid_request_error"
	if e.status >= 500 {
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": e.message, "type": kind, "param": null(e.param), "code": null(e.code)}}
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func writeError(w http.ResponseWriter, e *requestError) { writeJSON(w, e.status, errorObject(e)) }

// read decodes the body of a request.
func (x *exchange) read(v any) error {
	d := json.NewDecoder(x.r.Body)
	if err := d.Decode(v); err != nil {
		var slow net.Error
		if errors.As(err, new(*http.MaxBytesError)) || errors.As(err, &slow) {
			return err
		}
		return &requestError{http.StatusBadRequest, fmt.Sprintf("the body is not JSON of the expected form: %v", err), "", "invalid_json"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &requestError{http.StatusBadRequest, "the body has data after the JSON object", "", "invalid_json"}
	}
	// The rest of the answer has no deadline.
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	return nil
}

// sampling has the fields of a request that control sampling.
type sampling struct {
	Model            string             `json:"model"`
	Temperature      *float32           `json:"temperature"`
	TopP             float32            `json:"top_p"`
	TopK             *int               `json:"top_k"`
	MinP             *float32           `json:"min_p"`
	TypicalP         float32            `json:"typical_p"`
	MaxTokens        int                `json:"max_tokens"`
	MaxCompletion    int                `json:"max_completion_tokens"`
	Stop             texts              `json:"stop"`
	Seed             *seed              `json:"seed"`
	FrequencyPenalty float32            `json:"frequency_penalty"`
	PresencePenalty  float32            `json:"presence_penalty"`
	RepeatPenalty    float32            `json:"repeat_penalty"`
	LogitBias        map[string]float32 `json:"logit_bias"`
	N                int                `json:"n"`
	Stream           bool               `json:"stream"`
	StreamOptions    struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Grammar string `json:"grammar"` // in GBNF
	Format  *struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// seed is an integer of 64 bits, with or without a sign.
type seed uint64

// UnmarshalJSON accepts both forms.
func (s *seed) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*s = seed(n)
		return nil
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("seed is %.40s, expected an integer of 64 bits", b)
	}
	*s = seed(n)
	return nil
}

// texts is a string or a list of them.
type texts []string

// UnmarshalJSON accepts both forms, and null.
func (t *texts) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if *t = nil; one != nil {
			*t = texts{*one}
		}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return errors.New("expected a string or a list of strings")
	}
	*t = many
	return nil
}

// prompt is a text, or tokens if they are not nil.
type prompt struct {
	text   string
	tokens []int32
}

// prompts is one prompt or a list of them: a string, a list of strings, a list of tokens, or a list of lists of tokens.
type prompts []prompt

// UnmarshalJSON accepts these forms, and null.
func (p *prompts) UnmarshalJSON(b []byte) error {
	*p = nil
	var t texts
	if t.UnmarshalJSON(b) == nil {
		for _, text := range t {
			*p = append(*p, prompt{text: text})
		}
		return nil
	}
	var one []int32
	if json.Unmarshal(b, &one) == nil && !bytes.Contains(b, []byte("null")) { // null would be token 0
		*p = prompts{{tokens: one}}
		return nil
	}
	var many [][]int32
	if json.Unmarshal(b, &many) != nil || bytes.Contains(b, []byte("null")) {
		return errors.New("expected a string, a list of strings, a list of tokens, or a list of lists of tokens (integers of 32 bits)")
	}
	for _, tokens := range many {
		*p = append(*p, prompt{tokens: append([]int32{}, tokens...)})
	}
	return nil
}

// The defaults of sampling, which are those of llama.cpp.
const (
	defaultTemperature = 0.8
	defaultTopK        = 40
	defaultMinP        = 0.05
	mostChoices        = 16
	mostStops          = 16
	mostLogProbs       = 20
)

// request returns the request of one choice. seed makes the choices of one request differ.
func (f *sampling) request(choice int, now int64) (assistant.Request, error) {
	o := llm.Sampling{Temperature: defaultTemperature, TopK: defaultTopK, MinP: defaultMinP, TopP: f.TopP, Typical: f.TypicalP, MaxTokens: max(f.MaxTokens, f.MaxCompletion),
		FrequencyPenalty: f.FrequencyPenalty, PresencePenalty: f.PresencePenalty, RepeatPenalty: f.RepeatPenalty, Seed: uint64(now)}
	if f.Temperature != nil {
		o.Temperature = *f.Temperature
	}
	if f.TopK != nil {
		o.TopK = *f.TopK
	}
	if f.MinP != nil {
		o.MinP = *f.MinP
	}
	if f.Seed != nil {
		o.Seed = uint64(*f.Seed)
	}
	o.Seed += uint64(choice)
	switch {
	case f.MaxTokens < 0 || f.MaxCompletion < 0:
		return assistant.Request{}, invalid("max_tokens", "max_tokens is below 0, expected 0 or more")
	case f.N < 0 || f.N > mostChoices:
		return assistant.Request{}, invalid("n", fmt.Sprintf("n is %d, expected 1 to %d", f.N, mostChoices))
	case len(f.Stop) > mostStops:
		return assistant.Request{}, invalid("stop", fmt.Sprintf("%d strings of stop, expected at most %d", len(f.Stop), mostStops))
	}
	for id, bias := range f.LogitBias {
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil || n < 0 {
			return assistant.Request{}, invalid("logit_bias", fmt.Sprintf("logit_bias has %q, expected numbers of tokens", id))
		}
		if o.LogitBias == nil {
			o.LogitBias = map[int32]float32{}
		}
		o.LogitBias[int32(n)] = bias
	}
	g, err := f.grammar()
	return assistant.Request{Sampling: o, Stop: f.Stop, Grammar: g}, err
}

func invalid(param, message string) error {
	return &requestError{http.StatusBadRequest, message, param, "invalid_value"}
}

// grammar returns the grammar of the answer, or nil.
func (f *sampling) grammar() (*grammar.Grammar, error) {
	if f.Grammar != "" {
		return grammar.Parse(f.Grammar)
	}
	if f.Format == nil {
		return nil, nil
	}
	var g *grammar.Grammar
	var err error
	switch f.Format.Type {
	case "", "text":
		return nil, nil
	case "json_object":
		g, err = grammar.FromJSONSchema([]byte(`{"type": "object"}`))
	case "json_schema":
		g, err = grammar.FromJSONSchema(f.Format.Schema.Schema)
	default:
		return nil, invalid("response_format", fmt.Sprintf("response_format is of type %q, expected text, json_object or json_schema", f.Format.Type))
	}
	if err != nil {
		return nil, invalid("response_format", err.Error())
	}
	return g, nil
}

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	sampling
	Messages    []message       `json:"messages"`
	Tools       []tool          `json:"tools"`
	ToolChoice  json.RawMessage `json:"tool_choice"`
	LogProbs    bool            `json:"logprobs"`
	TopLogProbs int             `json:"top_logprobs"`
	Template    map[string]any  `json:"chat_template_kwargs"`
}

type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// content is a text, or a list of parts that are texts.
type content string

// UnmarshalJSON accepts both forms, and null.
func (c *content) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if *c = ""; one != nil {
			*c = content(*one)
		}
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New("content: expected a string or a list of parts")
	}
	var all []string
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("content: a part has type %q, expected text", p.Type)
		}
		all = append(all, p.Text)
	}
	*c = content(strings.Join(all, "\n"))
	return nil
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// input returns the input of the chat template.
func (r *chatRequest) input() (*chat.Input, error) {
	in := &chat.Input{Vars: r.Template}
	for i, m := range r.Messages {
		to := chat.Message{Role: m.Role, Content: string(m.Content), Reasoning: m.Reasoning, Name: m.Name, ToolCallID: m.ToolCallID}
		if m.Role == "developer" {
			to.Role = "system"
		}
		for _, c := range m.ToolCalls {
			arguments := json.RawMessage(c.Function.Arguments)
			if len(arguments) == 0 {
				arguments = json.RawMessage("{}")
			}
			if !json.Valid(arguments) {
				return nil, invalid("messages", fmt.Sprintf("message %d: the arguments of a call of %s are not JSON", i, c.Function.Name))
			}
			to.ToolCalls = append(to.ToolCalls, chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
		}
		in.Messages = append(in.Messages, to)
	}
	if string(r.ToolChoice) == `"none"` {
		return in, nil
	}
	for _, t := range r.Tools {
		in.Tools = append(in.Tools, chat.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return in, nil
}
