package grammar

import (
	"math/rand/v2"
	"testing"
)

// largeVocabulary returns a vocabulary of 128 thousand tokens, which are mostly letters as in real models.
func largeVocabulary() *Vocabulary {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	var tokens [][]byte
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			tokens = append(tokens, []byte(s))
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for i := range 1000 {
		add(string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)}))
	}
	const letters = "etaoinshrdlucmfwypvbgkETAOIN"
	ends := []string{"", "", "", "", "", "", "", "", "", "", "", "", "\"", "\",", "\":", ",", ".", "\n", "}", "日本"}
	for len(tokens) < 128000 {
		s := ""
		if rng.IntN(2) == 0 {
			s = " "
		}
		for range 1 + rng.IntN(8) {
			s += string(letters[min(rng.IntN(len(letters)), rng.IntN(len(letters)))])
		}
		add(s + ends[rng.IntN(len(ends))])
	}
	return NewVocabulary(tokens)
}

const benchSchema = `{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0},
	"tags": {"type": "array", "items": {"type": "string", "maxLength": 40}}, "home": {"type": "object"}}, "required": ["name", "age"]}`

const benchText = `{"name": "Somebody with a long name", "age": 31, "tags": ["one", "two and three", "four"], "home": {"city": "Bonn", "near": [1, 2.5, {"x": null}]}}`

// BenchmarkAllowed accepts a text byte by byte and computes the mask after each byte.
func BenchmarkAllowed(b *testing.B) {
	v := largeVocabulary()
	run := func(b *testing.B, g *Grammar) {
		m := g.Matcher(v)
		for i := range benchText {
			if _, err := m.Allowed(); err != nil {
				b.Fatal(err)
			}
			if err := m.AcceptText([]byte{benchText[i]}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			g, err := FromJSONSchema([]byte(benchSchema))
			if err != nil {
				b.Fatal(err)
			}
			run(b, g)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(benchText)), "µs/mask")
	})
	b.Run("again", func(b *testing.B) {
		g, err := FromJSONSchema([]byte(benchSchema))
		if err != nil {
			b.Fatal(err)
		}
		run(b, g)
		for b.Loop() {
			run(b, g)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(benchText)), "µs/mask")
	})
	b.Run("vocabulary", func(b *testing.B) {
		for b.Loop() {
			NewVocabulary(v.tokens)
		}
	})
}
