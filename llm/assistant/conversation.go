package assistant

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/chat"
)

// Conversation is a chat with a model. It belongs to one goroutine.
type Conversation struct {
	// Messages are the messages so far. They may be changed between calls of Say.
	Messages []chat.Message
	// Sampling has the options for the answers.
	Sampling llm.Sampling

	a *Assistant
}

// NewConversation returns a conversation that begins with a system message, or without one if
// system is empty.
func (a *Assistant) NewConversation(system string) *Conversation {
	c := &Conversation{a: a}
	if system != "" {
		c.Messages = []chat.Message{{Role: "system", Content: system}}
	}
	return c
}

// Request returns the request for the next message of the user, after the messages of the
// conversation, for [Assistant.Generate]. It does not change the conversation.
func (c *Conversation) Request(text string) Request {
	messages := append(slices.Clone(c.Messages), chat.Message{Role: "user", Content: text})
	return Request{Chat: &chat.Input{Messages: messages}, Sampling: c.Sampling}
}

// Say adds a message of the user and returns the answer, piece by piece. It adds the answer as a
// message too; if the caller leaves the loop, it adds the part that was returned. An error leaves
// the conversation unchanged. See [Assistant.Generate] for errors.
func (c *Conversation) Say(ctx context.Context, text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		r := c.Request(text)
		var answer strings.Builder
		for p, err := range c.a.Generate(ctx, r) {
			if err != nil {
				yield("", err)
				return
			}
			answer.WriteString(p.Text)
			if p.Text != "" && !yield(p.Text, nil) {
				break
			}
		}
		c.Messages = append(r.Chat.Messages, chat.Message{Role: "assistant", Content: answer.String()})
	}
}
