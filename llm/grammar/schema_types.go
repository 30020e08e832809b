package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// count returns the value of a keyword that counts, such as minItems, or otherwise.
func (s *schemaReader) count(o *object, key, at string, otherwise int) int {
	v, ok := o.values[key]
	if !ok {
		return otherwise
	}
	n, ok := v.(json.Number)
	f, err := n.Float64()
	if !ok || err != nil || f < 0 || f != float64(int(f)) {
		s.fail(ErrSchema, at+"/"+key, "it is %s, expected an integer of 0 or more", show(v))
	}
	if f > maxElements {
		s.fail(ErrLimit, at+"/"+key, "it is %s, expected at most %d", n, maxElements)
		return otherwise
	}
	return int(f)
}

// times returns a GBNF repetition; a negative hi means no limit.
func times(lo, hi int) string {
	switch {
	case hi < 0 && lo == 0:
		return "*"
	case hi < 0:
		return fmt.Sprintf("{%d,}", lo)
	}
	return fmt.Sprintf("{%d,%d}", lo, hi)
}

// formats has the rule bodies of the supported formats, and the least and the greatest number of characters of their
// strings.
var formats = map[string]struct {
	body              string
	shortest, longest int
}{
	"date":      {`date`, 10, 10},
	"time":      {`time`, 9, 24},
	"date-time": {`date "T" time`, 20, 35},
	"duration":  {`"P" ( days ( "T" times )? | "T" times | whole "W" )`, 3, 63},
	"uuid":      {`hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}`, 36, 36},
	"hostname":  {`label ( "." part ){0,6}`, 1, 241},
	"email":     {`atom ( "." atom ){0,2} "@" label ( "." part ){1,3}`, 5, 214},
	"ipv4":      {`octet ( "." octet ){3}`, 7, 15},
	"ipv6":      {ipv6, 2, 39},
}

// ipv6 has one alternative for each number of groups before the double colon.
const ipv6 = `( h16 ":" ){7} h16 | ":" ( ( ":" h16 ){1,7} | ":" ) | h16 ":" ( ":" h16 ){1,6} | ` +
	`( h16 ":" ){1,2} ( ":" h16 ){1,5} | ( h16 ":" ){1,3} ( ":" h16 ){1,4} | ( h16 ":" ){1,4} ( ":" h16 ){1,3} | ` +
	`( h16 ":" ){1,5} ( ":" h16 ){1,2} | ( h16 ":" ){1,6} ":" h16 | ( h16 ":" ){1,7} ":"`

// formatRules are the rules that formats need. Days include those of every month and the last days of longer months.
// Names of hosts have up to 241 of the 253 characters that DNS allows, and no two hyphens in a row, which DNS reserves.
var formatRules = [][2]string{
	{"date", `[0-9]{4} "-" ( ( "0" [13578] | "1" [02] ) "-" ( day | "29" | "30" | "31" ) | ( "0" [469] | "11" ) "-" ( day | "29" | "30" ) | "02-" day )`},
	{"day", `"0" [1-9] | "1" [0-9] | "2" [0-8]`},
	{"time", `hour ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{1,9} )? ( "Z" | [-+] hour ":" [0-5] [0-9] )`},
	{"hour", `[01] [0-9] | "2" [0-3]`},
	{"days", `whole "D" | whole "M" ( whole "D" )? | whole "Y" ( whole "M" ( whole "D" )? )?`},
	{"times", `whole "S" | whole "M" ( whole "S" )? | whole "H" ( whole "M" ( whole "S" )? )?`},
	{"whole", `[0-9]{1,9}`},
	{"label", `[A-Za-z0-9] ( "-"? [A-Za-z0-9] ){0,30}`},
	{"part", `[A-Za-z0-9] ( "-"? [A-Za-z0-9] ){0,14}`},
	{"atom", `[A-Za-z0-9_+-]{1,20}`},
	{"octet", `[0-9] | [1-9] [0-9] | "1" [0-9] [0-9] | "2" [0-4] [0-9] | "25" [0-5]`},
	{"h16", `hex{1,4}`},
}

func (s *schemaReader) stringType(o *object, at string, _ int) string {
	format, _ := o.values["format"].(string)
	lo, hi := s.count(o, "minLength", at, 0), s.count(o, "maxLength", at, -1)
	bounded := lo > 0 || hi >= 0
	if hi >= 0 && hi < lo {
		return s.fail(ErrSchema, at, "minLength is %d, expected at most maxLength, %d", lo, hi)
	}
	pattern, hasPattern := o.values["pattern"].(string)
	f, hasFormat := formats[format]
	if hasFormat && lo <= f.shortest && (hi < 0 || hi >= f.longest) {
		bounded = false // the format implies the lengths
	}
	if btoi(bounded)+btoi(hasPattern)+btoi(hasFormat) > 1 {
		return s.fail(ErrUnsupported, at, "only one of lengths, pattern and format is supported, unless the format implies the lengths")
	}
	switch {
	case hasFormat:
		for _, r := range formatRules {
			s.rule(r[0], r[1])
		}
		return s.rule("format-"+format, `"\"" ( `+f.body+` ) "\""`)
	case hasPattern:
		return s.pattern(pattern, at+"/pattern")
	case o.has("pattern"):
		return s.fail(ErrSchema, at+"/pattern", "it is %s, expected a string", show(o.values["pattern"]))
	case bounded:
		return `"\"" char` + times(lo, hi) + ` "\""`
	}
	return "string"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// objectType returns the rule of an object with properties in order. Rule i of "first" matches the rest
// of the object if no property came before property i; rule i of "rest" if one came before and a comma is
// required.
func (s *schemaReader) objectType(o *object, at string, depth int) string {
	props := &object{values: map[string]any{}}
	if v, ok := o.values["properties"]; ok {
		if props, ok = v.(*object); !ok {
			return s.fail(ErrSchema, at+"/properties", "it is %s, expected an object", show(v))
		}
	}
	required := s.required(o, props, at)
	others, open := o.values["additionalProperties"]
	if !open {
		others, open = true, len(props.keys) == 0
	}
	open = open && others != false
	lo, hi := s.count(o, "minProperties", at, 0), s.count(o, "maxProperties", at, -1)
	if len(props.keys) == 0 {
		return s.mapType(others, open, lo, hi, at, depth)
	}
	if lo > len(required) || hi >= 0 && (hi < len(props.keys) || open) {
		return s.fail(ErrUnsupported, at, "minProperties and maxProperties are not supported together with properties")
	}
	first, rest := "", ""
	if open {
		other := s.rule("key-but-of-"+ruleName(at), s.otherKey(props.keys)) + ` ws ":" ws ` + s.additional(others, at, depth) + " ws"
		rest = s.rule(ruleName(at)+"-others", `("," ws `+other+")*")
		first = s.rule(ruleName(at)+"-other", "("+other+" "+rest+")?")
	}
	for i := len(props.keys) - 1; i >= 0; i-- {
		key := props.keys[i]
		text, err := marshal(key)
		if err != nil {
			return s.fail(ErrSchema, at, "%v", err)
		}
		if props.values[key] == false && !slices.Contains(required, key) {
			continue
		}
		place := at + "/properties/" + escapePointer(key)
		pair := quote(string(text)) + ` ws ":" ws ` + s.sub(props.values[key], place, depth) + " ws " + rest
		if slices.Contains(required, key) {
			first, rest = pair, `"," ws `+pair
		} else {
			first, rest = or(pair, first), or(`"," ws `+pair, rest)
		}
		first, rest = s.rule(ruleName(place)+"-first", first), s.rule(ruleName(place)+"-rest", rest)
	}
	return `"{" ws ` + first + ` "}"`
}

// or joins two alternatives. It ignores empty ones.
func or(a, b string) string {
	if b == "" {
		return "(" + a + ")?"
	}
	return a + " | " + b
}

// required returns the required properties. It adds a schema for required properties without one.
func (s *schemaReader) required(o, props *object, at string) (names []string) {
	v, ok := o.values["required"]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	for _, x := range list {
		name, isString := x.(string)
		ok = ok && isString
		names = append(names, name)
	}
	if !ok {
		s.fail(ErrSchema, at+"/required", "it is %s, expected a list of names", show(v))
	}
	for _, name := range names {
		if !props.has(name) {
			s.fail(ErrUnsupported, at+"/required", "%q is not in properties", name)
		}
	}
	return names
}

func (s *schemaReader) additional(v any, at string, depth int) string {
	return s.sub(v, at+"/additionalProperties", depth)
}

// mapType returns the rule of an object with arbitrary keys.
func (s *schemaReader) mapType(others any, open bool, lo, hi int, at string, depth int) string {
	if !open {
		if lo > 0 {
			return s.fail(ErrSchema, at, "minProperties is %d, but no properties are allowed", lo)
		}
		return `"{" ws "}"`
	}
	return s.listed("{", "}", `string ws ":" ws `+s.additional(others, at, depth), lo, hi, at)
}

// listed returns lo to hi items separated by commas.
func (s *schemaReader) listed(begin, end, item string, lo, hi int, at string) string {
	begin, end = quote(begin)+" ws ", " "+quote(end)
	switch {
	case hi >= 0 && hi < lo:
		return s.fail(ErrSchema, at, "the smallest number of items is %d, expected at most the largest, %d", lo, hi)
	case hi == 0:
		return begin + end
	}
	more := hi - 1
	if hi < 0 {
		more = -1
	}
	items := item + ` ws ("," ws ` + item + " ws)" + times(max(lo-1, 0), more)
	if lo == 0 {
		items = "(" + items + ")?"
	}
	return begin + items + end
}

// otherKey returns the rule of a key, without escapes, that differs from the given keys: the rule
// follows the trie of these keys and leaves it.
func (s *schemaReader) otherKey(keys []string) string {
	type tree struct {
		next map[rune]*tree
		key  bool
	}
	root := &tree{next: map[rune]*tree{}}
	for _, k := range keys {
		t := root
		for _, r := range k {
			if t.next[r] == nil {
				t.next[r] = &tree{next: map[rune]*tree{}}
			}
			t = t.next[r]
		}
		t.key = true
	}
	const plain = `[^"\\\x00-\x1F\x7F]`
	var body func(t *tree) string
	body = func(t *tree) string {
		var runes []rune
		for r := range t.next {
			runes = append(runes, r)
		}
		slices.Sort(runes)
		class := strings.Builder{}
		var alts []string
		for _, r := range runes {
			fmt.Fprintf(&class, `\U%08X`, r)
			if r != '"' && r != '\\' && r >= ' ' && r != 0x7F {
				alts = append(alts, quote(string(r))+" "+s.rule("key-tail", body(t.next[r])))
			}
		}
		alts = append(alts, strings.Replace(plain, "]", class.String()+"]", 1)+" "+plain+"*")
		if !t.key {
			alts = append(alts, `""`)
		}
		return strings.Join(alts, " | ")
	}
	return `"\"" ` + s.rule("key-tail", body(root)) + ` "\""`
}

func (s *schemaReader) arrayType(o *object, at string, depth int) string {
	lo, hi := s.count(o, "minItems", at, 0), s.count(o, "maxItems", at, -1)
	items, ok := o.values["items"]
	if !ok {
		items = true
	}
	prefix, ok := o.values["prefixItems"].([]any)
	if o.has("prefixItems") && !ok {
		return s.fail(ErrSchema, at+"/prefixItems", "it is %s, expected a list", show(o.values["prefixItems"]))
	}
	if len(prefix) == 0 {
		if items == false {
			hi = 0
			items = true
		}
		return s.listed("[", "]", s.sub(items, at+"/items", depth), lo, hi, at)
	}
	return s.tuple(prefix, items, lo, hi, at, depth)
}

// tuple returns the rule of a list whose first items have individual schemas; all of them are required.
func (s *schemaReader) tuple(prefix []any, items any, lo, hi int, at string, depth int) string {
	if hi >= 0 && hi < len(prefix) {
		return s.fail(ErrUnsupported, at+"/maxItems", "it is %d, expected at least the number of prefixItems, %d", hi, len(prefix))
	}
	var parts []string
	for i, v := range prefix {
		parts = append(parts, s.sub(v, fmt.Sprintf("%s/prefixItems/%d", at, i), depth)+" ws")
	}
	body := `"[" ws ` + strings.Join(parts, ` "," ws `)
	switch more := hi - len(prefix); {
	case items == false && lo > len(prefix):
		return s.fail(ErrSchema, at+"/minItems", "it is %d, expected at most the number of prefixItems, %d", lo, len(prefix))
	case items != false && more != 0:
		if hi < 0 {
			more = -1
		}
		body += ` ("," ws ` + s.sub(items, at+"/items", depth) + " ws)" + times(max(lo-len(prefix), 0), more)
	}
	return body + ` "]"`
}

// limits returns the minimum and the maximum of a schema, nil if absent. noLo and noHi report
// whether they are exclusive.
func (s *schemaReader) limits(o *object, at string) (lo, hi *big.Rat, noLo, noHi bool) {
	get := func(key string) *big.Rat {
		v, ok := o.values[key]
		if !ok {
			return nil
		}
		n, isNumber := v.(json.Number)
		if !isNumber || len(n) > 32 || strings.ContainsAny(string(n), "eE") {
			s.fail(ErrSchema, at+"/"+key, "it is %s, expected a number of at most 32 digits without an exponent", show(v))
			return nil
		}
		r, ok := new(big.Rat).SetString(string(n))
		if !ok {
			s.fail(ErrSchema, at+"/"+key, "it is %s, expected a number", show(v))
		}
		return r
	}
	lo, hi = get("minimum"), get("maximum")
	if x := get("exclusiveMinimum"); x != nil && (lo == nil || x.Cmp(lo) >= 0) {
		lo, noLo = x, true
	}
	if x := get("exclusiveMaximum"); x != nil && (hi == nil || x.Cmp(hi) <= 0) {
		hi, noHi = x, true
	}
	return lo, hi, noLo, noHi
}

func (s *schemaReader) integerType(o *object, at string, _ int) string {
	l, h, noLo, noHi := s.limits(o, at)
	if s.err != nil || l == nil && h == nil {
		return "integer"
	}
	var lo, hi *big.Int
	one := big.NewInt(1)
	if l != nil {
		lo = floor(l)
		if noLo || !l.IsInt() {
			lo.Add(lo, one)
		}
	}
	if h != nil {
		hi = floor(h)
		if noHi && h.IsInt() {
			hi.Sub(hi, one)
		}
	}
	body := integers(lo, hi, "")
	if body == "" {
		return s.fail(ErrSchema, at, "no integer is within the limits")
	}
	return body
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// numberType returns the rule of numbers without exponents, within integer limits.
func (s *schemaReader) numberType(o *object, at string, _ int) string {
	l, h, noLo, noHi := s.limits(o, at)
	if s.err != nil || l == nil && h == nil {
		return "number"
	}
	if l != nil && !l.IsInt() || h != nil && !h.IsInt() {
		return s.fail(ErrUnsupported, at, "a limit of a number has a fraction, expected whole numbers")
	}
	var lo, hi *big.Int
	if l != nil {
		lo = l.Num()
	}
	if h != nil {
		hi = h.Num()
	}
	alts := append(s.magnitudes(lo, hi, noLo, noHi, ""), s.magnitudes(negated(hi), negated(lo), noHi, noLo, `"-" `)...)
	if len(alts) == 0 {
		return s.fail(ErrSchema, at, "no number is within the limits")
	}
	return strings.Join(alts, " | ")
}

func negated(x *big.Int) *big.Int {
	if x == nil {
		return nil
	}
	return new(big.Int).Neg(x)
}

// magnitudes returns the rules of the nonnegative numbers within limits, with a sign before them.
func (s *schemaReader) magnitudes(lo, hi *big.Int, noLo, noHi bool, sign string) (alts []string) {
	one, zero := big.NewInt(1), new(big.Int)
	if hi != nil && hi.Sign() < 0 {
		return nil
	}
	if lo == nil || lo.Sign() < 0 {
		lo, noLo = zero, false
	}
	if hi != nil && (hi.Cmp(lo) < 0 || hi.Cmp(lo) == 0 && (noLo || noHi)) {
		return nil
	}
	var below *big.Int // the largest integer part with an arbitrary fraction
	if hi != nil {
		below = new(big.Int).Sub(hi, one)
		if !noHi {
			alts = append(alts, sign+quote(hi.String())+` ("." "0"{1,16})?`)
		}
	}
	from := lo
	if noLo {
		if below == nil || lo.Cmp(below) <= 0 {
			alts = append(alts, sign+quote(lo.String())+` "." [0-9]{0,15} [1-9]`)
		}
		from = new(big.Int).Add(lo, one)
	}
	if body := integers(from, below, ""); body != "" {
		alts = append(alts, sign+"("+body+") fraction?")
	}
	return alts
}

// integers returns the rule of the integers from lo to hi, nil for no limit, or "" if there are none.
func integers(lo, hi *big.Int, sign string) string {
	if lo != nil && hi != nil && lo.Cmp(hi) > 0 {
		return ""
	}
	var alts []string
	zero, one := new(big.Int), big.NewInt(1)
	if lo == nil || lo.Sign() < 0 { // write negative numbers by their absolute values
		from := one
		if hi != nil && hi.Sign() < 0 {
			from = negated(hi)
		}
		alts = append(alts, `"-" (`+integers(from, negated(lo), "")+")")
		lo = zero
	}
	if hi == nil {
		digits := len(lo.String())
		last := strings.Repeat("9", digits)
		alts = append(alts, digitRange(lo.String(), last), fmt.Sprintf("[1-9] [0-9]{%d,%d}", digits, max(digits, 15)))
		return strings.Join(alts, " | ")
	}
	for lo.Cmp(hi) <= 0 {
		last, _ := new(big.Int).SetString(strings.Repeat("9", len(lo.String())), 10)
		if last.Cmp(hi) > 0 {
			last = hi
		}
		alts = append(alts, digitRange(lo.String(), last.String()))
		lo = new(big.Int).Add(last, one)
	}
	return strings.Join(alts, " | ")
}

// digitRange returns the rule of the numbers from lo to hi, which have the same number of digits.
func digitRange(lo, hi string) string {
	if lo == "" {
		return `""`
	}
	n := len(lo) - 1
	zeros, nines := strings.Repeat("0", n), strings.Repeat("9", n)
	any := fmt.Sprintf(" [0-9]{%d}", n)
	first, last := lo[0], hi[0]
	if first == last {
		if n == 0 {
			return quote(lo)
		}
		if lo[1:] == zeros && hi[1:] == nines {
			return quote(lo[:1]) + any
		}
		return quote(lo[:1]) + " (" + digitRange(lo[1:], hi[1:]) + ")"
	}
	var alts []string
	if lo[1:] != zeros {
		alts = append(alts, quote(lo[:1])+" ("+digitRange(lo[1:], nines)+")")
		first++
	}
	upper := ""
	if hi[1:] != nines {
		upper = quote(hi[:1]) + " (" + digitRange(zeros, hi[1:]) + ")"
		last--
	}
	if first <= last {
		alts = append(alts, fmt.Sprintf("[%c-%c]", first, last)+any)
	}
	if upper != "" {
		alts = append(alts, upper)
	}
	return strings.Join(alts, " | ")
}
