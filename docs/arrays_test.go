//go:build !js

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mentioned finds b.Name, and the names of packages.
var mentioned = regexp.MustCompile(`\b(b|batch|device|op|imgconv)\.([A-Z]\w*)`)

// TestArraysNames has every method of a batch and every name of a package that the tables
// of arrays.md mention exist.
func TestArraysNames(t *testing.T) {
	exported := map[string]map[string]bool{"b": {}}
	for _, dir := range []string{"batch", "device", "op", "imgconv"} {
		exported[dir] = map[string]bool{}
		declare(t, dir, exported[dir], exported["b"])
	}
	text, err := os.ReadFile("arrays.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, m := range mentioned.FindAllStringSubmatch(line, -1) {
			if found++; !exported[m[1]][m[2]] {
				t.Errorf("arrays.md:%d: there is no %s", i+1, m[0])
			}
		}
	}
	if found < 200 {
		t.Errorf("%d names in the tables", found)
	}
}

// declare adds the exported names of a package, and its methods of Batch.
func declare(t *testing.T, dir string, names, methods map[string]bool) {
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				} else if to, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok && isNamed(to.X, "Batch") {
					methods[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
}

func isNamed(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}
