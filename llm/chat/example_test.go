package chat_test

import (
	"fmt"

	"github.com/rayo-go/rayo/llm/chat"
)

func Example() {
	t, err := chat.Parse(`{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content | trim }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt, err := t.Render(&chat.Input{
		Messages:            []chat.Message{{Role: "user", Content: "How are you? "}},
		AddGenerationPrompt: true,
	}, chat.Limits{})
	fmt.Print(prompt, err)
	// Output:
	// <|im_start|>user
	// How are you?<|im_end|>
	// <|im_start|>assistant
	// <nil>
}

func ExampleParseToolCalls() {
	content, calls := chat.ParseToolCalls(chat.Hermes, `Let me see. <tool_call>{"name": "weather", "arguments": {"city": "Bonn"}}</tool_call>`)
	fmt.Println(content)
	for _, c := range calls {
		fmt.Println(c.ID, c.Name, string(c.Arguments))
	}
	// Output:
	// Let me see.
	// call_0 weather {"city": "Bonn"}
}
