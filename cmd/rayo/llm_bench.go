package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/llm"
)

type llmBenchCmd struct {
	modelFlags `embed:""`
	Prompt     []int `short:"p" default:"512" help:"Prompt lengths to measure, in tokens."`
	Generate   []int `short:"n" default:"128" help:"Numbers of generated tokens to measure."`
	Depth      []int `short:"d" default:"0" help:"Numbers of tokens in the cache before each measurement."`
	Runs       int   `short:"r" default:"5" help:"Number of runs of each measurement."`
	JSON       bool  `name:"json" help:"Write JSON."`
}

// llmRow is a measurement: tokens a second.
type llmRow struct {
	Test  string  `json:"test"` // pp512 or tg128, as llama-bench names them
	Depth int     `json:"depth"`
	Mean  float64 `json:"tokens_per_second"`
	SD    float64 `json:"sd"`
}

func (c *llmBenchCmd) Run(a *app) error {
	most := 0
	for _, list := range [][]int{c.Prompt, c.Generate, c.Depth} {
		for _, n := range list {
			if n < 0 {
				return fmt.Errorf("%d tokens, want 0 or more", n)
			}
			most = max(most, n)
		}
	}
	if c.Runs < 1 {
		return fmt.Errorf("--runs is %d, want 1 or more", c.Runs)
	}
	if c.Context == 0 {
		c.Context = 2*most + 1
	}
	as, dev, err := c.open(a.ctx, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer as.Close()
	rows := []llmRow{}
	for _, depth := range c.Depth {
		for _, t := range []struct {
			name    string
			lengths []int
			run     func(ctx context.Context, s *llm.Session, n int) error
		}{{"pp", c.Prompt, feedPrompt}, {"tg", c.Generate, feedSingly}} {
			for _, n := range t.lengths {
				if n == 0 {
					continue
				}
				row, err := c.measure(a.ctx, as.Model(), depth, n, t.run)
				if err != nil {
					return err
				}
				row.Test = fmt.Sprint(t.name, n)
				rows = append(rows, row)
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(a.out).Encode(struct {
			Model  string   `json:"model"`
			Device string   `json:"device"`
			Rows   []llmRow `json:"rows"`
		}{as.Name(), dev.String(), rows})
	}
	fmt.Fprintf(a.out, "%s on %v\n\n", plain(as.Name()), dev)
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "test\tdepth\ttokens/s\t±\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t\n", r.Test, r.Depth, r.Mean, r.SD)
	}
	return w.Flush()
}

// measure runs a test once to warm up, then Runs times.
func (c *llmBenchCmd) measure(ctx context.Context, m *llm.Model, depth, n int, run func(context.Context, *llm.Session, int) error) (llmRow, error) {
	s := m.NewSession()
	defer s.Close()
	if depth > 0 {
		if err := s.Feed(ctx, randomTokens(m, depth)); err != nil {
			return llmRow{}, err
		}
	}
	row, square := llmRow{Depth: depth}, 0.0
	for i := range c.Runs + 1 {
		start := time.Now()
		if err := run(ctx, s, n); err != nil {
			return llmRow{}, err
		}
		if rate := float64(n) / time.Since(start).Seconds(); i > 0 {
			row.Mean += rate / float64(c.Runs)
			square += rate * rate / float64(c.Runs)
		}
		if err := s.Rewind(depth); err != nil {
			return llmRow{}, err
		}
	}
	row.SD = math.Sqrt(max(square-row.Mean*row.Mean, 0))
	return row, nil
}

// randomTokens returns tokens of the vocabulary. Different ones each time: prompts that begin alike are computed once.
func randomTokens(m *llm.Model, n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = rand.Int32N(int32(m.Config().Vocabulary))
	}
	return tokens
}

// feedPrompt computes n tokens at once.
func feedPrompt(ctx context.Context, s *llm.Session, n int) error {
	return s.Feed(ctx, randomTokens(s.Model(), n))
}

// feedSingly computes n tokens one by one.
func feedSingly(ctx context.Context, s *llm.Session, n int) error {
	for _, t := range randomTokens(s.Model(), n) {
		if err := s.Feed(ctx, []int32{t}); err != nil {
			return err
		}
	}
	return nil
}
