package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"github.com/openai/openai-go/shared"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/serve"
)

// connect returns a client of a server with a tiny model.
func connect(t *testing.T) openai.Client {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	a, err := assistant.Load(context.Background(), dev, tinymodel.File(t), assistant.Options{Model: llm.Options{Context: 256}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(serve.New(a, serve.Options{Keys: []string{"key"}}))
	t.Cleanup(func() {
		s.Close()
		if err := errors.Join(a.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return openai.NewClient(option.WithBaseURL(s.URL+"/v1"), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

// params requests exactly twelve tokens.
func params() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       "tiny",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("Hello")},
		MaxTokens:   openai.Int(12),
		Temperature: openai.Float(0),
		LogitBias:   map[string]int64{"0": -100},
		Seed:        openai.Int(1),
	}
}

func TestChat(t *testing.T) {
	c := connect(t)
	whole, err := c.Chat.Completions.New(t.Context(), params())
	if err != nil {
		t.Fatal(err)
	}
	text := whole.Choices[0].Message.Content
	if len(text) != 12 || whole.Choices[0].FinishReason != "length" || whole.Usage.CompletionTokens != 12 {
		t.Errorf("%+v", whole)
	}
	stream := c.Chat.Completions.NewStreaming(t.Context(), params())
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("a part that does not belong to the answer: %+v", stream.Current())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got := all.Choices[0].Message.Content; got != text || all.Choices[0].FinishReason != "length" {
		t.Errorf("%q in parts, %q whole, %s", got, text, all.Choices[0].FinishReason)
	}
}

func TestSchema(t *testing.T) {
	c := connect(t)
	p := params()
	p.MaxTokens = openai.Int(100)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name:   "answer",
		Schema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}, "required": []string{"ok"}, "additionalProperties": false},
	}}}
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ OK *bool }
	if err := json.Unmarshal([]byte(whole.Choices[0].Message.Content), &v); err != nil || v.OK == nil {
		t.Errorf("%v: %q", err, whole.Choices[0].Message.Content)
	}
}

func TestOthers(t *testing.T) {
	c := connect(t)
	e, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "tiny", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two"}}})
	if err != nil || len(e.Data) != 2 || len(e.Data[1].Embedding) != 64 {
		t.Errorf("%v, %+v", err, e)
	}
	m, err := c.Models.List(t.Context())
	if err != nil || len(m.Data) != 1 || m.Data[0].ID != "tiny" {
		t.Errorf("%v, %+v", err, m)
	}
	if _, err := c.Completions.New(t.Context(), openai.CompletionNewParams{Model: "tiny", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("x")}, MaxTokens: openai.Int(3)}); err != nil {
		t.Error(err)
	}
}

// TestErrors checks that the client decodes the error messages of the server.
func TestErrors(t *testing.T) {
	c := connect(t)
	p := params()
	p.Temperature = openai.Float(-1)
	_, err := c.Chat.Completions.New(t.Context(), p)
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != 400 || e.Code != "invalid_sampling" || e.Message == "" {
		t.Errorf("%v", err)
	}
	_, err = c.Chat.Completions.New(t.Context(), params(), option.WithAPIKey("wrong"))
	if !errors.As(err, &e) || e.StatusCode != 401 || e.Code != "invalid_api_key" {
		t.Errorf("%v", err)
	}
}
