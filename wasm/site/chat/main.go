//go:build js

// Command chat is the program behind the chat of the demo site. It runs in a Worker, where
// chat-worker.mjs gives it the model as a Blob and takes the text piece by piece.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall/js"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/chat"
	"github.com/rayo-go/rayo/wasm/bridge"
)

const (
	// maxContext is the largest number of tokens of a conversation. It bounds the memory of the cache.
	maxContext = 2048
	// chunk is the number of tokens of a prompt that are computed between two checks of Stop.
	chunk = 32
	// maxAnswer is the largest number of tokens of an answer.
	maxAnswer = 512
)

func main() {
	t := &talk{stop: func() {}}
	js.Global().Call("rayoReady", map[string]any{
		"load": bridge.Func(t.load),
		"say":  bridge.Func(t.say),
		"stop": js.FuncOf(func(js.Value, []js.Value) any { t.stop(); return nil }),
	})
	select {}
}

// talk is an open model. The Worker calls its methods one after the other, except stop.
type talk struct {
	a    *assistant.Assistant
	stop context.CancelFunc
}

// load opens a device and loads the model. The arguments are the name of the device, in the syntax of
// RAYO_DEVICE, or "" for the best one; the Blob; and a function that is called with the number of bytes
// that were read.
func (t *talk) load(args []js.Value) (any, error) {
	ctx := context.Background()
	if err := os.Setenv("RAYO_DEVICE", args[0].String()); err != nil {
		return nil, err
	}
	dev, err := device.Open(ctx)
	if err != nil {
		return nil, err
	}
	b := &blob{ctx: ctx, v: args[1], progress: args[2]}
	f, err := gguf.NewReader(b, int64(b.v.Get("size").Float()))
	if err == nil {
		arch, _ := f.Metadata().Text("general.architecture")
		trained, _ := f.Metadata().Uint(arch + ".context_length")
		t.a, err = assistant.Load(ctx, dev, f, assistant.Options{Model: llm.Options{Context: int(min(trained, maxContext)), Chunk: chunk}})
	}
	if err != nil {
		dev.Close()
		return nil, err
	}
	info := dev.Info()
	refused := ""
	for _, r := range dev.Refused() {
		if r.Kind == device.WebGPU {
			refused = r.Err.Error()
		}
	}
	return map[string]any{
		"name": t.a.Name(), "context": t.a.Model().Context(), "template": t.a.Template() != nil,
		"kind": info.Kind.String(), "device": info.Name, "detail": info.Detail, "refused": refused,
	}, nil
}

// say answers a conversation. The arguments are an array of messages with role and content, the
// temperature, and a function that is called with each piece of text and an array of its tokens. It
// returns the time of the answer.
func (t *talk) say(args []js.Value) (any, error) {
	if t.a == nil {
		return nil, fmt.Errorf("no model is loaded: call load first: %w", device.ErrNoDevice)
	}
	r := assistant.Request{Sampling: llm.Sampling{Temperature: float32(args[1].Float()), TopP: 0.9, MaxTokens: maxAnswer, Seed: uint64(time.Now().UnixNano())}}
	if t.a.Template() == nil {
		r.Prompt = args[0].Index(args[0].Length() - 1).Get("content").String()
	} else {
		r.Chat = &chat.Input{}
		for i := range args[0].Length() {
			m := args[0].Index(i)
			r.Chat.Messages = append(r.Chat.Messages, chat.Message{Role: m.Get("role").String(), Content: m.Get("content").String()})
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	t.stop = stop
	began := time.Now()
	var first time.Time
	var last assistant.Piece
	for p, err := range t.a.Generate(ctx, r) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		if first.IsZero() {
			first = time.Now()
		}
		last = p
		ids := []any{}
		for _, token := range p.Tokens {
			ids = append(ids, int(token.ID))
		}
		args[2].Invoke(p.Text, ids)
		// The Worker handles messages meanwhile, for example stop.
		if _, err := bridge.Await(ctx, js.Global().Call("rayoTurn")); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	out := map[string]any{"finish": string(last.Finish), "prompt": last.Usage.Prompt, "cached": last.Usage.Cached, "generated": last.Usage.Generated}
	if !first.IsZero() {
		out["firstMs"] = float64(first.Sub(began)) / 1e6
		out["restMs"] = float64(time.Since(first)) / 1e6
	}
	return out, nil
}
