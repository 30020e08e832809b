// Package amd64file writes the functions of an avo context to the files of a package.
package amd64file

import (
	"bytes"
	"go/format"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"github.com/rayo-go/rayo/internal/genfile"
)

// Write compiles the context. It writes the assembly to base.s and the Go declarations to base.go
// in dir, whose name is the name of the package. The first line of both files names the command.
func Write(dir, base, command string, c *build.Context) error {
	f, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cfg := printer.Config{Name: command, Pkg: filepath.Base(path)}
	for _, p := range []struct {
		suffix string
		print  printer.Builder
	}{{".s", printer.NewGoAsm}, {".go", printer.NewStubs}} {
		out, err := p.print(cfg).Print(f)
		if err != nil {
			return err
		}
		if p.suffix == ".go" {
			if out, err = format.Source(out); err != nil {
				return err
			}
		}
		out = bytes.Replace(out, []byte(command+". DO NOT EDIT."), []byte(command+"; DO NOT EDIT."), 1)
		if err := genfile.Write(filepath.Join(dir, base+p.suffix), out); err != nil {
			return err
		}
	}
	return nil
}
