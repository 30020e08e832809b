package fmt

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type level int

func (l level) String() string { return "level" + string(rune('0'+l)) }

type plain int

type point struct {
	X, Y int
	name string
	l    plain
	L    plain
	Any  any
	p    *int
}

type broken struct{ s *string }

func (b *broken) Error() string { return *b.s }

// operands lists a value of each kind and of types with methods.
func operands() []any {
	l := level(2)
	return []any{
		nil, true, 0, -3, int8(-128), int64(math.MinInt64), uint8(200), uint64(math.MaxUint64), uintptr(7), 'é', rune(-1), math.MaxInt32,
		1.5, 1e6, 1e-7, 1e21, float32(0.1), math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 123456789.0,
		"", "text", "a\"b\x00é", plain(3), l, &l, (*level)(nil),
		[]int{}, []int{1, -2}, []int(nil), [3]uint32{1, 2, 3}, []byte("hi"), [2]byte{1, 255}, []string{"a", "b c"}, []any{1, "x", nil, plain(2)},
		[][]int{{1}, {2, 3}}, []*int{nil},
		point{1, 2, "n", 3, 4, 5.5, nil}, &point{Any: 2}, point{Any: []int{1}}, struct{}{}, &[]int{1, 2}, &[2]bool{true}, (*point)(nil),
		fs.ErrNotExist, &fs.PathError{Op: "open", Path: "p", Err: fs.ErrExist}, fmt.Errorf("a: %w", fs.ErrExist), (*broken)(nil), &broken{},
	}
}

// composite reports whether a may hold numbers with a fraction.
func composite(a any) bool {
	k := reflect.ValueOf(a).Kind()
	return k == reflect.Struct || k == reflect.Pointer
}

func TestCompactEqualsFmt(t *testing.T) {
	for _, f := range []string{"%v", "%d", "%s", "%q", "%x", "%#x", "%c", "%g", "%e", "%f", "%.3g", "%.0f", "%.2e", "%T", "%w"} {
		for _, a := range operands() {
			if _, bytes := a.([]byte); bytes && f == "%w" {
				continue // the standard library refuses each byte
			}
			float := reflect.ValueOf(a).IsValid() && reflect.ValueOf(a).CanFloat()
			if strings.Contains(f, ".") && !float || f == "%#x" && (float || composite(a)) {
				continue // precisions are for numbers with a fraction, # is for integers and texts
			}
			if want, got := fmt.Errorf("<"+f+">", a), compactError("<"+f+">", a); got.Error() != want.Error() {
				t.Errorf("%s of %T: %s, expected %s", f, a, got, want)
			}
		}
	}
	var vet = fmt.Sprintf // without the checks of vet, which would refuse these formats
	for _, f := range []string{"", "100%%", "%", "a%", "%d", "%d %d %d", "%[2]s %[1]d", "%[1]d and %[1]d", "%.3", "é%dé%s"} {
		args := []any{1, "b"}
		if f == "%d" || f == "" || f == "100%%" || f == "%" || f == "a%" || f == "%.3" || f == "%[1]d and %[1]d" {
			args = args[:1] // the standard library reports operands that are left
		}
		if f == "" || f == "100%%" || f == "%" || f == "a%" || f == "%.3" {
			args = nil
		}
		if want, got := vet(f, args...), string(compact(f, args...)); got != want {
			t.Errorf("%q: %q, expected %q", f, got, want)
		}
	}
	for _, a := range operands() {
		for _, b := range operands() {
			if want, got := fmt.Sprint(a, b), string(compactList([]any{a, b})); got != want {
				t.Errorf("%T, %T: %q, expected %q", a, b, got, want)
			}
		}
	}
}

// TestQuote compares with package strconv all characters that it prints, or that this package knows not to print.
func TestQuote(t *testing.T) {
	escaped := 0
	for r := rune(0); r <= 0x10ffff; r++ {
		if !strconv.IsPrint(r) && r > 0x7f && !hidden(r) {
			continue // unassigned, or hidden beyond U+FFFF
		}
		if hidden(r) {
			escaped++
		}
		s := "a" + string(r) + "\xff"
		if got, want := string(compact("%q %q", s, r)), strconv.Quote(s)+" "+strconv.QuoteRune(r); got != want {
			t.Fatalf("%#x: %s, expected %s", r, got, want)
		}
	}
	if escaped < 6400 {
		t.Errorf("only %d characters are hidden", escaped)
	}
}

// TestContents checks that elements and fields print without their String methods, and that values without a text print as their type.
func TestContents(t *testing.T) {
	for _, c := range []struct {
		a    any
		want string
	}{
		{[]level{1, 2}, "[1 2]"}, {[]any{level(2), "x"}, "[2 x]"}, {struct{ L level }{3}, "{3}"}, {&struct{ L level }{3}, "&{3}"},
		{func() {}, "%!v(func())"}, {make(chan int), "%!v(chan int)"}, {map[int]int{}, "%!v(map[int]int)"}, {[]func(){nil}, "[%!v(func())]"},
	} {
		if got := string(compact("%v", c.a)); got != c.want {
			t.Errorf("%T: %s, expected %s", c.a, got, c.want)
		}
	}
	if got := string(compact("%v", []error{errors.New("a")})); !strings.HasPrefix(got, "[0x") {
		t.Errorf("a list of errors: %s", got)
	}
}

func TestCompactWraps(t *testing.T) {
	a, b := errors.New("a"), &fs.PathError{Op: "open", Path: "p", Err: fs.ErrExist}
	for _, args := range [][]any{{a, 1}, {a, b}, {1, b}, {1, 2}, {nil, b}} {
		got, want := compactError("%w: %w", args...), fmt.Errorf("%w: %w", args...)
		for _, e := range []error{a, b, fs.ErrExist, fs.ErrNotExist} {
			if errors.Is(got, e) != errors.Is(want, e) || got.Error() != want.Error() {
				t.Errorf("%v: %v wraps %v: %v, expected %v of %v", args, got, e, errors.Is(got, e), errors.Is(want, e), want)
			}
		}
		type several interface{ Unwrap() []error }
		g, gok := got.(several)
		w, wok := want.(several)
		if gok != wok || gok && !slices.Equal(g.Unwrap(), w.Unwrap()) {
			t.Errorf("%v: unwrap gives %v, expected %v", args, got, want)
		}
		if (errors.Unwrap(got) == nil) != (errors.Unwrap(want) == nil) {
			t.Errorf("%v: Unwrap of %v, expected of %v", args, got, want)
		}
	}
}

func TestExported(t *testing.T) {
	var b []byte
	w := writer{&b}
	Fprintf(w, "%d %s", 1, "a")
	Fprint(w, 2, 3)
	if s := string(b) + Sprintf("%v", level(1)) + Sprint(4) + Errorf("%w", fs.ErrExist).Error(); s != "1 a2 3level14"+fs.ErrExist.Error() {
		t.Errorf("unexpected %q", s)
	}
}

type writer struct{ b *[]byte }

func (w writer) Write(p []byte) (int, error) { *w.b = append(*w.b, p...); return len(p), nil }

// TestFormats checks that compact supports all formats in the packages that use it.
func TestFormats(t *testing.T) {
	supported := regexp.MustCompile(`%%|%(\[\d\])?#?(\.\d+)?[cdefgqsTvwx]`)
	verb := regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)
	found := 0
	texts, uses := map[string][]byte{}, map[string]bool{} // by file, and by folder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		texts[path], err = os.ReadFile(path)
		if bytes.Contains(texts[path], []byte(`"github.com/rayo-go/rayo/internal/fmt"`)) {
			uses[filepath.Dir(path)] = true // other files may format by functions of this one
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range texts {
		if !uses[filepath.Dir(path)] || bytes.Contains(text, []byte("\n\t\"fmt\"\n")) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING || !strings.Contains(l.Value, "%") {
				return true
			}
			found++
			if left := supported.ReplaceAllString(l.Value, ""); verb.MatchString(left) {
				t.Errorf("%s: the format %s has verbs that js programs do not support", path, l.Value)
			}
			return true
		})
	}
	if found < 300 {
		t.Fatalf("found %d formats", found)
	}
}
