package llm_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/llm"
)

// open loads the tiny model of the examples; a model in a file is loaded by [llm.Open].
func open(ctx context.Context) (*device.Device, *llm.Model) {
	f, err := os.Open("testdata/llama.gguf.gz")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		log.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		log.Fatal(err)
	}
	file, err := gguf.NewBytes(raw)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		log.Fatal(err)
	}
	m, err := llm.Load(ctx, dev, file, llm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return dev, m
}

func ExampleSession_Generate() {
	ctx := context.Background()
	dev, m := open(ctx)
	defer dev.Close()
	defer m.Close()
	s := m.NewSession()
	defer s.Close()
	for t, err := range s.Generate(ctx, []int32{3, 1, 4}, llm.Sampling{MaxTokens: 5}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.ID)
	}
	fmt.Println(s.Len(), "tokens")
	// Output:
	// 65
	// 65
	// 65
	// 65
	// 65
	// 8 tokens
}

// A fork continues independently from the position of the session.
func ExampleSession_Fork() {
	ctx := context.Background()
	dev, m := open(ctx)
	defer dev.Close()
	defer m.Close()
	s := m.NewSession()
	defer s.Close()
	if err := s.Feed(ctx, []int32{3, 1, 4}); err != nil {
		log.Fatal(err)
	}
	for seed := range uint64(2) {
		f, err := s.Fork()
		if err != nil {
			log.Fatal(err)
		}
		n := 0
		for _, err := range f.Generate(ctx, nil, llm.Sampling{Temperature: 1, Seed: seed, MaxTokens: 10}) {
			if err != nil {
				log.Fatal(err)
			}
			n++
		}
		fmt.Println(n, "tokens behind", s.Len())
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 10 tokens behind 3
	// 10 tokens behind 3
}
