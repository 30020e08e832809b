package grammar_test

import (
	"fmt"

	"github.com/rayo-go/rayo/llm/grammar"
)

func Example() {
	g, err := grammar.Parse(`root ::= "yes" | "no" [!.]?`)
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens := [][]byte{[]byte("y"), []byte("no"), []byte("es"), []byte("yes"), []byte("."), []byte("n")}
	m := g.Matcher(grammar.NewVocabulary(tokens))
	for _, id := range []int32{1, 4} {
		allowed, err := m.Allowed()
		if err != nil {
			fmt.Println(err)
			return
		}
		for t := range tokens {
			if allowed.Has(int32(t)) {
				fmt.Printf("%s ", tokens[t])
			}
		}
		err = m.Accept(id)
		fmt.Println("->", string(tokens[id]), m.Done(), err)
	}
	fmt.Println(m.Accept(4))
	// Output:
	// y no yes n -> no true <nil>
	// . -> . true <nil>
	// grammar: the grammar does not allow the text: byte 0 of "."
}

func ExampleFromJSONSchema() {
	g, err := grammar.FromJSONSchema([]byte(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
		"required": ["city"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v := grammar.NewVocabulary(nil)
	for _, text := range []string{`{"city": "Bonn", "days": 14}`, `{"city": "Bonn"}`, `{"city": "Bonn", "days": 15}`, `{"days": 3}`} {
		m := g.Matcher(v)
		err := m.AcceptText([]byte(text))
		fmt.Println(text, err == nil && m.Done())
	}
	// Output:
	// {"city": "Bonn", "days": 14} true
	// {"city": "Bonn"} true
	// {"city": "Bonn", "days": 15} false
	// {"days": 3} false
}
