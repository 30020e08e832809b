package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/serve"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

// start returns the address of a server of the tiny model.
func start(t testing.TB, parallel int, o serve.Options) string {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, dev, assistant.Options{Parallel: parallel}, o)
}

// startOn is start on a device. It closes the device and the draft model at the end of the test.
func startOn(t testing.TB, dev *device.Device, ao assistant.Options, o serve.Options) string {
	t.Helper()
	if ao.Model.Context == 0 {
		ao.Model.Context = 128
	}
	a, err := assistant.Load(context.Background(), dev, tinymodel.File(t), ao)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(serve.New(a, o))
	t.Cleanup(func() {
		s.Close()
		err := a.Close()
		if ao.Draft != nil {
			err = errors.Join(err, ao.Draft.Close())
		}
		if err := errors.Join(err, dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return s.URL
}

// post sends a body and returns the status and the answer.
func post(t testing.TB, url, body string, header ...string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

type answer struct {
	ID, Object, Model string
	Choices           []struct {
		Index   int
		Text    string
		Message struct {
			Role, Content string
		}
		Delta struct {
			Role, Content string
		}
		LogProbs struct {
			Content []struct {
				Token string
				Top   []any `json:"top_logprobs"`
			}
			Tokens []string
		}
		Finish string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error struct{ Message, Type, Param, Code string }
}

func ask(t testing.TB, url, body string, header ...string) (int, answer) {
	t.Helper()
	status, b := post(t, url, body, header...)
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return status, a
}

// events reads a stream to its end.
func events(t testing.TB, url, body string) []answer {
	t.Helper()
	_, b := post(t, url, body)
	var list []answer
	lines := bufio.NewScanner(bytes.NewReader(b))
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if done = data == "[DONE]"; done {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		list = append(list, a)
	}
	if !done {
		t.Errorf("the stream does not end with [DONE]: %s", b)
	}
	return list
}

const hello = `"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "logit_bias": {"0": -1000}, "max_tokens": 12`

func TestChat(t *testing.T) {
	url := start(t, 1, serve.Options{}) + "/v1/chat/completions"
	status, whole := ask(t, url, `{`+hello+`}`)
	c := whole.Choices[0]
	if status != 200 || whole.Object != "chat.completion" || whole.Model != "tiny" || len(c.Message.Content) != 12 || c.Message.Role != "assistant" || c.Finish != "length" ||
		whole.Usage.Completion != 12 || whole.Usage.Total != whole.Usage.Prompt+12 {
		t.Errorf("%d, %+v", status, whole)
	}
	text, first, finish := "", true, ""
	list := events(t, url, `{`+hello+`, "stream": true, "stream_options": {"include_usage": true}}`)
	for _, e := range list[:len(list)-1] {
		if e.Object != "chat.completion.chunk" || (e.Choices[0].Delta.Role == "assistant") != first {
			t.Errorf("%+v", e)
		}
		first = false
		text += e.Choices[0].Delta.Content
		finish = e.Choices[0].Finish
	}
	if last := list[len(list)-1]; text != c.Message.Content || finish != "length" || len(last.Choices) != 0 || last.Usage.Completion != 12 {
		t.Errorf("%q, want %q; %s; %+v", text, c.Message.Content, finish, last)
	}
	stop := c.Message.Content[4:6]
	before, _, _ := strings.Cut(c.Message.Content, stop)
	b, _ := json.Marshal(stop)
	if _, a := ask(t, url, `{`+hello+`, "stop": `+string(b)+`}`); a.Choices[0].Message.Content != before || a.Choices[0].Finish != "stop" {
		t.Errorf("stop %q: %+v, want %q", stop, a.Choices, before)
	}
	if _, a := ask(t, url, `{`+hello+`, "n": 3, "temperature": 1, "seed": 7, "logprobs": true, "top_logprobs": 2}`); len(a.Choices) != 3 || a.Choices[2].Index != 2 ||
		len(a.Choices[1].LogProbs.Content) != 12 || len(a.Choices[1].LogProbs.Content[3].Top) != 2 || a.Choices[0].Message.Content == a.Choices[1].Message.Content {
		t.Errorf("%+v", a)
	}
}

// TestFormats checks that answers follow a schema.
func TestFormats(t *testing.T) {
	url := start(t, 1, serve.Options{}) + "/v1/chat/completions"
	schema := `{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false}`
	for seed := range 3 {
		_, a := ask(t, url, fmt.Sprintf(`{"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "seed": %d, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": %s}}}`, seed, schema))
		var v struct{ OK *bool }
		if err := json.Unmarshal([]byte(a.Choices[0].Message.Content), &v); err != nil || v.OK == nil || a.Choices[0].Finish != "stop" {
			t.Errorf("%v, %+v", err, a)
		}
	}
	if _, a := ask(t, url, `{"messages": [{"role": "user", "content": "Hi"}], "grammar": "root ::= \"yes\" | \"no\""}`); a.Choices[0].Message.Content != "yes" && a.Choices[0].Message.Content != "no" {
		t.Errorf("%+v", a)
	}
	if status, b := post(t, url, `{"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "temperature": 0,
		"grammar": "root ::= \"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"x\\\": 1}}</tool_call>\""}`); status != 200 || !bytes.Contains(b, []byte(`"tool_calls"`)) || !bytes.Contains(b, []byte(`"name":"f"`)) {
		t.Errorf("%d, %s", status, b)
	}
}

// TestDefaults sends the values that clients give to fields that they do not use.
func TestDefaults(t *testing.T) {
	url := start(t, 1, serve.Options{})
	for _, c := range []struct{ path, body string }{
		{"completions", `"prompt": "a", "echo": false, "suffix": "", "best_of": 1, "n": 1, "seed": null, "logprobs": null, "stop": null, "logit_bias": {}`},
		{"completions", `"prompt": "a", "echo": null, "suffix": null, "best_of": null, "n": null, "logit_bias": null, "stream_options": null, "user": "me"`},
		{"completions", `"prompt": "a", "best_of": 1, "n": 2`},
		{"chat/completions", `"messages": [{"role": "user", "content": "Hi"}], "tool_choice": "auto", "tools": [], "parallel_tool_calls": true`},
		{"chat/completions", `"messages": [{"role": "user", "content": "Hi"}], "tool_choice": "none", "tools": null, "response_format": null`},
		{"chat/completions", `"messages": [{"role": "user", "content": "Hi"}], "tool_choice": null, "response_format": {"type": "text"}, "top_logprobs": null`},
	} {
		if status, b := post(t, url+"/v1/"+c.path, `{"max_tokens": 2, `+c.body+`}`); status != 200 {
			t.Errorf("%s: %d, %s", c.body, status, b)
		}
	}
	for _, body := range []string{`{"input": "x", "dimensions": null}`, `{"input": "x", "dimensions": 0, "encoding_format": "float", "user": ""}`} {
		if status, b := post(t, url+"/v1/embeddings", body); status != 200 {
			t.Errorf("%s: %d, %s", body, status, b)
		}
	}
}

func TestCompletionsAndEmbeddings(t *testing.T) {
	url := start(t, 1, serve.Options{})
	if _, a := ask(t, url+"/v1/completions", `{"prompt": ["a", "b"], "max_tokens": 5, "temperature": 0, "logit_bias": {"0": -1000}, "logprobs": 1}`); len(a.Choices) != 2 || len(a.Choices[1].Text) != 5 || len(a.Choices[0].LogProbs.Tokens) != 5 {
		t.Errorf("%+v", a)
	}
	// Two texts follow each of two prompts, of 1 and 5 bytes.
	if _, a := ask(t, url+"/v1/completions", `{"prompt": ["a", "ababa"], "n": 2, "max_tokens": 3, "seed": -1, "logit_bias": {"0": -1000}}`); a.Usage.Prompt != 6 || a.Usage.Completion != 12 || a.Usage.Total != 18 {
		t.Errorf("%+v", a)
	}
	if _, a := ask(t, url+"/v1/completions", `{"prompt": "a", "max_completion_tokens": 20, "temperature": 0, "logit_bias": {"0": -1000}}`); a.Usage.Completion != 20 {
		t.Errorf("%+v", a)
	}
	_, b := post(t, url+"/v1/embeddings", `{"input": ["one", "two"], "dimensions": 64}`)
	var e struct {
		Data []struct {
			Embedding []float32
		}
	}
	if err := json.Unmarshal(b, &e); err != nil || len(e.Data) != 2 || len(e.Data[0].Embedding) != 64 {
		t.Errorf("%v: %.200s", err, b)
	}
	if _, b := post(t, url+"/v1/embeddings", `{"input": "one", "encoding_format": "base64"}`); !bytes.Contains(b, []byte(`"embedding":"`)) {
		t.Errorf("%.200s", b)
	}
	for path, want := range map[string]string{"/v1/models": `"id":"tiny"`, "/v1/models/tiny": `"id":"tiny"`, "/health": `"ok"`, "/": "<!doctype html>", "/metrics": "rayo_generated_tokens_total 42"} {
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d, want %s in %.300s", path, r.StatusCode, want, b)
		}
	}
}

// TestRefused sends invalid requests. It checks the status and the error object, and that the server continues.
func TestRefused(t *testing.T) {
	url := start(t, 1, serve.Options{Keys: []string{"secret", "other"}, MaxBody: 10000})
	key := []string{"Authorization", "Bearer other"}
	const chat, text = "/v1/chat/completions", "/v1/completions"
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{chat, `{`, 400, "invalid_json"},
		{chat, `{} {}`, 400, "invalid_json"},
		{chat, `{"messages": 5}`, 400, "invalid_json"},
		{chat, `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "invalid_json"},
		{chat, `{}`, 400, "invalid_request"},
		{chat, `{"messages": [{"role": "nobody", "content": "x"}]}`, 400, "chat_template"},
		{chat, `{` + hello + `, "n": 1000}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "temperature": -1}`, 400, "invalid_sampling"},
		{chat, `{` + hello + `, "logit_bias": {"x": 1}}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "top_logprobs": 1000}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "grammar": "root ::= ("}`, 400, "invalid_grammar"},
		{chat, `{` + hello + `, "response_format": {"type": "xml"}}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}}`, 400, "invalid_value"},
		{chat, `{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]}`, 400, "invalid_value"},
		{chat, `{"messages": [{"role": "user", "content": "` + strings.Repeat("x", 500) + `"}]}`, 400, "context_length_exceeded"},
		{chat, `{"messages": [{"role": "user", "content": "` + strings.Repeat("x", 20000) + `"}]}`, 413, "request_too_large"},
		{text, `{"prompt": []}`, 400, "invalid_value"},
		{text, `{"prompt": "x", "echo": true}`, 400, "invalid_value"},
		{text, `{"prompt": "x", "suffix": "y"}`, 400, "invalid_value"},
		{text, `{"prompt": "x", "best_of": 3, "n": 2}`, 400, "invalid_value"},
		{text, `{"prompt": "x", "seed": 1.5}`, 400, "invalid_json"},
		{text, `{"prompt": "x", "seed": 18446744073709551616}`, 400, "invalid_json"},
		{chat, `{` + hello + `, "tool_choice": "required"}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tool_choice": "sometimes"}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tools": [{"function": {"name": "f"}}], "tool_choice": {"type": "function", "function": {"name": "g"}}}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tools": [{"function": {"name": "f", "parameters": [1]}}], "tool_choice": "required"}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tools": [{"function": {"name": "f", "parameters": {"type": "x"}}}], "tool_choice": "required"}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tools": [{"function": {"name": "f"}}], "tool_choice": "required", "response_format": {"type": "json_object"}}`, 400, "invalid_value"},
		{chat, `{` + hello + `, "tools": [{"function": {"name": "f", "parameters": {"$defs": {"a": {"type": "null"}}}}}, {"function": {"name": "g", "parameters": {"$defs": {"a": {"type": "string"}}}}}], "tool_choice": "required"}`, 400, "invalid_value"},
		{"/v1/embeddings", `{"input": "x", "dimensions": 32}`, 400, "invalid_value"},
		{text, `{"prompt": ""}`, 400, "invalid_request"},
		{text, `{"prompt": [[]]}`, 400, "invalid_request"},
		{text, `{"prompt": [1, -1]}`, 400, "invalid_tokens"},
		{text, `{"prompt": [[1], [1, 1000000]]}`, 400, "invalid_tokens"},
		{text, `{"prompt": [1, 3000000000]}`, 400, "invalid_json"},
		{text, `{"prompt": [1, "a"]}`, 400, "invalid_json"},
		{text, `{"prompt": [1.5]}`, 400, "invalid_json"},
		{text, `{"prompt": [1, null]}`, 400, "invalid_json"},
		{text, `{"prompt": [[1, null]]}`, 400, "invalid_json"},
		{"/v1/embeddings", `{"input": [1, 1000000]}`, 400, "invalid_tokens"},
		{"/v1/embeddings", `{"input": "x", "encoding_format": "hex"}`, 400, "invalid_value"},
		{"/v1/nothing", `{}`, 404, "not_found"},
	} {
		status, a := ask(t, url+c.path, c.body, key...)
		if status != c.status || a.Error.Code != c.code || a.Error.Message == "" {
			t.Errorf("%s %.80s: %d, %+v, want %d, %s", c.path, c.body, status, a.Error, c.status, c.code)
		}
	}
	for _, wrong := range []string{"Bearer secre", "secret2", ""} {
		if status, a := ask(t, url+chat, `{`+hello+`}`, "Authorization", wrong); status != 401 || a.Error.Code != "invalid_api_key" {
			t.Errorf("%q: %d, %+v", wrong, status, a.Error)
		}
	}
	if status, a := ask(t, url+chat, `{`+hello+`}`, append(key, "Origin", "https://example.org")...); status != 403 || a.Error.Code != "cross_origin" {
		t.Errorf("another origin: %d, %+v", status, a.Error)
	}
	if status, _ := ask(t, url+chat, `{`+hello+`}`, append(key, "Origin", url)...); status != 200 {
		t.Errorf("after all of that: %d", status)
	}
}

// TestTokenPrompts checks that prompts of tokens have the answers and the embeddings of the same prompts of text.
func TestTokenPrompts(t *testing.T) {
	url := start(t, 1, serve.Options{})
	tokens, err := tokenizer.New(tinymodel.File(t).Metadata())
	if err != nil {
		t.Fatal(err)
	}
	list := func(text string) string {
		b, _ := json.Marshal(tokens.Encode(text, tokenizer.Options{AddSpecial: true}))
		return string(b)
	}
	complete := func(prompt string) answer {
		status, a := ask(t, url+"/v1/completions", `{"prompt": `+prompt+`, "max_tokens": 8, "temperature": 0, "logit_bias": {"0": -1000}}`)
		if status != 200 {
			t.Fatalf("%s: %d, %+v", prompt, status, a.Error)
		}
		return a
	}
	one, two := complete(`"Once"`), complete(`["Once", "abab"]`)
	if got := complete(list("Once")); got.Choices[0].Text != one.Choices[0].Text || got.Usage != one.Usage {
		t.Errorf("%+v, want %+v", got, one)
	}
	if got := complete("[" + list("Once") + "," + list("abab") + "]"); len(got.Choices) != 2 || got.Choices[1].Text != two.Choices[1].Text || got.Usage != two.Usage {
		t.Errorf("%+v, want %+v", got, two)
	}
	_, want := post(t, url+"/v1/embeddings", `{"input": ["Once", "abab"]}`)
	if _, got := post(t, url+"/v1/embeddings", `{"input": [`+list("Once")+`,`+list("abab")+`]}`); !bytes.Equal(got, want) {
		t.Errorf("embeddings %.200s, want %.200s", got, want)
	}
}

// TestDraft checks that answers are the same with a draft model as without one, and checks the
// counts of guesses.
func TestDraft(t *testing.T) {
	body := `{"prompt": "Once", "max_tokens": 60, "temperature": 0, "logit_bias": {"0": -1000}}`
	_, want := ask(t, start(t, 1, serve.Options{})+"/v1/completions", body)
	url := startDraft(t, 1, serve.Options{})
	for range 2 { // the draft session of the second answer still has the tokens of the first
		if _, a := ask(t, url+"/v1/completions", body); a.Choices[0].Text != want.Choices[0].Text || len(a.Choices[0].Text) != 60 {
			t.Errorf("%q, want %q", a.Choices[0].Text, want.Choices[0].Text)
		}
	}
	_, b := get(t, url+"/metrics")
	var guessed, confirmed int
	for line := range strings.Lines(b) {
		_, _ = fmt.Sscanf(line, "rayo_guessed_tokens_total %d", &guessed)
		_, _ = fmt.Sscanf(line, "rayo_confirmed_tokens_total %d", &confirmed)
	}
	if confirmed < 60 || guessed < confirmed { // the models are the same
		t.Errorf("%d tokens guessed, %d of them right", guessed, confirmed)
	}
}

// startDraft is start with a draft model.
func startDraft(t testing.TB, parallel int, o serve.Options) string {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	draft, err := llm.Load(context.Background(), dev, tinymodel.File(t), llm.Options{Context: 128, Sessions: parallel})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, dev, assistant.Options{Parallel: parallel, Draft: draft}, o)
}

// TestManyClients runs 64 clients at once with prompts of different lengths. Some clients
// disconnect and some read slowly. The others must get the same text as a single client, and no
// goroutine may leak.
func TestManyClients(t *testing.T) {
	t.Run("plain", func(t *testing.T) { manyClients(t, start) })
	t.Run("draft", func(t *testing.T) { manyClients(t, startDraft) })
}

func manyClients(t *testing.T, start func(testing.TB, int, serve.Options) string) {
	t.Cleanup(testutil.Goroutines(t)) // checked after start has closed everything
	url := start(t, 8, serve.Options{Waiting: 1000})
	body := func(i int) string {
		return fmt.Sprintf(`{"prompt": "%s %d", "max_tokens": 20, "temperature": 0, "logit_bias": {"0": -1000}, "stream": %v}`, strings.Repeat("Text ", 1+i%4*6), i%4, i%2 == 0)
	}
	want := make([]string, 4)
	for i := range want {
		_, a := ask(t, url+"/v1/completions", strings.Replace(body(i), "true", "false", 1))
		want[i] = a.Choices[0].Text
	}
	client := &http.Client{Transport: &http.Transport{}}
	var wg sync.WaitGroup
	var good atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(body(i)))
			if i%8 == 5 {
				time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
			}
			resp, err := client.Do(r)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer resp.Body.Close()
			if i%8 == 4 {
				return // disconnects in the middle of the stream
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil && ctx.Err() == nil || resp.StatusCode != 200 {
				t.Errorf("client %d: %d, %v", i, resp.StatusCode, err)
			}
			if ctx.Err() != nil {
				return
			}
			if text := joined(t, b); text != want[i%4] {
				t.Errorf("client %d: %q, want %q", i, text, want[i%4])
			}
			good.Add(1)
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	if good.Load() < 48 {
		t.Errorf("%d clients got an answer", good.Load())
	}
	testutil.Soon(t, "no request is busy", func() bool {
		_, b := get(t, url+"/metrics")
		return strings.Contains(b, "rayo_requests_busy 0")
	})
	http.DefaultClient.CloseIdleConnections()
}

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// joined returns the text of an answer, streamed or not.
func joined(t testing.TB, b []byte) string {
	t.Helper()
	text := ""
	for _, line := range strings.Split(string(b), "\n") {
		line = strings.TrimPrefix(line, "data: ")
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Errorf("%v: %s", err, line)
			return ""
		}
		for _, c := range a.Choices {
			text += c.Text
		}
	}
	return text
}

// TestFull refuses requests while too many wait.
func TestFull(t *testing.T) {
	url := start(t, 1, serve.Options{Waiting: 1})
	long := strings.Replace(hello, `"max_tokens": 12`, `"max_tokens": 0`, 1)
	r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{`+long+`, "stream": true, "n": 16}`))
	if err != nil {
		t.Fatal(err)
	}
	status, a := ask(t, url+"/v1/chat/completions", `{`+hello+`}`)
	r.Body.Close()
	if status != http.StatusTooManyRequests || a.Error.Code != "overloaded" {
		t.Errorf("%d, %+v", status, a.Error)
	}
	testutil.Soon(t, "the first request ends", func() bool {
		status, _ := post(t, url+"/v1/chat/completions", `{`+hello+`}`)
		return status == 200
	})
}

// TestSlow tests a client that does not send its whole request, and an answer that takes longer
// than the limit for requests.
func TestSlow(t *testing.T) {
	url := start(t, 1, serve.Options{ReadTimeout: 300 * time.Millisecond})
	body, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = w.Write([]byte(`{"prompt": "`)) }()
	resp, err := http.Post(url+"/v1/completions", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestTimeout || !bytes.Contains(b, []byte("request_timeout")) {
		t.Errorf("%d, %s", resp.StatusCode, b)
	}
	status, a := ask(t, url+"/v1/completions", `{"prompt": "x", "max_tokens": 120, "n": 16, "logit_bias": {"0": -1000}}`)
	if status != 200 || len(a.Choices) != 16 {
		t.Errorf("%d, %+v", status, a.Error)
	}
}
