// Command nearest finds the words of nearest meaning: a product of matrices and
// the greatest of each row.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

var (
	//go:embed data/words.txt
	wordList string
	//go:embed data/vectors.bin
	vectors []byte
)

const dim = 64

func main() {
	words := os.Args[1:]
	if len(words) == 0 {
		words = []string{"coffee", "river", "winter", "doctor", "theory"}
	}
	if err := run(context.Background(), os.Stdout, words); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, words []string) error {
	vocabulary := strings.Fields(wordList)
	var ids []int32
	for _, word := range words {
		i := slices.Index(vocabulary, strings.ToLower(word))
		if i < 0 {
			return fmt.Errorf("%q is not among the %d words of data/words.txt", word, len(vocabulary))
		}
		ids = append(ids, int32(i))
	}
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	// The table stays on the device. Rows of length 1 make a product of two
	// the cosine of their angle.
	table, err := dev.NewBuffer(ctx, op.F32, len(vocabulary), dim)
	if err != nil {
		return err
	}
	b := batch.New(dev)
	raw := make([]float32, len(vectors))
	for i, v := range vectors {
		raw[i] = float32(int8(v))
	}
	rows := b.Upload(raw, len(vocabulary), dim)
	lengths := b.Reshape(b.NormL2(rows, op.Axes(-1)), len(vocabulary), 1)
	b.Store(table, 0, b.Div(rows, lengths))
	if err := b.Execute(ctx); err != nil {
		return err
	}

	// A query: the rows of the words, their cosines with all rows, the best.
	const most = 7 // the word itself and six others
	b.Reset()
	all := b.Use(table)
	query := b.Gather(all, batch.Upload(b, ids))
	cosines, places := b.TopK(b.MatMul(query, all, batch.None, op.MatMulOpts{TransB: true}), most)
	if err := b.Execute(ctx, cosines, places); err != nil {
		return err
	}
	near, err := batch.Read[float32](ctx, b, cosines)
	if err != nil {
		return err
	}
	at, err := batch.Read[int32](ctx, b, places)
	if err != nil {
		return err
	}
	for i, id := range ids {
		fmt.Fprint(w, vocabulary[id])
		for j := i * most; j < (i+1)*most; j++ {
			if at[j] != id {
				fmt.Fprintf(w, " %s %.2f", vocabulary[at[j]], near[j])
			}
		}
		fmt.Fprintln(w)
	}
	return nil
}
