package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// formats reports operands that internal/fmt does not format in pages: values without a method String or Error that are no truth
// values, numbers or texts, and no lists of the types that it knows. It checks all calls of functions whose last parameter
// is a ...any, in packages that import internal/fmt, except methods of js.Value. It does not know what interfaces hold.
func formats(pkg *types.Package, info *types.Info, files []*ast.File) error {
	if !slices.ContainsFunc(pkg.Imports(), func(p *types.Package) bool { return strings.HasSuffix(p.Path(), "/internal/fmt") }) {
		return nil
	}
	var errs []error
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || call.Ellipsis.IsValid() {
				return true
			}
			s, ok := info.TypeOf(call.Fun).(*types.Signature)
			if !ok || !s.Variadic() {
				return true
			}
			if m, ok := call.Fun.(*ast.SelectorExpr); ok && types.TypeString(info.TypeOf(m.X), nil) == "syscall/js.Value" {
				return true
			}
			fixed := s.Params().Len() - 1
			if e, ok := s.Params().At(fixed).Type().(*types.Slice); !ok || !isAny(e.Elem()) {
				return true
			}
			for _, a := range call.Args[fixed:] {
				if t := info.TypeOf(a); t != nil && !hasText(t) && !plain(t) {
					errs = append(errs, fmt.Errorf("%s: pages print only the type of %v: format it as a text", fileSet.Position(a.Pos()), t))
				}
			}
			return true
		})
	}
	return errors.Join(errs...)
}

func isAny(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	return ok && i.Empty()
}

// hasText reports whether t has a method String or Error that formatting calls.
func hasText(t types.Type) bool {
	for _, name := range []string{"String", "Error"} {
		o, _, _ := types.LookupFieldOrMethod(t, false, nil, name)
		if f, ok := o.(*types.Func); ok {
			s := f.Signature()
			if s.Params().Len() == 0 && s.Results().Len() == 1 && types.Identical(s.Results().At(0).Type(), types.Typ[types.String]) {
				return true
			}
		}
	}
	return false
}

// plain reports whether internal/fmt knows t, or t is an interface.
func plain(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Basic, *types.Interface:
		return true
	}
	return slices.Contains([]string{"[]byte", "[]uint8", "[]int", "[]uint32", "[]string"}, t.String())
}
