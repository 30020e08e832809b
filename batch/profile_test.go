package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

func TestProfileAccountsForEveryStep(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	n := 64
	x := b.Upload(make([]float32, n*n), n, n)
	odd := op.Unary("od\"d\n", func(x op.Expr) op.Expr { return x.Exp() })
	y := b.Softmax(b.Add(b.MatMul(x, x, batch.None), b.Map(odd, x)))
	p, err := b.Profile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := batch.Read[float32](ctx, b, y); err != nil {
		t.Error(err)
	}
	share, flops := 0.0, 0.0
	for _, s := range p.Steps {
		share += s.Share
		flops += s.Flops
		if s.Time.Min > s.Time.P50 || s.Time.P50 > s.Time.P95 || s.Time.P99 > s.Time.Max || s.Time.Max <= 0 {
			t.Errorf("%s: %+v", s.Name, s.Time)
		}
		if s.Bytes < int64(4*n*n) {
			t.Errorf("%s moves %d bytes", s.Name, s.Bytes)
		}
	}
	if share < 0.99 || share > 1.01 {
		t.Errorf("shares add up to %v", share)
	}
	if flops < 2*float64(n*n*n) {
		t.Errorf("%v operations, less than the product alone", flops)
	}
	var trace struct {
		TraceEvents []struct {
			Name    string
			Ph      string
			Ts, Dur float64
		}
	}
	var buf bytes.Buffer
	if err := p.WriteTrace(&buf); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(buf.Bytes(), &trace); err != nil {
		t.Fatalf("%v in %s", err, buf.Bytes())
	}
	last := 0.0
	for _, e := range trace.TraceEvents[1:] {
		if e.Ph != "X" || e.Ts < last || e.Dur < 0 {
			t.Errorf("event %+v after %v", e, last)
		}
		last = e.Ts + e.Dur
	}
	if len(trace.TraceEvents) != 1+len(p.Steps) {
		t.Errorf("%d events for %d steps", len(trace.TraceEvents), len(p.Steps))
	}
	if s := p.String(); !strings.Contains(s, "matmul") || !strings.Contains(s, "takes") {
		t.Errorf("table: %s", s)
	}
}

func TestBaselineComesBack(t *testing.T) {
	b := batch.New(openCPU(t))
	b.Relu(b.Upload(make([]float32, 1000)))
	p, err := b.Profile(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := p.Baseline().WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	old, err := batch.ReadBaseline(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Compare(old); !strings.Contains(s, "1.00") || !strings.Contains(s, "relu") {
		t.Errorf("comparison with itself: %s", s)
	}
	for _, bad := range []string{"", "x", "rayo-baseline 1\n", "rayo-baseline 1\n-5 x\n", "rayo-baseline 1\n5\n"} {
		if _, err := batch.ReadBaseline(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzReadBaseline(f *testing.F) {
	f.Add("rayo-baseline 1\n5 cpu\n7 relu\n")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := batch.ReadBaseline(strings.NewReader(s))
		if err != nil {
			return
		}
		var buf bytes.Buffer
		b.WriteTo(&buf)
		c, err := batch.ReadBaseline(&buf)
		if err != nil || len(c.Steps) != len(b.Steps) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
