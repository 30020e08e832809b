//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"strings"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// The compiler repeats some work at each use of a name. In a chain in which each name uses the
// previous name twice, the time doubles with each step:
//
//   - let: for each use, the compiler finds the type of an operator's result from both operands,
//     through all names of the chain. The type of a variable is known, so such a let becomes a var.
//     Both words are equally long, so positions in the text do not change.
//   - const in a function, without a type, and const in the module that is a vector, matrix
//     or array: its expression is compiled at each use. The language may need a constant there, so it
//     cannot be replaced by a variable.
//   - components of components, as v.xyz.xyz: each is compiled twice for the next.
//   - struct: the alignments of all its members are computed at each use.
//
// Texts that cannot be rewritten and would take too long are refused.
const (
	maxType      = 64      // steps to the type of a let that does not become a var
	maxSteps     = 1 << 29 // to the types of all expressions: some seconds
	maxConstants = 1 << 19 // lexemes of constants, counted for each compilation
	maxMembers   = 1 << 23 // lexemes of structures, counted for each visit
	maxSwizzles  = 16      // components of components
	endless      = 1 << 40 // the limit of all counts
)

// ended returns n where that is less than endless.
func ended(n int64) int64 { return min(n, endless) }

// costly is a text that would take too long: a [*webgpu.CompileError] and [webgpu.ErrLimit].
type costly struct{ *webgpu.CompileError }

func (e costly) Unwrap() []error { return []error{e.CompileError, webgpu.ErrLimit} }

// lexeme is a word or one character of a text, or the digits of a number.
type lexeme struct {
	at   int
	text string
	word bool
}

// lexemes splits a text where the compiler does. What looks like a word and is none, such as
// the exponent of a number, does no harm: no name is declared so, or work is counted that is not done.
func lexemes(text string) []lexeme {
	list := make([]lexeme, 0, len(text)/3)
	for i := 0; i < len(text); {
		two := text[i:min(i+2, len(text))]
		start := i
		switch c := text[i]; {
		case two == "//":
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case two == "/*":
			depth := 1
			for i += 2; i < len(text) && depth > 0; i++ {
				switch text[i:min(i+2, len(text))] {
				case "/*":
					depth++
					i++
				case "*/":
					depth--
					i++
				}
			}
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case c >= '0' && c <= '9':
			for i < len(text) && text[i] >= '0' && text[i] <= '9' {
				i++
			}
			list = append(list, lexeme{start, text[start:i], false})
			continue
		case letter(c):
			for i < len(text) && (letter(text[i]) || text[i] >= '0' && text[i] <= '9') {
				i++
			}
			list = append(list, lexeme{start, text[start:i], true})
			continue
		}
		i++
		list = append(list, lexeme{start, text[start:i], false})
	}
	return list
}

// letter says that c belongs to a word: all that is beyond ASCII is taken for letters.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// growth has the data about the names of a text.
type growth struct {
	shader  *webgpu.Shader
	list    []lexeme
	maxType int64

	declared map[string]*declaration // of the module
	locals   map[string]known        // of the function that is looked at
	assigned map[string]bool         // names in it that something is assigned to

	steps, constants, members int64 // so far
	lets                      []int // positions of the declarations that become var
}

// declaration is a struct, an alias or a constant of the module, or several of one name.
type declaration struct {
	structure bool
	size      int64    // lexemes that a use of it looks at
	words     []string // those that are names
	weight    int64    // how many that is in the end; 0 before it is known
}

// known are the costs of a name of a function, or the maximum costs of several names.
type known struct {
	steps int64 // to its type
	words int64 // lexemes that a use of a constant compiles; 0 for other names
}

// tame returns the text with the lets that would be endless as variables, or a [costly] error.
func tame(s *webgpu.Shader) (string, error) {
	list := lexemes(s.Text)
	text, err := rewritten(s, list, maxType)
	if err != nil { // with all the lets that may be variables
		text, err = rewritten(s, list, 2)
	}
	return text, err
}

// rewritten is tame where a let of more than so many steps becomes a variable.
func rewritten(s *webgpu.Shader, list []lexeme, maxType int64) (string, error) {
	g := &growth{shader: s, list: list, maxType: maxType, declared: map[string]*declaration{}}
	var bodies [][2]int
	for i := 0; i < len(g.list); i++ {
		switch l := &g.list[i]; l.text {
		case "struct", "alias", "const", "let":
			i = g.declare(i)
		case "{":
			end := g.close(i)
			bodies = append(bodies, [2]int{i + 1, end})
			i = end
		}
	}
	inside, swizzles := bodies, 0
	for i := range g.list {
		switch l := g.list[i].text; {
		case i > 0 && g.list[i-1].text == "." && strings.Trim(l, "xyzwrgba") == "":
			if swizzles++; swizzles > maxSwizzles {
				return "", costly{g.shader.Mistake(g.list[i].at, "components of components take too long to compile without cgo: give them names by let")}
			}
		case l != "." && l != ")":
			swizzles = 0
		}
		for len(inside) > 0 && i >= inside[0][1] {
			inside = inside[1:]
		}
		switch d := g.declared[g.list[i].text]; {
		case d == nil || !g.list[i].word:
		case d.structure:
			g.members += g.weight(d)
		case len(inside) == 0 || i < inside[0][0]: // others are counted with their functions
			g.constants += g.weight(d)
		}
		if err := g.within(i); err != nil {
			return "", err
		}
	}
	for _, b := range bodies {
		if err := g.function(b[0], b[1]); err != nil {
			return "", err
		}
	}
	if len(g.lets) == 0 {
		return s.Text, nil
	}
	text := []byte(s.Text)
	for _, at := range g.lets {
		copy(text[at:], "var")
	}
	return string(text), nil
}

// within returns an error if the count, last changed at lexeme i, is too large.
func (g *growth) within(i int) error {
	what := ""
	switch {
	case g.steps > maxSteps:
		what = "names made of one another take too long to compile without cgo: write var for let and const"
	case g.constants > maxConstants:
		what = "constants made of one another take too long to compile without cgo: give them types, or write var"
	case g.members > maxMembers:
		what = "structures within one another take too long to compile without cgo"
	default:
		return nil
	}
	return costly{g.shader.Mistake(g.list[i].at, what)}
}

// close returns the lexeme that closes the bracket at i, or the last.
func (g *growth) close(i int) int {
	depth := 0
	for ; i < len(g.list); i++ {
		switch g.list[i].text {
		case "{", "(", "[":
			depth++
		case "}", ")", "]":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(g.list) - 1
}

// end returns the first lexeme from i on that ends a statement, or the end of the text.
func (g *growth) end(i int) int {
	for i < len(g.list) && g.list[i].text != ";" && g.list[i].text != "{" && g.list[i].text != "}" {
		i++
	}
	return i
}

// declare notes the declaration of the module at lexeme i, and returns its end.
func (g *growth) declare(i int) int {
	kind, end := g.list[i].text, g.end(i)
	if end-i < 2 {
		return end
	}
	from := i + 2
	if kind == "struct" && end < len(g.list) && g.list[end].text == "{" {
		from, end = end, g.close(end)
	}
	name := g.list[i+1].text
	d := g.declared[name]
	if d == nil {
		d = &declaration{}
		g.declared[name] = d
	}
	d.structure = d.structure || kind == "struct" || kind == "alias"
	if !d.structure && !g.compiledAnew(i+1, end) {
		return end
	}
	for ; from < end; from++ {
		d.size++
		if l := &g.list[from]; l.word {
			d.words = append(d.words, l.text)
		}
	}
	return end
}

// compiledAnew reports whether the constant of the module with the name at lexeme i is compiled at each
// use: a vector, a matrix or an array without types, or another name of one. Other constants are
// compiled once.
func (g *growth) compiledAnew(i, to int) bool {
	if i+1 >= to || g.list[i+1].text == ":" {
		return false
	}
	from := g.initial(i, to)
	for from < to && g.list[from].text == "(" {
		from, to = from+1, to-1
	}
	if from >= to || !g.list[from].word {
		return false
	}
	switch name := g.list[from].text; {
	case to-from == 1:
		return true
	case g.list[from+1].text != "(":
		return false
	default:
		return name == "array" || strings.HasPrefix(name, "vec") || strings.HasPrefix(name, "mat")
	}
}

// weight returns how much is looked at for one use of d. What is made of itself is refused
// elsewhere.
func (g *growth) weight(d *declaration) int64 {
	if d.weight == 0 {
		d.weight = 1
		n := d.size
		for _, w := range d.words {
			if e := g.declared[w]; e != nil {
				n = ended(n + g.weight(e))
			}
		}
		d.weight = n
	}
	return d.weight
}

// initial returns the lexeme after the = that follows the name at i, or to.
func (g *growth) initial(i, to int) int {
	for ; i < to; i++ {
		if g.list[i].text == "=" {
			return i + 1
		}
	}
	return to
}

// function looks at the body of a function.
func (g *growth) function(from, to int) error {
	g.locals, g.assigned = map[string]known{}, map[string]bool{}
	for i := from; i < to; i++ {
		end := min(g.end(i), to)
		g.assignment(i, end)
		i = end
	}
	for i := from; i < to; i++ {
		end := min(g.end(i), to)
		if err := g.statement(i, end); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// joined says that lexeme i follows the one before it without a space.
func (g *growth) joined(i int) bool {
	return i > 0 && g.list[i-1].at+len(g.list[i-1].text) == g.list[i].at
}

// assignment notes the names that a statement assigns to, or takes the address of.
// As variables they would not be refused.
func (g *growth) assignment(from, to int) {
	at := from
	for i := from; i < to; i++ {
		l, before := g.list[i].text, ""
		if g.joined(i) && i > from {
			before = g.list[i-1].text
		}
		switch {
		case l == "let" || l == "var" || l == "const":
			at = to // and their = is none of those
		case l == "=":
			equal := i+1 < to && g.list[i+1].text == "=" && g.joined(i+1)
			compared := before == "=" || before == "!" || (before == "<" || before == ">") && (i-2 < from || g.list[i-2].text != before || !g.joined(i-1))
			if !equal && !compared {
				g.assign(at, i)
				at = i
			}
		case (l == "+" || l == "-") && before == l:
			g.assign(at, i)
		case l == "&" && before != "&" && i+1 < to && g.unary(i):
			for i++; i < to && !g.list[i].word; i++ {
			}
			g.assign(i, min(i+1, to))
		}
	}
}

// assign records the names of the operand of an assignment, without the names in its indices.
func (g *growth) assign(from, to int) {
	for ; from < to; from++ {
		if l := &g.list[from]; l.word {
			g.assigned[l.text] = true
		} else if l.text == "[" {
			from = g.close(from)
		}
	}
}

// unary says that the operator at i has nothing in front of it.
func (g *growth) unary(i int) bool {
	if i == 0 {
		return true
	}
	l := &g.list[i-1]
	switch c := l.text[len(l.text)-1]; {
	case l.word:
		return l.text == "return"
	case c == ')' || c == ']' || c >= '0' && c <= '9' || c == '.':
		return false
	}
	return true
}

// statement counts the compiler's work for a statement, and records its declarations.
func (g *growth) statement(from, to int) error {
	if from >= to {
		return nil
	}
	steps, words := g.sum(from, to)
	g.steps = ended(g.steps + g.nesting(from, to)*min(steps, endless>>20))
	g.constants = ended(g.constants + words)
	if err := g.within(from); err != nil {
		return err
	}
	i := from
	for i < to && g.list[i].text != "let" && g.list[i].text != "const" && g.list[i].text != "var" {
		i++
	}
	if i+1 >= to {
		return nil
	}
	name, init := g.list[i+1].text, g.initial(i+1, to)
	n := known{steps: 1}
	if g.list[i].text == "var" && g.list[i+1].text == "<" {
		return nil
	}
	switch kind := g.list[i].text; {
	case kind == "var":
		n.steps = 2
	case kind == "const" && (i+2 >= to || g.list[i+2].text != ":"):
		_, n.words = g.sum(init, to)
		n.words = ended(n.words + int64(to-init))
		n.steps = ended(steps + n.words)
	case g.whole(init, to):
	case g.pointer(init, to):
		n.steps = g.path(init, to)
	case steps <= g.maxType:
		n.steps = steps
	case kind == "let" && name != "_" && !g.assigned[name]:
		g.lets = append(g.lets, g.list[i].at)
		n.steps = 2
	default:
		n.steps = steps
	}
	old := g.locals[name]
	g.locals[name] = known{max(n.steps, old.steps), max(n.words, old.words)}
	return nil
}

// sum returns the steps to all types between two lexemes, each looked for once, and how many
// lexemes of constants are compiled for them.
func (g *growth) sum(from, to int) (steps, words int64) {
	for i := from; i < to; i++ {
		steps++
		l := &g.list[i]
		if !l.word || i > 0 && g.list[i-1].text == "." {
			continue
		}
		n := g.locals[l.text]
		if d := g.declared[l.text]; d != nil && !d.structure {
			n.words = max(n.words, g.weight(d))
		}
		steps, words = ended(steps+n.steps), ended(words+n.words)
	}
	return steps, words
}

// nesting returns how deep the expressions between two lexemes are at most: operators in a
// row, and those within their brackets. For each of these the types below it are looked for.
func (g *growth) nesting(from, to int) int64 {
	type level struct{ here, below, most int64 }
	stack := []level{{}}
	for i := from; i < to; i++ {
		top := &stack[len(stack)-1]
		switch c := g.list[i].text[0]; c {
		case '(', '[':
			stack = append(stack, level{})
		case ')', ']':
			if n := len(stack) - 1; n > 0 {
				stack = stack[:n]
				stack[n-1].below = max(stack[n-1].below, top.most, top.here+top.below)
				stack[n-1].here++
			}
		case ',':
			*top = level{most: max(top.most, top.here+top.below)}
		case '.':
			if i+1 < to && g.list[i+1].word {
				top.here++
			}
		default:
			if strings.IndexByte("+-*/%&|^~!=<>", c) >= 0 {
				top.here++
			}
		}
	}
	deepest := int64(0)
	for i := range stack {
		deepest += max(stack[i].most, stack[i].here+stack[i].below)
	}
	return deepest + 1
}

// whole says that an expression is one call of array: its type is known.
func (g *growth) whole(from, to int) bool {
	if from >= to || g.list[from].text != "array" {
		return false
	}
	for i := from; i < to; i++ {
		if g.list[i].text == "(" {
			return g.close(i) == to-1
		}
	}
	return false
}

// pointer says that an expression may be a pointer, which no variable holds: it takes an address,
// or is a name.
func (g *growth) pointer(from, to int) bool {
	for from < to && g.list[from].text == "(" && g.close(from) == to-1 {
		from, to = from+1, to-1
	}
	return from >= to || g.list[from].text == "&" || to-from == 1 && g.list[from].word
}

// path returns the steps to the type of a pointer: indices are none.
func (g *growth) path(from, to int) int64 {
	n := int64(0)
	for i := from; i < to; i++ {
		if g.list[i].text == "[" {
			i = g.close(i)
		} else if steps, _ := g.sum(i, i+1); true {
			n = ended(n + steps)
		}
	}
	return n
}
