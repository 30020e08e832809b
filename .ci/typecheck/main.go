// Command typecheck checks the packages of the main module for systems on which no tests run. It checks
// the types in their sources and in the packages that they import, as the compiler does, but generates
// no code, so that it takes a small part of the time.
//
//	typecheck windows/amd64 linux/riscv64,noasm,nocuda
//
// A target is a system, an architecture and build tags. Cgo is off. The program finds errors of
// syntax and of types, constants that overflow an int of the target, imports that do not exist for
// it, and functions without a body that no assembly defines. It does not assemble and it does not
// link. For js it also finds operands that internal/fmt formats otherwise than fmt: see formats.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

func main() {
	failed := make([]bool, len(os.Args))
	var all sync.WaitGroup
	for i, name := range os.Args[1:] {
		all.Go(func() {
			t := newTarget(name)
			err := t.check()
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			}
			failed[i] = err != nil
			fmt.Printf("%s: %d packages\n", name, len(t.packages))
		})
	}
	all.Wait()
	for _, f := range failed {
		if f {
			os.Exit(1)
		}
	}
}

// A listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

// A target is one system with one set of build tags.
type target struct {
	system, arch, tags string
	sizes              types.Sizes
	packages           map[string]*types.Package // by import path
}

func newTarget(name string) *target {
	platform, tags, _ := strings.Cut(name, ",")
	system, arch, _ := strings.Cut(platform, "/")
	return &target{system, arch, tags, types.SizesFor("gc", arch), map[string]*types.Package{"unsafe": types.Unsafe}}
}

// check lists the packages, whose dependencies come first, and checks each.
func (t *target) check() error {
	if t.sizes == nil {
		return errors.New("no architecture of Go is called " + t.arch)
	}
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,SFiles,ImportMap,Module", "-tags", t.tags, "./...")
	list.Env = append(os.Environ(), "GOOS="+t.system, "GOARCH="+t.arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	var errs []error
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if p.ImportPath != "unsafe" {
			errs = append(errs, t.pkg(&p))
		}
	}
	return errors.Join(append(errs, list.Wait())...)
}

// pkg checks one package: its declarations, and in the main module the bodies of functions too.
func (t *target) pkg(p *listed) error {
	var files []*ast.File
	var errs []error
	main := p.Module != nil && p.Module.Main
	mode := parser.SkipObjectResolution
	if main {
		mode |= parser.ParseComments
	}
	for _, name := range p.GoFiles {
		f, err := parse(filepath.Join(p.Dir, name), mode)
		if err != nil {
			errs = append(errs, err)
		}
		files = append(files, f)
	}
	c := types.Config{
		Sizes:            t.sizes,
		Importer:         importer{t, p},
		IgnoreFuncBodies: !main,
		Error:            func(err error) { errs = append(errs, err) },
	}
	if p.Module != nil {
		c.GoVersion = "go" + cmp.Or(p.Module.GoVersion, "1.16")
	}
	var info *types.Info
	if main && t.system == "js" {
		info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	}
	t.packages[p.ImportPath], _ = c.Check(p.ImportPath, fileSet, files, info)
	if info != nil && t.packages[p.ImportPath] != nil {
		errs = append(errs, formats(t.packages[p.ImportPath], info, files))
	}
	if main {
		errs = append(errs, stubs(p, files))
	}
	return errors.Join(errs...)
}

// An importer finds imported packages among the packages that have been checked.
type importer struct {
	t *target
	p *listed
}

func (i importer) Import(path string) (*types.Package, error) {
	p := i.t.packages[cmp.Or(i.p.ImportMap[path], path)]
	if p == nil {
		return nil, errors.New("the package does not exist for this target")
	}
	return p, nil
}

// stubs reports functions without a body that neither assembly nor a linkname defines.
func stubs(p *listed, files []*ast.File) error {
	var errs []error
	var assembly strings.Builder
	for _, name := range p.SFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		errs = append(errs, err)
		assembly.Write(text)
	}
	defined := map[string]bool{}
	for _, m := range text.FindAllStringSubmatch(assembly.String(), -1) {
		defined[m[1]] = true
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body == nil && !defined[d.Name.Name] && !linked(d) {
				errs = append(errs, fmt.Errorf("%s: %s has no body, and no assembly defines it", fileSet.Position(d.Pos()), d.Name.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// text matches the line of an assembly file that defines a function.
var text = regexp.MustCompile(`(?m)^TEXT\s+·(\w+)`)

// linked reports whether a linkname directive takes the body of a function from another package.
func linked(d *ast.FuncDecl) bool {
	if d.Doc == nil {
		return false
	}
	for _, c := range d.Doc.List {
		if strings.HasPrefix(c.Text, "//go:linkname "+d.Name.Name+" ") {
			return true
		}
	}
	return false
}

// The targets share files.
var (
	fileSet = token.NewFileSet()
	parsed  sync.Map // path to func() (*ast.File, error)
)

func parse(path string, mode parser.Mode) (*ast.File, error) {
	f, _ := parsed.LoadOrStore(path, sync.OnceValues(func() (*ast.File, error) {
		return parser.ParseFile(fileSet, path, nil, mode)
	}))
	return f.(func() (*ast.File, error))()
}
