package serve

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/chat"
)

// answerID has the fields that all parts of an answer share.
type answerID struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func (x *exchange) identify(prefix, object string) {
	x.answer = answerID{fmt.Sprintf("%s-%d-%d", prefix, x.started.UnixNano(), x.numbers.Add(1)), object, time.Now().Unix(), x.o.Name}
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// add adds the tokens of a text, and those of its prompt if it is the first text after the prompt.
func (u *usage) add(o assistant.Usage, first bool) {
	if first {
		u.Prompt += o.Prompt
		u.Details.Cached += o.Cached
	}
	u.Completion += o.Generated
	u.Total = u.Prompt + u.Completion
}

// logProb is a token with its probability.
type logProb struct {
	Token   string    `json:"token"`
	LogProb float32   `json:"logprob"`
	Bytes   []int     `json:"bytes"`
	Top     []logProb `json:"top_logprobs,omitempty"`
}

func (x *exchange) logProb(id int32, p float32) logProb {
	text := x.a.Tokenizer().Piece(id)
	l := logProb{Token: strings.ToValidUTF8(string(text), "\uFFFD"), LogProb: max(p, -9999), Bytes: []int{}}
	for _, b := range text {
		l.Bytes = append(l.Bytes, int(b))
	}
	return l
}

func (x *exchange) logProbs(tokens []llm.Token) []logProb {
	list := []logProb{}
	for _, t := range tokens {
		if t.Stop {
			continue
		}
		l := x.logProb(t.ID, t.LogProb)
		for _, o := range t.Top {
			l.Top = append(l.Top, x.logProb(o.ID, o.LogProb))
		}
		list = append(list, l)
	}
	return list
}

// choice is a text of an answer or, in a stream, a new part of it.
type choice struct {
	Index    int     `json:"index"`
	Text     *string `json:"text,omitempty"`
	Message  *said   `json:"message,omitempty"`
	Delta    *said   `json:"delta,omitempty"`
	LogProbs any     `json:"logprobs"`
	Finish   *string `json:"finish_reason"`
}

// said is a message of the assistant or, in a stream, a part of it.
type said struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type completion struct {
	answerID
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// form is the form of the answer: that of a chat or of a completion.
type form struct {
	sampling *sampling
	request  assistant.Request
	chat     bool
	tools    chat.Style // style of the tool calls to find in the answer
	logProbs bool
}

// chat answers /v1/chat/completions.
func (x *exchange) chat() error {
	var body chatRequest
	if err := x.read(&body); err != nil {
		return err
	}
	if body.TopLogProbs < 0 || body.TopLogProbs > mostLogProbs {
		return invalid("top_logprobs", fmt.Sprintf("top_logprobs is %d, expected 0 to %d", body.TopLogProbs, mostLogProbs))
	}
	in, err := body.input()
	if err != nil {
		return err
	}
	r, err := body.request(0, time.Now().UnixNano())
	if err != nil {
		return err
	}
	r.Chat = in
	r.Sampling.LogProbs, r.Sampling.TopLogProbs = body.LogProbs, body.TopLogProbs
	f := &form{sampling: &body.sampling, request: r, chat: true, logProbs: body.LogProbs}
	if t := x.a.Template(); t != nil && len(in.Tools) > 0 {
		if f.tools = t.ToolStyle(); !t.UsesTools() {
			if err := describeTools(t, in, body.Tools); err != nil {
				return err
			}
			if f.tools == chat.NoTools {
				f.tools = chat.Llama3
			}
		}
	}
	forced, err := body.forced()
	if err != nil {
		return err
	}
	if len(forced) > 0 {
		f.tools = chat.Llama3 // a call in JSON, whatever the model's own notation
		if err := f.force(forced); err != nil {
			return err
		}
	}
	return x.generate(f, prompts{{}})
}

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	sampling
	Prompt   prompts `json:"prompt"`
	LogProbs *int    `json:"logprobs"`
	// Other values of these fields are refused.
	Echo   bool   `json:"echo"`
	Suffix string `json:"suffix"`
	BestOf int    `json:"best_of"`
}

// check returns an error for fields that have no effect here.
func (r *completionRequest) check() error {
	switch {
	case r.Echo:
		return invalid("echo", "echo is true, expected false: the answer does not repeat the prompt")
	case r.Suffix != "":
		return invalid("suffix", "suffix is not supported: put the text that follows into the prompt, as the model's format says")
	case r.BestOf < 0 || r.BestOf > max(r.N, 1):
		return invalid("best_of", fmt.Sprintf("best_of is %d, expected at most n, which is %d", r.BestOf, max(r.N, 1)))
	}
	return nil
}

const mostPrompts = 64

// complete answers /v1/completions.
func (x *exchange) complete() error {
	var body completionRequest
	if err := x.read(&body); err != nil {
		return err
	}
	if n := len(body.Prompt); n == 0 || n > mostPrompts {
		return invalid("prompt", fmt.Sprintf("%d prompts, expected 1 to %d", n, mostPrompts))
	}
	if err := body.check(); err != nil {
		return err
	}
	r, err := body.request(0, time.Now().UnixNano())
	if err != nil {
		return err
	}
	if r.Sampling.MaxTokens == 0 {
		r.Sampling.MaxTokens = 16 // the default of OpenAI's interface
	}
	f := &form{sampling: &body.sampling, request: r}
	if body.LogProbs != nil {
		if *body.LogProbs < 0 || *body.LogProbs > mostLogProbs {
			return invalid("logprobs", fmt.Sprintf("logprobs is %d, expected 0 to %d", *body.LogProbs, mostLogProbs))
		}
		f.logProbs, f.request.Sampling.LogProbs, f.request.Sampling.TopLogProbs = true, true, *body.LogProbs
	}
	return x.generate(f, body.Prompt)
}

// generate generates N texts for each prompt, one after the other. It answers with all texts at the
// end, or streams their parts.
func (x *exchange) generate(f *form, all prompts) error {
	object := "text_completion"
	if f.chat {
		object = "chat.completion"
		if f.sampling.Stream {
			object = "chat.completion.chunk"
		}
	}
	x.identify("cmpl", object)
	out := completion{answerID: x.answer}
	var total usage
	for i, prompt := range all {
		for n := range max(f.sampling.N, 1) {
			r := f.request
			if r.Sampling.Seed += uint64(n); !f.chat {
				r.Prompt, r.Tokens = prompt.text, prompt.tokens
			}
			index := i*max(f.sampling.N, 1) + n
			c, u, err := x.one(f, r, index)
			if err != nil {
				return x.fail(f, err)
			}
			total.add(u, n == 0)
			out.Choices = append(out.Choices, c)
		}
	}
	if !f.sampling.Stream {
		out.Usage = &total
		writeJSON(x.w, http.StatusOK, out)
		return nil
	}
	if f.sampling.StreamOptions.IncludeUsage {
		if err := x.event(completion{x.answer, []choice{}, &total}); err != nil {
			return err
		}
	}
	return x.line("[DONE]")
}

// fail reports an error; if the stream has begun, it reports the error there.
func (x *exchange) fail(f *form, err error) error {
	if f.sampling.Stream && x.w.status != 0 {
		_ = x.event(errorObject(asRequestError(err)))
	}
	return err
}

// one generates one text. In a stream, it writes the parts.
func (x *exchange) one(f *form, r assistant.Request, index int) (choice, assistant.Usage, error) {
	var text strings.Builder
	var tokens []llm.Token
	var last assistant.Piece
	stream := f.sampling.Stream && f.tools == chat.NoTools // tool calls can be found only in the complete text
	begun := false
	defer func() { x.metrics.count(last.Usage) }() // also if the client disconnects
	for p, err := range x.a.Generate(x.r.Context(), r) {
		if err != nil {
			return choice{}, last.Usage, err
		}
		if last = p; last.Usage.Generated == 1 {
			x.metrics.first.Observe(time.Since(x.start).Seconds())
		}
		text.WriteString(p.Text)
		tokens = append(tokens, p.Tokens...)
		if stream && (p.Text != "" || !begun) && p.Finish == "" {
			if err := x.event(completion{x.answer, []choice{f.part(x, index, p.Text, tokens, !begun)}, nil}); err != nil {
				return choice{}, last.Usage, err
			}
			begun, tokens = true, nil
		}
	}
	c := f.whole(x, index, text.String(), tokens, string(last.Finish))
	if !f.sampling.Stream {
		return c, last.Usage, nil
	}
	end := f.part(x, index, last.Text, tokens, !begun)
	if !stream {
		end = choice{Index: index, Delta: c.Message}
		for i := range c.Message.ToolCalls {
			c.Message.ToolCalls[i].Index = &i
		}
	}
	end.Finish = c.Finish
	return c, last.Usage, x.event(completion{x.answer, []choice{end}, nil})
}

// part returns a part of a stream.
func (f *form) part(x *exchange, index int, text string, tokens []llm.Token, first bool) choice {
	c := choice{Index: index}
	if f.logProbs {
		c.LogProbs = f.probabilities(x, tokens)
	}
	if !f.chat {
		c.Text = &text
		return c
	}
	c.Delta = &said{Content: &text}
	if first {
		c.Delta.Role = "assistant"
	}
	return c
}

// whole returns a complete text as a choice.
func (f *form) whole(x *exchange, index int, text string, tokens []llm.Token, finish string) choice {
	c := choice{Index: index, Finish: &finish}
	if f.logProbs {
		c.LogProbs = f.probabilities(x, tokens)
	}
	if !f.chat {
		c.Text = &text
		return c
	}
	c.Message = &said{Role: "assistant", Content: &text}
	if f.tools == chat.NoTools {
		return c
	}
	rest, calls := chat.ParseToolCalls(f.tools, text)
	for i, call := range calls {
		t := toolCall{ID: callID(call.ID, i), Type: "function"}
		t.Function.Name, t.Function.Arguments = call.Name, string(call.Arguments)
		c.Message.ToolCalls = append(c.Message.ToolCalls, t)
	}
	if len(calls) > 0 {
		*c.Finish, *c.Message.Content = "tool_calls", rest
	}
	return c
}

// callID returns the id of call i of an answer, which has the given id in the model's text or from ParseToolCalls. Ids that
// the model did not choose are random, so that they differ between the answers of a conversation. They have nine letters
// and digits, because Mistral's templates accept no others.
func callID(id string, i int) string {
	if id == fmt.Sprintf("call_%d", i) {
		return rand.Text()[:9]
	}
	return id
}

// probabilities returns log-probabilities in the form of chats, or in the older form of completions.
func (f *form) probabilities(x *exchange, tokens []llm.Token) any {
	list := x.logProbs(tokens)
	if f.chat {
		return map[string]any{"content": list}
	}
	texts, values, tops := []string{}, []float32{}, []map[string]float32{}
	for _, l := range list {
		texts, values = append(texts, l.Token), append(values, l.LogProb)
		top := map[string]float32{}
		for _, o := range l.Top {
			top[o.Token] = o.LogProb
		}
		tops = append(tops, top)
	}
	return map[string]any{"tokens": texts, "token_logprobs": values, "top_logprobs": tops}
}

// event writes a part of a stream.
func (x *exchange) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return x.line(string(b))
}

func (x *exchange) line(text string) error {
	if x.w.status == 0 {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.w.Header().Set("Cache-Control", "no-cache")
		x.w.WriteHeader(http.StatusOK)
	}
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(time.Now().Add(x.o.WriteTimeout)) // some writers do not support deadlines
	if _, err := fmt.Fprintf(x.w, "data: %s\n\n", text); err != nil {
		return err
	}
	return c.Flush()
}

// embed answers /v1/embeddings.
func (x *exchange) embed() error {
	var body struct {
		Model      string  `json:"model"`
		Input      prompts `json:"input"`
		Format     string  `json:"encoding_format"`
		Dimensions int     `json:"dimensions"`
	}
	if err := x.read(&body); err != nil {
		return err
	}
	if len(body.Input) == 0 || len(body.Input) > 2048 {
		return invalid("input", fmt.Sprintf("%d texts, expected 1 to 2048", len(body.Input)))
	}
	if body.Format != "" && body.Format != "float" && body.Format != "base64" {
		return invalid("encoding_format", fmt.Sprintf("encoding_format is %q, expected float or base64", body.Format))
	}
	if w := x.a.Model().Config().Width; body.Dimensions != 0 && body.Dimensions != w {
		return invalid("dimensions", fmt.Sprintf("dimensions is %d, expected %d, the size of the model's embeddings", body.Dimensions, w))
	}
	var u usage
	list := []any{}
	for i, text := range body.Input {
		n, v, err := x.embedding(text)
		if err != nil {
			return err
		}
		u.Prompt, u.Total = u.Prompt+n, u.Total+n
		var e any = v
		if body.Format == "base64" {
			b := make([]byte, 0, 4*len(v))
			for _, f := range v {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
			}
			e = base64.StdEncoding.EncodeToString(b)
		}
		list = append(list, map[string]any{"object": "embedding", "index": i, "embedding": e})
	}
	x.metrics.count(assistant.Usage{Prompt: u.Prompt})
	writeJSON(x.w, http.StatusOK, map[string]any{"object": "list", "data": list, "model": x.o.Name, "usage": u})
	return nil
}

func (x *exchange) embedding(p prompt) (tokens int, v []float32, err error) {
	all, err := x.a.Encode(&assistant.Request{Prompt: p.text, Tokens: p.tokens})
	if err != nil {
		return 0, nil, err
	}
	v, err = x.a.Model().Embed(x.r.Context(), all)
	return len(all), v, err
}
