package llm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
)

// benchSizes are the sizes of a synthetic llama.
type benchSizes struct {
	layers, width, heads, kvHeads, ff, vocabulary int

	experts, used int // experts of width ff; 0 for none
}

// benchModels are a small model, one with the sizes of TinyLlama, and one with experts.
var benchModels = map[string]benchSizes{
	"135M":    {layers: 30, width: 576, heads: 9, kvHeads: 3, ff: 1536, vocabulary: 49152},
	"1.1B":    {layers: 22, width: 2048, heads: 32, kvHeads: 4, ff: 5632, vocabulary: 32000},
	"experts": {layers: 8, width: 1024, heads: 16, kvHeads: 4, ff: 512, vocabulary: 32000, experts: 32, used: 4},
}

// writeLlama writes a llama of random weights with matrices of a type.
func writeLlama(tb testing.TB, path string, z benchSizes, typ block.Format) {
	meta := &gguf.Metadata{}
	set := func(key string, v gguf.Value) {
		if err := meta.Set(key, v); err != nil {
			tb.Fatal(err)
		}
	}
	set("general.architecture", gguf.NewValue("llama"))
	for _, kv := range []struct {
		key string
		n   int
	}{{"block_count", z.layers}, {"embedding_length", z.width}, {"context_length", 8192}, {"feed_forward_length", z.ff},
		{"attention.head_count", z.heads}, {"attention.head_count_kv", z.kvHeads}, {"rope.dimension_count", z.width / z.heads},
		{"expert_count", z.experts}, {"expert_used_count", z.used}} {
		if kv.n == 0 {
			continue
		}
		set("llama."+kv.key, gguf.NewValue(uint32(kv.n)))
	}
	set("llama.attention.layer_norm_rms_epsilon", gguf.NewValue(float32(1e-5)))
	var tensors []gguf.TensorInfo
	add := func(name string, t block.Format, dims ...int64) {
		tensors = append(tensors, gguf.TensorInfo{Name: name, Type: t, Dims: dims})
	}
	w, kv, ff := int64(z.width), int64(z.width/z.heads*z.kvHeads), int64(z.ff)
	add("token_embd.weight", typ, w, int64(z.vocabulary))
	add("output_norm.weight", block.F32, w)
	for i := range z.layers {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"attn_norm.weight", block.F32, w)
		add(p+"attn_q.weight", typ, w, w)
		add(p+"attn_k.weight", typ, w, kv)
		add(p+"attn_v.weight", typ, w, kv)
		add(p+"attn_output.weight", typ, w, w)
		add(p+"ffn_norm.weight", block.F32, w)
		if n := int64(z.experts); n > 0 {
			add(p+"ffn_gate_inp.weight", block.F32, w, n)
			add(p+"ffn_gate_exps.weight", typ, w, ff, n)
			add(p+"ffn_up_exps.weight", typ, w, ff, n)
			add(p+"ffn_down_exps.weight", typ, ff, w, n)
			continue
		}
		add(p+"ffn_gate.weight", typ, w, ff)
		add(p+"ffn_up.weight", typ, w, ff)
		add(p+"ffn_down.weight", typ, ff, w)
	}
	f, err := gguf.Create(path, meta, tensors)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Abort()
	rnd := rand.New(rand.NewPCG(1, 2))
	row := make([]float32, 1<<16)
	for i := range row {
		row[i] = float32(rnd.NormFloat64()) / 32
	}
	for _, t := range tensors {
		n := int64(1)
		for _, d := range t.Dims {
			n *= d
		}
		writeTensor(tb, f, t, row, n)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

// writeTensor writes n elements, which repeat the same data.
func writeTensor(tb testing.TB, f *gguf.FileWriter, t gguf.TensorInfo, row []float32, n int64) {
	dst, err := f.Tensor(t.Name)
	if err != nil {
		tb.Fatal(err)
	}
	size := func(n int) int { return n / t.Type.Elements() * t.Type.Bytes() }
	b := make([]byte, size(len(row)))
	if err := t.Type.Quantize(b, row); err != nil {
		tb.Fatal(err)
	}
	for n > 0 {
		part := int(min(n, int64(len(row))))
		if _, err := dst.Write(b[:size(part)]); err != nil {
			tb.Fatal(err)
		}
		n -= int64(part)
	}
}

// benchTypes returns the types for which the rows of a model are whole blocks.
func benchTypes(z benchSizes) []block.Format {
	types := []block.Format{block.Q4_0, block.Q8_0}
	if z.width%block.Q4_K.Elements() == 0 {
		types = append(types, block.Q4_K)
	}
	return types
}

// benchModel opens a synthetic model, or the file that RAYO_LLM_MODEL names.
func benchModel(b *testing.B, name string, typ block.Format) *Model {
	path := os.Getenv("RAYO_LLM_MODEL")
	if path == "" {
		path = filepath.Join(b.TempDir(), "model.gguf")
		writeLlama(b, path, benchModels[name], typ)
	}
	dev := openCPU(b)
	m, err := Open(context.Background(), dev, path, Options{Context: 2048})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	return m
}

// BenchmarkDecode and BenchmarkPrompt measure tokens per second, of one session on the CPU.
func BenchmarkDecode(b *testing.B) {
	for name, z := range benchModels {
		for _, typ := range benchTypes(z) {
			b.Run(name+"/"+typ.String(), func(b *testing.B) {
				m := benchModel(b, name, typ)
				s := m.NewSession()
				defer s.Close()
				if err := s.Feed(b.Context(), []int32{1, 2, 3}); err != nil {
					b.Fatal(err)
				}
				if err := s.Feed(b.Context(), []int32{1}); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if n++; s.Len() > 1000 {
						if err := s.Rewind(10); err != nil {
							b.Fatal(err)
						}
					}
					if err := s.Feed(b.Context(), []int32{int32(n % 100)}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tok/s")
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				b.ReportMetric(float64(mem.HeapSys)/(1<<20), "MiB-heap")
			})
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	for name, z := range benchModels {
		for _, typ := range benchTypes(z) {
			b.Run(name+"/"+typ.String(), func(b *testing.B) {
				m := benchModel(b, name, typ)
				prompt := make([]int32, 512)
				for b.Loop() {
					s := m.NewSession()
					if err := s.Feed(b.Context(), prompt); err != nil {
						b.Fatal(err)
					}
					_ = s.Close()
				}
				b.ReportMetric(float64(512*b.N)/b.Elapsed().Seconds(), "tok/s")
			})
		}
	}
}

// BenchmarkBatch measures passes over one token of each of several sessions.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := benchModel(b, "135M", block.Q4_0)
			pages, ok := m.cache.take(nil, n)
			if !ok {
				b.Fatal("no pages")
			}
			y, at := make([]float32, n*m.config.Vocabulary), 0
			for b.Loop() {
				p, err := m.pass(b.Context(), passShape{sequences: n, rows: 1, result: lastLogits})
				if err != nil {
					b.Fatal(err)
				}
				r := p.run()
				for i := range n {
					r.set(p, i, []int32{int32(i + 1)}, at%PageSize, pages[i:i+1])
				}
				if err := p.do(b.Context(), r, y); err != nil {
					b.Fatal(err)
				}
				at++
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
