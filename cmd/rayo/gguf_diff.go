package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/rayo-go/rayo/gguf"
)

type ggufDiffCmd struct {
	A    string `arg:"" help:"A GGUF file."`
	B    string `arg:"" help:"The other model."`
	JSON bool   `name:"json" help:"Write JSON."`
}

// change is one difference between two files.
type change struct {
	What string  `json:"what"` // "key" or "tensor"
	Name string  `json:"name"`
	A    string  `json:"a,omitempty"`
	B    string  `json:"b,omitempty"`
	RMS  float64 `json:"rms,omitempty"` // for tensors: the root mean square of the differences, relative to that of the numbers in A
}

func (c *ggufDiffCmd) Run(a *app) error {
	x, err := openModel(c.A)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := openModel(c.B)
	if err != nil {
		return err
	}
	defer y.Close()
	changes := diffKeys(x.Metadata(), y.Metadata())
	tensors, err := diffTensors(a, x, y)
	if err != nil {
		return err
	}
	changes = append(changes, tensors...)
	if c.JSON {
		if err := json.NewEncoder(a.out).Encode(changes); err != nil {
			return err
		}
	} else if err := printChanges(a, changes); err != nil {
		return err
	}
	if len(changes) > 0 {
		return fmt.Errorf("%d differences", len(changes))
	}
	return nil
}

func printChanges(a *app, changes []change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(a.out, "the same metadata and the same tensors")
		return err
	}
	width := max(12, (columns()-60)/2)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range changes {
		rms := ""
		if c.RMS > 0 {
			rms = fmt.Sprintf("off by %.3g %%", 100*c.RMS)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.What, cut(plain(c.Name), 40), cut(plain(c.A), width), cut(plain(c.B), width), rms)
	}
	return w.Flush()
}

func diffKeys(a, b *gguf.Metadata) []change {
	changes := []change{}
	for k, v := range a.All() {
		w, ok := b.Get(k)
		switch {
		case !ok:
			changes = append(changes, change{What: "key", Name: k, A: v.String(), B: "-"})
		case !v.Equal(w):
			changes = append(changes, change{What: "key", Name: k, A: v.String(), B: w.String()})
		}
	}
	for k, w := range b.All() {
		if _, ok := a.Get(k); !ok {
			changes = append(changes, change{What: "key", Name: k, A: "-", B: w.String()})
		}
	}
	return changes
}

func diffTensors(a *app, x, y *gguf.File) (changes []change, err error) {
	bar := bytesBar(a, sizeOf(x), "diff")
	defer bar.Clear()
	describe := func(t *gguf.Tensor) string { return t.Type.String() + " " + dimsText(t.Dims) }
	for t := range x.Tensors() {
		if err := a.ctx.Err(); err != nil {
			return nil, err
		}
		u := y.Tensor(t.Name)
		if u == nil {
			changes = append(changes, change{What: "tensor", Name: t.Name, A: describe(t), B: "-"})
			continue
		}
		c := change{What: "tensor", Name: t.Name, A: describe(t), B: describe(u)}
		if slices.Equal(t.Dims, u.Dims) {
			if c.RMS, err = distance(t, u); err != nil {
				return nil, err
			}
		}
		if c.A != c.B || c.RMS != 0 {
			changes = append(changes, c)
		}
		_ = bar.Add64(t.Size())
	}
	for u := range y.Tensors() {
		if x.Tensor(u.Name) == nil {
			changes = append(changes, change{What: "tensor", Name: u.Name, A: "-", B: describe(u)})
		}
	}
	return changes, nil
}

// distance returns the root mean square of the differences of two tensors of the same
// extents, relative to the root mean square of the first, and at most 1e9.
func distance(t, u *gguf.Tensor) (float64, error) {
	const n = 1 << 16 // a multiple of the block length of every type
	x, y := make([]float32, n), make([]float32, n)
	var d, s float64
	for at := int64(0); at < t.Elements(); at += n {
		k := min(n, t.Elements()-at)
		if err := t.Dequantize(x[:k], at); err != nil {
			return 0, err
		}
		if err := u.Dequantize(y[:k], at); err != nil {
			return 0, err
		}
		for i, v := range x[:k] {
			if v == y[i] || v != v && y[i] != y[i] {
				s += float64(v) * float64(v)
				continue
			}
			e := float64(v) - float64(y[i])
			d += e * e
			s += float64(v) * float64(v)
		}
	}
	if d == 0 {
		return 0, nil
	}
	r := math.Sqrt(d / s)
	if !(r < 1e9) {
		r = 1e9
	}
	return r, nil
}
