package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/gguf/convert"
)

type ggufConvertCmd struct {
	Folder string `arg:"" help:"A folder with config.json and safetensors files."`
	Out    string `arg:"" help:"The GGUF file to write."`
	Type   string `placeholder:"TYPE" help:"The type of matrices: f32, f16 or bf16; by default their own type."`
	Name   string `placeholder:"NAME" help:"The model's name; by default the name of the folder."`
	Force  bool   `help:"Replace OUT if it exists."`
}

func (c *ggufConvertCmd) Run(a *app) error {
	types := map[string]block.Format{"": block.Invalid, "f32": block.F32, "f16": block.F16, "bf16": block.BF16}
	typ, ok := types[strings.ToLower(c.Type)]
	if !ok {
		return fmt.Errorf("unknown type %s: give f32, f16 or bf16, and use rayo gguf quantize on the result for other types", c.Type)
	}
	if err := fresh(c.Out, c.Force, c.Folder); err != nil {
		return err
	}
	folder := os.DirFS(c.Folder)
	total, err := convert.Size(folder)
	if err != nil {
		return err
	}
	name := c.Name
	if path, err := filepath.Abs(c.Folder); err == nil && name == "" {
		name = filepath.Base(path)
	}
	bar := bytesBar(a, total, "convert")
	defer bar.Clear()
	start := time.Now()
	err = convert.Folder(a.ctx, folder, c.Out, convert.Options{Type: typ, Name: name, Progress: func(n int64) { _ = bar.Add64(n) }})
	if err != nil {
		return err
	}
	_ = bar.Clear()
	f, err := openModel(c.Out)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(a.out, "%s: %s, %d tensors, %s; %.1f s\n", plain(c.Out), f.Architecture(), f.NumTensors(), bytesText(f.Size()), time.Since(start).Seconds())
	return err
}
