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

type broken struct{ s *string }

func (b *broken) Error() string { return *b.s }

// operands lists a value of each supported type and of types with methods.
func operands() []any {
	l := level(2)
	return []any{
		nil, true, 0, -3, int8(-128), int64(math.MinInt64), uint8(200), uint64(math.MaxUint64), uintptr(7), 'é', rune(-1), math.MaxInt32,
		1.5, 1e6, 1e-7, 1e21, float32(0.1), math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 123456789.0,
		"", "text", "a\"b\x00é", plain(3), l, &l, (*level)(nil),
		[]int{}, []int{1, -2}, []int(nil), []uint32{1, 2, 3}, []byte("hi"), []byte{1, 255}, []string{"a", "b c"},
		fs.ErrNotExist, &fs.PathError{Op: "open", Path: "p", Err: fs.ErrExist}, fmt.Errorf("a: %w", fs.ErrExist), (*broken)(nil), &broken{},
	}
}

func TestCompactEqualsFmt(t *testing.T) {
	for _, f := range []string{"%v", "%d", "%s", "%q", "%x", "%#x", "%c", "%g", "%e", "%f", "%.3g", "%.0f", "%.2e", "%T", "%w"} {
		for _, a := range operands() {
			if _, bytes := a.([]byte); bytes && f == "%w" {
				continue // the standard library refuses each byte
			}
			if isPointer(a) && !strings.ContainsAny(f, "vsqxTw") || f == "%w" && !isError(a) && isPointer(a) {
				continue // the standard library prints the address, or what is there
			}
			float := reflect.ValueOf(a).IsValid() && reflect.ValueOf(a).CanFloat()
			if strings.Contains(f, ".") && !float || f == "%#x" && float {
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

func isPointer(a any) bool { return reflect.ValueOf(a).Kind() == reflect.Pointer }

func isError(a any) bool { _, ok := a.(error); return ok }

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

// TestOthers checks that values of other types print as their type.
func TestOthers(t *testing.T) {
	for _, c := range []struct {
		a    any
		want string
	}{
		{[]level{1, 2}, "%!v([]fmt.level)"}, {[]any{1}, "%!v([]interface {})"}, {struct{ X int }{3}, "%!v(struct { X int })"}, {[2]int{1, 2}, "%!v([2]int)"},
		{new(int), "%!v(*int)"}, {func() {}, "%!v(func())"}, {make(chan int), "%!v(chan int)"}, {map[int]int{}, "%!v(map[int]int)"},
	} {
		if got := string(compact("%v", c.a)); got != c.want {
			t.Errorf("%T: %s, expected %s", c.a, got, c.want)
		}
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
