package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
)

type ggufLsCmd struct {
	File    string `arg:"" help:"A GGUF file, or any part of a split model."`
	Pattern string `arg:"" optional:"" help:"Only names that match, such as 'blk.0.*'."`
	Keys    bool   `help:"List the metadata instead of the tensors."`
	JSON    bool   `name:"json" help:"Write JSON."`
}

// tensorRow is a tensor in JSON.
type tensorRow struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Dims   []int64 `json:"dims"`
	Offset int64   `json:"offset"`
	Bytes  int64   `json:"bytes"`
}

func (c *ggufLsCmd) Run(a *app) error {
	if _, err := path.Match(c.Pattern, ""); err != nil {
		return fmt.Errorf("%q is not a valid pattern: %w", c.Pattern, err)
	}
	f, err := openModel(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.Keys {
		return c.keys(a, f)
	}
	rows := []tensorRow{}
	for t := range f.Tensors() {
		if c.matches(t.Name) {
			rows = append(rows, tensorRow{t.Name, t.Type.String(), t.Dims, t.Offset(), t.Size()})
		}
	}
	if c.JSON {
		return json.NewEncoder(a.out).Encode(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TENSOR\tTYPE\tDIMENSIONS\tOFFSET\tSIZE")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", cut(plain(r.Name), columns()-50), r.Type, dimsText(r.Dims), r.Offset, bytesText(r.Bytes))
	}
	return w.Flush()
}

func (c *ggufLsCmd) matches(name string) bool {
	if c.Pattern == "" {
		return true
	}
	ok, _ := path.Match(c.Pattern, name)
	return ok
}

func (c *ggufLsCmd) keys(a *app, f *gguf.File) error {
	if c.JSON {
		return writeJSON(a.out, f.Metadata())
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tTYPE\tVALUE")
	for k, v := range f.Metadata().All() {
		if !c.matches(k) {
			continue
		}
		kind := v.Kind().String()
		if v.Kind() == gguf.Array {
			kind = fmt.Sprintf("%v[%d]", v.Elem(), v.Len())
		}
		text, _, _ := strings.Cut(v.String(), "\n")
		fmt.Fprintf(w, "%s\t%s\t%s\n", cut(plain(k), 48), kind, cut(plain(text), columns()-62))
	}
	return w.Flush()
}

func dimsText(dims []int64) string {
	if len(dims) == 0 {
		return "1"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(dims), "[]"), " ", " × ")
}

type ggufVerifyCmd struct {
	Files []string `arg:"" help:"GGUF files."`
	JSON  bool     `name:"json" help:"Write JSON."`
}

// fileReport is the output of verify for one file.
type fileReport struct {
	File     string   `json:"file"`
	Tensors  int      `json:"tensors"`
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems"`
}

func (c *ggufVerifyCmd) Run(a *app) error {
	all := []fileReport{}
	bad := 0
	for _, path := range c.Files {
		v, err := verify(a, path)
		if err != nil {
			return err
		}
		if len(v.Problems) > 0 {
			bad++
		}
		all = append(all, v)
		if c.JSON {
			continue
		}
		for _, p := range v.Problems {
			fmt.Fprintf(a.out, "%s\n", plain(p))
		}
		if len(v.Problems) == 0 {
			fmt.Fprintf(a.out, "%s: sound: %d tensors, %s, every number finite\n", plain(path), v.Tensors, bytesText(v.Bytes))
		}
	}
	if c.JSON {
		if err := json.NewEncoder(a.out).Encode(all); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d files have problems", bad, len(all))
	}
	return nil
}

// verify checks one file. It returns an error only after an interrupt.
func verify(a *app, path string) (fileReport, error) {
	v := fileReport{File: path, Problems: []string{}}
	f, err := openModel(path)
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
		return v, nil
	}
	defer f.Close()
	v.Tensors, v.Bytes = f.NumTensors(), f.Size()
	if err := f.CheckModel(); err != nil {
		v.Problems = append(v.Problems, strings.Split(err.Error(), "\n")...)
	}
	bar := bytesBar(a, sizeOf(f), "verify")
	defer bar.Clear()
	for t := range f.Tensors() {
		if err := a.ctx.Err(); err != nil {
			return v, err
		}
		if err := t.Check(); err != nil {
			v.Problems = append(v.Problems, fmt.Sprintf("%s: tensor %q: %v", path, t.Name, err))
		}
		_ = bar.Add64(t.Size())
	}
	return v, nil
}

type ggufQuantizeCmd struct {
	In      string `arg:"" help:"The model."`
	Out     string `arg:"" help:"The file to write."`
	Type    string `arg:"" help:"What to make: Q4_K_M, Q8_0, F16 and so on."`
	Imatrix string `type:"existingfile" placeholder:"FILE" help:"The importance of each column, as llama-imatrix writes it (GGUF or .dat): columns with larger inputs get smaller errors. IQ1_S, IQ1_M, IQ2_XXS and IQ2_XS need it."`
	Pure    bool   `help:"Give every matrix this type, instead of more bits for important ones."`
	Force   bool   `help:"Replace the file if it exists."`
}

func (c *ggufQuantizeCmd) Run(a *app) error {
	r, ok := gguf.RecipeOf(c.Type)
	if !ok {
		names := []string{}
		for _, r := range gguf.Recipes() {
			names = append(names, r.Name)
		}
		return fmt.Errorf("unknown type %s: give one of %s", c.Type, strings.Join(names, " "))
	}
	if err := fresh(c.Out, c.Force, c.In, c.Imatrix); err != nil {
		return err
	}
	f, err := openModel(c.In)
	if err != nil {
		return err
	}
	defer f.Close()
	importance, err := c.importance(f)
	if err != nil {
		return err
	}
	bar := bytesBar(a, sizeOf(f), r.Name)
	defer bar.Clear()
	start := time.Now()
	o := gguf.QuantizeOptions{Pure: c.Pure, Importance: importance, Progress: func(n int64) { _ = bar.Add64(n) }}
	if err := gguf.Quantize(a.ctx, c.Out, f, r, o); err != nil {
		if c.Imatrix == "" && errors.Is(err, block.ErrImportance) {
			return fmt.Errorf("%w: --imatrix FILE gives them", err)
		}
		return err
	}
	_ = bar.Clear()
	return wrote(a, c.Out, f, time.Since(start))
}

// importance reads the file of importances. At least one must belong to a tensor of the model.
func (c *ggufQuantizeCmd) importance(f *gguf.File) (map[string][]float32, error) {
	if c.Imatrix == "" {
		return nil, nil
	}
	in, err := os.Open(c.Imatrix)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := in.Stat()
	if err != nil {
		return nil, err
	}
	all, err := gguf.ReadImportance(in, s.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Imatrix, err)
	}
	for name := range all {
		if f.Tensor(name) != nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%s has no importances for any tensor of %s", c.Imatrix, c.In)
}

// wrote prints the size of a new file, and compares it with the old one.
func wrote(a *app, path string, old *gguf.File, t time.Duration) error {
	f, err := openModel(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := inspect(path, f)
	_, err = fmt.Fprintf(a.out, "%s: %s, %.2f bits a parameter; was %s; %.1f s\n", plain(path), bytesText(in.Bytes), in.BitsPer, bytesText(old.Size()), t.Seconds())
	return err
}

type ggufSplitCmd struct {
	In   string `arg:"" help:"The model."`
	Out  string `arg:"" help:"The name of the parts: NAME gives NAME-00001-of-00003.gguf."`
	Size string `default:"2G" help:"Maximum bytes of tensors in a part, such as 500M or 2G."`
}

func (c *ggufSplitCmd) Run(a *app) error {
	size, err := parseSize(c.Size)
	if err != nil {
		return err
	}
	return copyModel(a, c.In, c.Out, true, "split", gguf.SplitAt(size))
}

// parseSize parses a number of bytes, for example 500M.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "kKmMgG")
	unit := s[len(digits):]
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, ok := map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[strings.ToUpper(unit)]
	if err != nil || !ok || n <= 0 || n > 1<<40 {
		return 0, fmt.Errorf("%q is not a size: write it for example as 500M or 2G", s)
	}
	return n * factor, nil
}

type ggufMergeCmd struct {
	In    string `arg:"" help:"Any part of the model."`
	Out   string `arg:"" help:"The file to write."`
	Force bool   `help:"Replace the file if it exists."`
}

func (c *ggufMergeCmd) Run(a *app) error { return copyModel(a, c.In, c.Out, c.Force, "merge") }

func copyModel(a *app, in, out string, force bool, what string, opts ...gguf.CreateOption) error {
	if err := fresh(out, force, in); err != nil {
		return err
	}
	f, err := openModel(in)
	if err != nil {
		return err
	}
	defer f.Close()
	bar := bytesBar(a, sizeOf(f), what)
	defer bar.Clear()
	if err := gguf.Copy(a.ctx, out, f, func(n int64) { _ = bar.Add64(n) }, opts...); err != nil {
		return err
	}
	_ = bar.Clear()
	_, err = fmt.Fprintf(a.out, "%s: %d tensors, %s\n", plain(out), f.NumTensors(), bytesText(f.Size()))
	return err
}
