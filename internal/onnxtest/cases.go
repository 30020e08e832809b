// Package onnxtest runs the node tests of ONNX: operands and results that
// others have computed, for each operator and most of its attributes. A table
// (operators.go) says what a user of package batch writes for an operator.
//
// To let rayo run an operator, add a line to a table and run
//
//	go test ./internal/onnxtest -update
//
// which removes the cases that pass now from testdata/notyet.txt.
package onnxtest

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// archive is what testdata/pack.py makes of ONNX's tests.
//
//go:embed testdata/node.tar.bz2
var archive []byte

// Case is a node test: one use of an operator, its operands and its results.
type Case struct {
	Name    string
	Node    Node
	In, Out []*Tensor // nil where absent, in the order of the node's
}

// Cases returns all cases, in the order of their operators.
func Cases() ([]*Case, error) { return allCases() }

var allCases = sync.OnceValues(func() ([]*Case, error) {
	var cases []*Case
	files := map[string][]byte{}
	name := ""
	flush := func() error {
		if name == "" {
			return nil
		}
		c, err := newCase(name, files)
		cases, files = append(cases, c), map[string][]byte{}
		return err
	}
	for r := tar.NewReader(bzip2.NewReader(bytes.NewReader(archive))); ; {
		h, err := r.Next()
		if err == io.EOF {
			return cases, flush()
		}
		if err != nil {
			return nil, err
		}
		dir, file, _ := strings.Cut(h.Name, "/")
		if dir != name {
			if err := flush(); err != nil {
				return nil, err
			}
			name = dir
		}
		if files[file], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
})

// newCase makes a case of the files of one.
func newCase(name string, files map[string][]byte) (*Case, error) {
	m, err := ParseModel(files["model.onnx"])
	if err == nil && len(m.Nodes) != 1 {
		err = fmt.Errorf("%d nodes, want 1", len(m.Nodes))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := &Case{Name: name, Node: m.Nodes[0]}
	var first, second error
	c.In, first = tensors(files, "input", m.Inputs, c.Node.In)
	c.Out, second = tensors(files, "output", m.Outputs, c.Node.Out)
	if err := errors.Join(first, second); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// tensors returns the tensors of the files kind_0.pb, kind_1.pb …, which are
// those of graph, in the order of names.
func tensors(files map[string][]byte, kind string, graph, names []string) ([]*Tensor, error) {
	of := map[string]*Tensor{}
	for i, g := range graph {
		t, err := ParseTensor(files[fmt.Sprintf("%s_%d.pb", kind, i)])
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", kind, i, err)
		}
		of[g] = t
	}
	list := make([]*Tensor, len(names))
	for i, n := range names {
		list[i] = of[n]
		if n != "" && of[n] == nil {
			return nil, fmt.Errorf("%s %q is not in the graph", kind, n)
		}
	}
	return list, nil
}

//go:embed testdata/notyet.txt
var notYet string

// NotYet returns the names of the cases that cannot run yet, with the reason.
func NotYet() (map[string]string, error) {
	list := map[string]string{}
	for line := range strings.Lines(notYet) {
		name, why, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || list[name] != "" {
			return nil, fmt.Errorf("notyet.txt: %q is no new case with a reason", line)
		}
		list[name] = why
	}
	return list, nil
}
