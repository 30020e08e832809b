package gguf

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rayo-go/rayo/gguf/block"
)

// BenchmarkOpen reads the part before the tensors of a file: a model of 7 billion parameters with a vocabulary of
// 128,256 tokens and its merges.
func BenchmarkOpen(b *testing.B) {
	m := &Metadata{}
	const vocab = 128256
	tokens, types, merges, scores := make([]string, vocab), make([]int32, vocab), make([]string, 280147), make([]float32, vocab)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("Ġtoken%d", i)
	}
	for i := range merges {
		merges[i] = fmt.Sprintf("Ġto ken%d", i)
	}
	for k, v := range map[string]Value{"general.architecture": NewValue("llama"), "tokenizer.ggml.tokens": NewArray(tokens), "tokenizer.ggml.token_type": NewArray(types), "tokenizer.ggml.merges": NewArray(merges), "tokenizer.ggml.scores": NewArray(scores)} {
		if err := m.Set(k, v); err != nil {
			b.Fatal(err)
		}
	}
	var infos []TensorInfo
	for i := range 291 {
		infos = append(infos, TensorInfo{fmt.Sprintf("blk.%d.attn_q.weight", i), block.Q4_K, []int64{4096, 4096}})
	}
	var buf bytes.Buffer
	if _, err := NewWriter(&buf, m, infos); err != nil {
		b.Fatal(err)
	}
	size := int64(buf.Len())
	for _, i := range infos {
		n, err := i.Size()
		if err != nil {
			b.Fatal(err)
		}
		size += n
	}
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(buf.Len()))
		for b.Loop() {
			f, err := NewReader(padded(buf.Bytes()), size)
			if err != nil || f.NumTensors() != len(infos) {
				b.Fatal(f, err)
			}
		}
	})
	b.Run("read", func(b *testing.B) { // the header alone, without parsing it
		b.SetBytes(int64(buf.Len()))
		for b.Loop() {
			if _, err := padded(buf.Bytes()).ReadAt(make([]byte, buf.Len()), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpenMalformed opens the files of the corpus, a run each: none may take 100 ms. Its
// metric worst-µs is that of the file with the longest fastest run.
func BenchmarkOpenMalformed(b *testing.B) {
	files := corpus(b)
	delete(files, "manifest.json")
	fastest := map[string]time.Duration{}
	for b.Loop() {
		for name, f := range files {
			start := time.Now()
			_, _ = open(f)
			if d, known := fastest[name]; !known || time.Since(start) < d {
				fastest[name] = time.Since(start)
			}
		}
	}
	worst := slices.MaxFunc(slices.Collect(maps.Keys(fastest)), func(x, y string) int { return cmp.Compare(fastest[x], fastest[y]) })
	b.Logf("%s takes %v", worst, fastest[worst])
	b.ReportMetric(float64(fastest[worst].Nanoseconds())/1e3, "worst-µs")
}

// padded is a file that is followed by zeros.
type padded []byte

func (p padded) ReadAt(b []byte, off int64) (int, error) {
	n := copy(b, p[min(off, int64(len(p))):])
	clear(b[n:])
	return len(b), nil
}
