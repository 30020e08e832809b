package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// formats reports operands that internal/fmt formats in pages otherwise than the standard library: lists and structs that
// hold values with a method String or Error, which it does not call. It checks all calls of functions whose last parameter
// is a ...any, in packages that import internal/fmt.
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
			fixed := s.Params().Len() - 1
			if e, ok := s.Params().At(fixed).Type().(*types.Slice); !ok || !isAny(e.Elem()) {
				return true
			}
			for _, a := range call.Args[fixed:] {
				if t := info.TypeOf(a); t != nil && !hasText(t) && holdsText(t, nil) {
					errs = append(errs, fmt.Errorf("%s: pages print what %v holds without its method String or Error: format each by itself", fileSet.Position(a.Pos()), t))
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

// same are types that print the same without their method.
var same = []string{"github.com/rayo-go/rayo/op.Shape"}

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

// holdsText reports whether elements or exported fields of t have such a method. The standard library does not call
// those of other fields either. outer are the types that hold t.
func holdsText(t types.Type, outer []types.Type) bool {
	if slices.Contains(outer, t) {
		return false
	}
	outer = append(outer, t)
	held := func(t types.Type) bool {
		return hasText(t) && !slices.Contains(same, t.String()) || holdsText(t, outer)
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return held(u.Elem())
	case *types.Array:
		return held(u.Elem())
	case *types.Map:
		return held(u.Key()) || held(u.Elem())
	case *types.Pointer: // formatting follows the outermost only
		return len(outer) == 1 && holdsText(u.Elem(), outer)
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() && held(f.Type()) {
				return true
			}
		}
	}
	return false
}
