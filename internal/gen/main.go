// Command gen makes what follows from the catalogue of package op: the
// methods of packages device and batch, docs/OPS.md, and the types of wasm/npm.
//
//	go run ./internal/gen
//
// It is run by go generate. It writes a package's methods only if that
// package is there.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/internal/genfile"
)

func main() {
	root, err := moduleRoot()
	if err == nil {
		err = run(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// moduleRoot returns the folder of go.mod, this one or one above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above")
		}
		dir = up
	}
}

func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := genfile.Write(path, content); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the generated files by their path in the module.
func generate(root string) (map[string][]byte, error) {
	options, err := readOptions(filepath.Join(root, "op"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"docs/OPS.md": catalogueText(options), "wasm/npm/operations.d.ts": declarations()}
	for _, p := range []struct {
		name  string
		write func() ([]byte, error)
	}{{"device", deviceMethods}, {"batch", batchMethods}} {
		if _, err := os.Stat(filepath.Join(root, p.name, p.name+".go")); err != nil {
			continue
		}
		if files[p.name+"/ops_gen.go"], err = p.write(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return files, nil
}
