//go:build unix && browser

// The chat of the demo site in headless Chromium, with a model of random weights: its tokens are
// compared with those of the native CPU.
package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/chrome"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/chat"
)

const message = "How are you?"

// native returns the tokens of the answer that the native CPU computes, up to the first token that another
// order of additions may change.
func (s *site) native(t *testing.T) []int {
	t.Helper()
	a, err := assistant.Load(s.ctx, s.cpu, tinymodel.File(t), assistant.Options{Model: llm.Options{Exact: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	messages := []chat.Message{{Role: "system", Content: "You are a helpful assistant. Answer briefly."}, {Role: "user", Content: message}}
	var ids []int
answer:
	for p, err := range a.Generate(s.ctx, assistant.Request{Chat: &chat.Input{Messages: messages}, Sampling: llm.Sampling{MaxTokens: 40, LogProbs: true, TopLogProbs: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range p.Tokens {
			if math.Abs(float64(token.Top[0].LogProb-token.Top[1].LogProb)) < 1e-3 {
				break answer
			}
			ids = append(ids, int(token.ID))
		}
	}
	if len(ids) < 10 {
		t.Fatalf("only %d tokens to compare with: %v", len(ids), ids)
	}
	return ids
}

// say types a message, sends it, and returns the tokens of the answer. If stopAfter is not 0, it presses
// Escape after that many tokens.
func say(t *testing.T, p *chrome.Page, stopAfter int) (ids []int, note string) {
	t.Helper()
	p.Eval(fmt.Sprintf(`(() => {
		const $ = (id) => document.getElementById(id);
		$("temperature").value = 0;
		$("temperature").dispatchEvent(new Event("input"));
		$("text").focus();
		const watch = new MutationObserver(() => {
			const answer = $("log").querySelector(".assistant:last-child p");
			if (answer?.tokens?.length >= %[1]d && %[1]d > 0) {
				watch.disconnect();
				document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
			}
		});
		watch.observe($("log"), { childList: true, subtree: true, characterData: true });
	})()`, stopAfter), nil)
	p.Key(message)
	p.Key("Enter")
	p.Wait(`document.querySelector("#log .assistant:last-child")?.dataset.tokens && document.body.dataset.state === "ready"`)
	p.Eval(`JSON.parse(document.querySelector("#log .assistant:last-child").dataset.tokens)`, &ids)
	p.Eval(`document.getElementById("note").textContent`, &note)
	return ids, note
}

// chat opens the page of the chat. The page then offers to load the model, or loads it from the cache.
func (s *site) chat(t *testing.T, base, query, state string) *chrome.Page {
	t.Helper()
	p := s.page(t, base, "chat.html"+query)
	p.Wait(fmt.Sprintf(`document.body.dataset.state === %q`, state))
	return p
}

func TestChat(t *testing.T) {
	s := newSite(t, tinymodel.Path(t))
	want := s.native(t)
	load := func(p *chrome.Page) {
		p.Click("#load")
		p.Wait(`document.body.dataset.state === "ready"`)
	}
	compare := func(t *testing.T, got []int) {
		t.Helper()
		n := min(len(got), len(want))
		if n < 3 || !slices.Equal(got[:n], want[:n]) {
			t.Errorf("the tokens of the page's answer are %v, those of the native CPU %v", got, want)
		}
	}
	fetched := func(p *chrome.Page) bool {
		return slices.ContainsFunc(p.Requests(), func(u string) bool { return strings.HasSuffix(u, ".gguf") })
	}
	t.Run("cpu", func(t *testing.T) {
		p := s.chat(t, s.url, "?device=cpu", "offered")
		load(p)
		got, note := say(t, p, 0)
		compare(t, got)
		if !strings.Contains(note, "tokens a second") {
			t.Errorf("the page says %q", note)
		}
		accessible(t, p, "skip", "forget", "device", "temperature", "log", "text", "send", "new")
		s.looks(t, p, "chat-")
	})
	t.Run("from the cache", func(t *testing.T) {
		p := s.chat(t, s.url, "?device=cpu", "ready")
		if fetched(p) {
			t.Error("the page fetched the model again instead of reading it from the cache")
		}
		got, note := say(t, p, 5)
		compare(t, got)
		if !strings.HasPrefix(note, "Stopped: ") || len(got) > 200 {
			t.Errorf("after Escape the answer has %d tokens, and the page says %q", len(got), note)
		}
		p.Click("#new")
		p.Wait(`document.querySelectorAll("#log article").length === 0`)
		got, _ = say(t, p, 20)
		compare(t, got)
		p.Click("#forget")
		p.Wait(`document.getElementById("forget").hidden`)
		s.chat(t, s.url, "?device=cpu", "offered")
	})
	// Pages that another machine sends by http have no Cache API.
	t.Run("no cache", func(t *testing.T) {
		p := s.chat(t, strings.Replace(s.url, "127.0.0.1", "rayo.test", 1), "", "offered")
		load(p)
		p.Wait(`document.getElementById("about").textContent.includes("does not keep it")`)
		got, _ := say(t, p, 10)
		compare(t, got)
	})
}
