package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxSchemaDepth is the maximum nesting of schemas.
const maxSchemaDepth = 64

// FromJSONSchema returns the grammar of the JSON texts that a schema describes. An empty schema
// describes all JSON.
//
// The supported keywords of JSON Schema are type, enum, const, properties, required, additionalProperties,
// items, prefixItems, minItems, maxItems, anyOf, oneOf, allOf with one schema, $ref to a place in the same
// document, minLength, maxLength, pattern (without extensions beyond regular languages), format (date, time,
// date-time, duration, uuid, email, hostname, ipv4, ipv6; others are ignored), and minimum, maximum and
// their exclusive forms: for integers, and for numbers if they are whole. Other keywords that restrict
// values give an error that wraps [ErrUnsupported] and names the keyword by a JSON pointer; keywords that
// only describe are ignored.
//
// The grammar is narrower than the schema in four ways. Properties come in the order of the schema.
// An object with properties has others only if additionalProperties allows them. Two JSON tokens are
// separated by nothing, one space, or one newline and up to 20 spaces. Names of hosts and addresses of
// mail are ASCII without quotes, and have no more than seven labels. In one way it is wider: a value may
// match several schemas of oneOf.
func FromJSONSchema(raw []byte) (*Grammar, error) {
	s := &schemaReader{rules: map[string]string{}, names: map[string]bool{}, refs: map[string]string{}}
	root, err := parseJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("grammar: %w: %v", ErrSchema, err)
	}
	s.root = root
	s.base()
	body := s.schema(root, "#", 0)
	if s.err != nil {
		return nil, s.err
	}
	s.write("root", body)
	g, err := Parse(s.text.String())
	if err != nil {
		if errors.Is(err, ErrSyntax) { // the only error that the output of this function can cause
			return nil, fmt.Errorf("grammar: %w: a $ref refers to itself, or a pattern repeats an expression that can be empty: %v", ErrSchema, err)
		}
		return nil, err
	}
	return g, nil
}

// schemaReader writes the rules of a schema. It keeps its first error.
type schemaReader struct {
	root  any
	text  strings.Builder
	rules map[string]string // names of the rules by body
	names map[string]bool
	refs  map[string]string // names of the rules of $ref
	err   error
}

func (s *schemaReader) fail(kind error, at, format string, args ...any) string {
	if s.err == nil {
		s.err = fmt.Errorf("grammar: %w: %s: "+format, append([]any{kind, at}, args...)...)
	}
	return `""`
}

// rule writes a rule and returns its name. If the name is in use, it appends a number.
func (s *schemaReader) rule(name, body string) string {
	if old, ok := s.rules[body]; ok {
		return old
	}
	name = s.reserve(name)
	s.rules[body] = name
	s.write(name, body)
	return name
}

// reserve returns an unused name.
func (s *schemaReader) reserve(name string) string {
	free := name
	for i := 2; s.names[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	s.names[free] = true
	return free
}

func (s *schemaReader) write(name, body string) {
	fmt.Fprintf(&s.text, "%s ::= %s\n", name, body)
	if s.text.Len() > maxSource {
		s.fail(ErrLimit, "#", "the grammar has more than %d bytes", maxSource)
	}
}

// base writes the rules of JSON.
func (s *schemaReader) base() {
	s.names["root"] = true
	for _, r := range [][2]string{
		{"ws", `(" " | "\n" [ \t]{0,20})?`},
		{"char", `[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" hex4)`},
		// Exclude escapes of surrogates, which would change the number of characters.
		{"hex4", `[0-9a-cefA-CEF] hex hex hex | [dD] [0-7] hex hex`},
		{"hex", `[0-9a-fA-F]`},
		{"string", `"\"" char* "\""`},
		{"integer", `"-"? natural`},
		{"natural", `"0" | [1-9] [0-9]{0,15}`},
		{"fraction", `"." [0-9]{1,16}`},
		{"number", `integer fraction? ([eE] [-+]? [0-9]{1,2})?`},
		{"boolean", `"true" | "false"`},
		{"null", `"null"`},
		{"value", `object | array | string | number | boolean | null`},
		{"object", `"{" ws (string ws ":" ws value ws ("," ws string ws ":" ws value ws)*)? "}"`},
		{"array", `"[" ws (value ws ("," ws value ws)*)? "]"`},
	} {
		s.rule(r[0], r[1])
	}
}

// object is a JSON object with its keys in order.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) has(key string) bool { _, ok := o.values[key]; return ok }

// parseJSON returns the value of a JSON text, with objects in order and numbers as json.Number.
func parseJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := nextJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON value")
	}
	return v, nil
}

func nextJSON(dec *json.Decoder, depth int) (any, error) {
	if depth > 4*maxSchemaDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", 4*maxSchemaDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	d, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	list, o := []any{}, &object{values: map[string]any{}}
	for dec.More() {
		v, err := nextJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if d == '[' {
			list = append(list, v)
			continue
		}
		key := v.(string)
		if !o.has(key) {
			o.keys = append(o.keys, key)
		}
		if o.values[key], err = nextJSON(dec, depth+1); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if d == '[' {
		return list, nil
	}
	return o, nil
}

// described are the keywords that do not restrict values. format restricts some values, depending on the format.
var described = strings.Fields("title description default example examples deprecated readOnly writeOnly " +
	"$schema $id $anchor $comment $defs definitions format contentMediaType contentEncoding")

// kinds has the keywords of each type, and the function that writes its rule.
var kinds map[string]struct {
	keywords []string
	write    func(s *schemaReader, o *object, at string, depth int) string
}

func init() {
	type kind = struct {
		keywords []string
		write    func(s *schemaReader, o *object, at string, depth int) string
	}
	numbers := strings.Fields("minimum maximum exclusiveMinimum exclusiveMaximum")
	kinds = map[string]kind{
		"string":  {strings.Fields("minLength maxLength pattern"), (*schemaReader).stringType},
		"integer": {numbers, (*schemaReader).integerType},
		"number":  {numbers, (*schemaReader).numberType},
		"object":  {strings.Fields("properties required additionalProperties minProperties maxProperties"), (*schemaReader).objectType},
		"array":   {strings.Fields("items prefixItems minItems maxItems"), (*schemaReader).arrayType},
		"boolean": {nil, func(*schemaReader, *object, string, int) string { return "boolean" }},
		"null":    {nil, func(*schemaReader, *object, string, int) string { return "null" }},
	}
}

// typeNames are the names of kinds, in the order of the alternatives of a schema without a type.
var typeNames = strings.Fields("object array string number integer boolean null")

// schema returns the body of a rule for a schema.
func (s *schemaReader) schema(v any, at string, depth int) string {
	if depth > maxSchemaDepth {
		return s.fail(ErrLimit, at, "schemas more than %d deep", maxSchemaDepth)
	}
	o, ok := v.(*object)
	switch {
	case v == true:
		return "value"
	case v == false:
		return s.fail(ErrSchema, at, "no value fits the schema false")
	case !ok:
		return s.fail(ErrSchema, at, "it is %s, expected an object or a boolean", show(v))
	}
	for _, alone := range []struct {
		key   string
		write func(s *schemaReader, o *object, at string, depth int) string
		with  []string
	}{
		{"$ref", (*schemaReader).ref, nil}, {"const", (*schemaReader).constant, []string{"type"}}, {"enum", (*schemaReader).enum, []string{"type"}},
		{"anyOf", (*schemaReader).anyOf, nil}, {"oneOf", (*schemaReader).anyOf, nil}, {"allOf", (*schemaReader).allOf, nil},
	} {
		if o.has(alone.key) {
			s.only(o, at, append(alone.with, alone.key))
			return alone.write(s, o, at, depth)
		}
	}
	return s.typed(o, at, depth)
}

// only sets an error for keywords other than the given and the descriptive ones.
func (s *schemaReader) only(o *object, at string, keywords []string) {
	for _, k := range o.keys {
		if !slices.Contains(keywords, k) && !slices.Contains(described, k) {
			s.fail(ErrUnsupported, at+"/"+escapePointer(k), "the keyword is unknown, or cannot be combined with %s", strings.Join(keywords, ", "))
		}
	}
}

// typed returns the rule of a schema for its types: the types that it lists; otherwise the types to
// which its keywords apply; otherwise all types.
func (s *schemaReader) typed(o *object, at string, depth int) string {
	var types []string
	switch t := o.values["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, x := range t {
			name, _ := x.(string)
			types = append(types, name)
		}
	default:
		if o.has("type") {
			return s.fail(ErrSchema, at+"/type", "it is %s, expected a name or a list of names", show(t))
		}
		for _, name := range typeNames {
			if slices.ContainsFunc(kinds[name].keywords, o.has) && !(name == "integer" && slices.Contains(types, "number")) {
				types = append(types, name)
			}
		}
		if o.has("format") && types == nil {
			types = []string{"string"}
		}
		if len(types) == 0 {
			s.only(o, at, nil)
			return "value"
		}
	}
	keywords := []string{"type"}
	for _, name := range types {
		k, ok := kinds[name]
		if !ok {
			return s.fail(ErrSchema, at+"/type", "there is no type %q; there are %s", name, strings.Join(typeNames, ", "))
		}
		keywords = append(keywords, k.keywords...)
	}
	// First, because a keyword that is not supported can make values possible that the others exclude.
	s.only(o, at, keywords)
	var alts []string
	for _, name := range types {
		alts = append(alts, kinds[name].write(s, o, at, depth))
	}
	if len(alts) == 0 {
		return s.fail(ErrSchema, at+"/type", "the list names no type")
	}
	return strings.Join(alts, " | ")
}

// show returns a short form of a JSON value for errors.
func show(v any) string {
	switch v := v.(type) {
	case *object:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%.40q", v)
	}
	return fmt.Sprint(v)
}

func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// sub returns the name of the rule for a nested schema.
func (s *schemaReader) sub(v any, at string, depth int) string {
	body := s.schema(v, at, depth+1)
	if s.names[body] {
		return body
	}
	return s.rule(ruleName(at), body)
}

// ruleName returns the name of the rule for a position in the document.
func ruleName(at string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && isName(byte(r)) {
			return r
		}
		return '-'
	}, "at"+strings.TrimPrefix(at, "#"))
}

// ref returns the rule of another position in the document. This rule may be incomplete still.
func (s *schemaReader) ref(o *object, at string, depth int) string {
	ref, _ := o.values["$ref"].(string)
	if name, ok := s.refs[ref]; ok {
		return name
	}
	v, err := s.find(ref)
	if err != nil {
		return s.fail(ErrSchema, at+"/$ref", "%v", err)
	}
	name := s.reserve(ruleName(ref))
	s.refs[ref] = name
	s.write(name, s.schema(v, ref, depth+1))
	return name
}

// find returns the value to which a JSON pointer of the form #/a/b points.
func (s *schemaReader) find(ref string) (any, error) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil, fmt.Errorf("%w: %q is not of the form #/path, a position in the same document", ErrUnsupported, ref)
	}
	v := s.root
	for _, part := range strings.Split(path, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch x := v.(type) {
		case *object:
			v, ok = x.values[part], x.has(part)
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(x); ok {
				v = x[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%q refers to a place that the document does not have", ref)
		}
	}
	return v, nil
}

func (s *schemaReader) constant(o *object, at string, _ int) string {
	return s.literals(o, []any{o.values["const"]}, at+"/const")
}

func (s *schemaReader) enum(o *object, at string, _ int) string {
	list, ok := o.values["enum"].([]any)
	if !ok {
		return s.fail(ErrSchema, at+"/enum", "it is %s, expected a list", show(o.values["enum"]))
	}
	return s.literals(o, list, at+"/enum")
}

// literals returns the JSON texts of the values in list that have the schema's type.
func (s *schemaReader) literals(o *object, list []any, at string) string {
	var alts []string
	for _, v := range list {
		if t, ok := o.values["type"]; ok && !isOfType(v, t) {
			continue
		}
		text, err := marshal(v)
		if err != nil {
			return s.fail(ErrSchema, at, "%v", err)
		}
		alts = append(alts, quote(string(text)))
	}
	if len(alts) == 0 {
		return s.fail(ErrSchema, at, "no value fits")
	}
	return strings.Join(alts, " | ")
}

// isOfType reports whether a value has type t or, if t is a list, one of its types.
func isOfType(v, t any) bool {
	if list, ok := t.([]any); ok {
		return slices.ContainsFunc(list, func(t any) bool { return isOfType(v, t) })
	}
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		f, err := v.Float64()
		return t == "number" || t == "integer" && err == nil && f == math.Trunc(f)
	case []any:
		return t == "array"
	}
	return t == "object"
}

// MarshalJSON writes the object and keeps the order of the keys.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := marshal(k)
		if err != nil {
			return nil, err
		}
		value, err := marshal(o.values[k])
		if err != nil {
			return nil, err
		}
		b.Write(append(append(key, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal writes a value as JSON without escaping HTML characters.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// quote returns a text as GBNF.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7F:
			fmt.Fprintf(&b, `\x%02X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (s *schemaReader) anyOf(o *object, at string, depth int) string {
	key := "anyOf"
	if !o.has(key) {
		key = "oneOf"
	}
	list, ok := o.values[key].([]any)
	if !ok || len(list) == 0 {
		return s.fail(ErrSchema, at+"/"+key, "it is %s, expected a list of schemas", show(o.values[key]))
	}
	var alts []string
	for i, v := range list {
		if v == false {
			continue
		}
		alts = append(alts, s.sub(v, fmt.Sprintf("%s/%s/%d", at, key, i), depth))
	}
	if len(alts) == 0 {
		return s.fail(ErrSchema, at+"/"+key, "no value fits")
	}
	return strings.Join(alts, " | ")
}

func (s *schemaReader) allOf(o *object, at string, depth int) string {
	list, _ := o.values["allOf"].([]any)
	if len(list) != 1 {
		return s.fail(ErrUnsupported, at+"/allOf", "%d schemas, expected one", len(list))
	}
	return s.schema(list[0], at+"/allOf/0", depth+1)
}
