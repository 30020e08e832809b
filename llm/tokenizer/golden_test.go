package tokenizer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
)

// golden is the folder beside the repository with vocabularies, texts and the ids by llama.cpp.
const golden = "../../../shared/golden/vocab"

// goldenVocabularies returns the names in that folder. It skips the test if the folder does not exist.
func goldenVocabularies(t testing.TB) (names []string) {
	files, _ := filepath.Glob(filepath.Join(golden, "*.gguf.gz"))
	if len(files) == 0 {
		testutil.Missing(t, "vocabularies", fmt.Errorf("no vocabularies in %s", golden))
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".gguf.gz"))
	}
	return names
}

func goldenMetadata(t testing.TB, name string) *gguf.Metadata {
	t.Helper()
	b := testutil.Unzip(t, filepath.Join(golden, name+".gguf.gz"))
	g, err := gguf.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return g.Metadata()
}

func goldenTokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := New(goldenMetadata(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGolden checks that the ids of all texts and vocabularies are those of llama.cpp, and that
// decoding returns the text if the vocabulary preserves it.
func TestGolden(t *testing.T) {
	for _, name := range goldenVocabularies(t) {
		t.Run(name, func(t *testing.T) {
			meta := goldenMetadata(t, name)
			start := time.Now()
			tok, err := New(meta)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d tokens, %v to read", tok.Size(), time.Since(start))
			texts := strings.Split(readGolden(t, name+".inp"), "\n__ggml_vocab_test__\n")
			lines := strings.Split(readGolden(t, name+".out"), "\n")
			texts = texts[:len(texts)-1]
			if len(texts) != 46 || len(lines) < len(texts) {
				t.Fatalf("%d texts and %d lines of ids, expected 46", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for _, f := range strings.Fields(lines[i]) {
					id, err := strconv.Atoi(f)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				got := tok.Encode(text, Options{})
				if !slices.Equal(got, want) {
					t.Errorf("%q: ids %v, expected %v", text, got, want)
				}
				if _, lossy := tok.model.(*wpm); !lossy && tok.Decode(got, DecodeOptions{}) != text {
					t.Errorf("%q: decoded %q", text, tok.Decode(got, DecodeOptions{}))
				}
			}
		})
	}
}

func readGolden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(golden, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// BenchmarkEncode encodes text of this repository on one core.
func BenchmarkEncode(b *testing.B) {
	var text strings.Builder
	files, _ := filepath.Glob("../../docs/*.md")
	more, _ := filepath.Glob("../../*/*.go")
	for _, f := range append(files, more...) {
		if t, err := os.ReadFile(f); err == nil {
			text.Write(t)
		}
	}
	s := text.String()
	s = s[:min(len(s), 2<<20)]
	for _, name := range goldenVocabularies(b) {
		tok := goldenTokenizer(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			var ids []int32
			for b.Loop() {
				ids = tok.Append(ids[:0], s, Options{})
			}
			b.ReportMetric(float64(len(s))/float64(len(ids)), "bytes/token")
		})
	}
}

// BenchmarkNew reads a vocabulary of 128 thousand tokens and 280 thousand merges.
func BenchmarkNew(b *testing.B) {
	goldenVocabularies(b)
	m := goldenMetadata(b, "llama-bpe")
	for b.Loop() {
		if _, err := New(m); err != nil {
			b.Fatal(err)
		}
	}
}
