package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/llm"
)

type llmBenchCmd struct {
	modelFlags `embed:""`
	Prompt     []int  `short:"p" default:"512" help:"Prompt lengths to measure, in tokens."`
	Generate   []int  `short:"n" default:"128" help:"Numbers of generated tokens to measure."`
	Depth      []int  `short:"d" default:"0" help:"Numbers of tokens in the cache before each measurement."`
	Batch      []int  `short:"b" default:"1" help:"Numbers of texts to generate at once. The speed is the sum of all texts."`
	Runs       int    `short:"r" default:"5" help:"Number of runs of each measurement."`
	JSON       bool   `name:"json" help:"Write JSON."`
	Plot       string `type:"path" placeholder:"FILE" help:"Write a plot to this file, as SVG."`
}

// llmRow is a measurement, in tokens per second.
type llmRow struct {
	Test  string  `json:"test"` // pp512 or tg128, as llama-bench names them
	Depth int     `json:"depth"`
	Batch int     `json:"batch"` // the number of texts at once
	Mean  float64 `json:"tokens_per_second"`
	SD    float64 `json:"sd"`
}

func (c *llmBenchCmd) Run(a *app) error {
	most, texts, err := c.check()
	if err != nil {
		return err
	}
	if c.Context == 0 {
		c.Context = 2*most + 1
	}
	as, dev, err := c.open(a.ctx, texts)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer as.Close()
	rows, err := c.rows(a.ctx, as.Model())
	if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := writePlot(c.Plot, fmt.Sprintf("%s on %v", plain(as.Name()), dev), rows); err != nil {
			return err
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
	fmt.Fprintln(w, "test\tdepth\tbatch\ttokens/s\t±\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t\n", r.Test, r.Depth, r.Batch, r.Mean, r.SD)
	}
	return w.Flush()
}

// check returns the largest number of tokens in a list, and the largest number of texts at once.
func (c *llmBenchCmd) check() (most, texts int, err error) {
	for _, list := range [][]int{c.Prompt, c.Generate, c.Depth} {
		for _, n := range list {
			if n < 0 || n > 1<<24 {
				return 0, 0, fmt.Errorf("a number of tokens is %d: expected 0 to %d", n, 1<<24)
			}
			most = max(most, n)
		}
	}
	for _, n := range c.Batch {
		if n < 1 || n > 1<<10 {
			return 0, 0, fmt.Errorf("--batch is %d: expected 1 to %d", n, 1<<10)
		}
		texts = max(texts, n)
	}
	if c.Runs < 1 {
		return 0, 0, fmt.Errorf("--runs is %d: expected 1 or more", c.Runs)
	}
	return most, texts, nil
}

// rows measures everything.
func (c *llmBenchCmd) rows(ctx context.Context, m *llm.Model) ([]llmRow, error) {
	rows := []llmRow{}
	for _, depth := range c.Depth {
		for _, t := range []struct {
			name             string
			lengths, batches []int
			run              func(ctx context.Context, s *llm.Session, n int) error
		}{{"pp", c.Prompt, []int{1}, feedPrompt}, {"tg", c.Generate, c.Batch, feedSingly}} {
			for _, n := range t.lengths {
				for _, batch := range t.batches {
					if n == 0 {
						continue
					}
					row, err := c.measure(ctx, m, depth, n, batch, t.run)
					if err != nil {
						return nil, err
					}
					row.Test = fmt.Sprint(t.name, n)
					rows = append(rows, row)
				}
			}
		}
	}
	return rows, nil
}

// measure runs a test once to warm up, and then Runs times, with batch sessions at once.
func (c *llmBenchCmd) measure(ctx context.Context, m *llm.Model, depth, n, batch int, run func(context.Context, *llm.Session, int) error) (llmRow, error) {
	open := m.NewSession
	if batch > 1 {
		sch := m.NewScheduler(batch)
		defer sch.Close()
		open = sch.NewSession
	}
	sessions := make([]*llm.Session, batch)
	for i := range sessions {
		sessions[i] = open()
		defer sessions[i].Close()
		if depth > 0 {
			if err := sessions[i].Feed(ctx, randomTokens(m, depth)); err != nil {
				return llmRow{}, err
			}
		}
	}
	row, square := llmRow{Depth: depth, Batch: batch}, 0.0
	for i := range c.Runs + 1 {
		start := time.Now()
		errs := make([]error, batch)
		var all sync.WaitGroup
		for j, s := range sessions {
			all.Go(func() { errs[j] = run(ctx, s, n) })
		}
		all.Wait()
		rate := float64(n*batch) / time.Since(start).Seconds()
		for _, s := range sessions {
			errs = append(errs, s.Rewind(depth))
		}
		if err := errors.Join(errs...); err != nil {
			return llmRow{}, err
		}
		if i > 0 {
			row.Mean += rate / float64(c.Runs)
			square += rate * rate / float64(c.Runs)
		}
	}
	row.SD = math.Sqrt(max(square-row.Mean*row.Mean, 0))
	return row, nil
}

// randomTokens returns random tokens of the vocabulary. They differ in each call, because a model computes a common
// beginning of prompts only once.
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
