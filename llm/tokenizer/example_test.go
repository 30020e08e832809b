package tokenizer_test

import (
	"fmt"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

func Example() {
	// The metadata of a model's file has these keys; this vocabulary has six tokens.
	m := new(gguf.Metadata)
	m.Set("tokenizer.ggml.model", gguf.NewValue("gpt2"))
	m.Set("tokenizer.ggml.pre", gguf.NewValue("gpt-2"))
	m.Set("tokenizer.ggml.tokens", gguf.NewArray([]string{"h", "i", "Ġ", "hi", "Ġhi", "<|end|>"}))
	m.Set("tokenizer.ggml.token_type", gguf.NewArray([]int32{1, 1, 1, 1, 1, 3}))
	m.Set("tokenizer.ggml.merges", gguf.NewArray([]string{"h i", "Ġ hi"}))

	t, err := tokenizer.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := t.Encode("hi hi<|end|>", tokenizer.Options{ParseSpecial: true})
	fmt.Println(ids, t.EndsGeneration(ids[len(ids)-1]))
	fmt.Printf("%q\n", t.Decode(ids, tokenizer.DecodeOptions{}))
	// Output:
	// [3 4 5] true
	// "hi hi"
}

func ExampleTokenizer_Stream() {
	m := new(gguf.Metadata)
	m.Set("tokenizer.ggml.model", gguf.NewValue("gpt2"))
	m.Set("tokenizer.ggml.tokens", gguf.NewArray([]string{"Ã", "©", "t"}))
	m.Set("tokenizer.ggml.merges", gguf.NewArray([]string{}))
	t, err := tokenizer.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := t.Stream(tokenizer.DecodeOptions{})
	for _, id := range t.Encode("été", tokenizer.Options{}) {
		fmt.Printf("%q ", s.Next(id))
	}
	// Output: "" "é" "t" "" "é"
}
