package grammar

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/mail"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rayo-go/rayo/internal/testutil"
)

// fits validates a value against the supported part of JSON Schema, as its specification says.
func fits(root, schema, v any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	if ref, ok := s["$ref"].(string); ok {
		at := root
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
			at = at.(map[string]any)[part]
		}
		return fits(root, at, v)
	}
	for key, check := range map[string]func(x any) bool{
		"const": func(x any) bool { return same(x, v) },
		"enum":  func(x any) bool { return slices.ContainsFunc(x.([]any), func(e any) bool { return same(e, v) }) },
		"anyOf": func(x any) bool { return slices.ContainsFunc(x.([]any), func(e any) bool { return fits(root, e, v) }) },
		"oneOf": func(x any) bool { return slices.ContainsFunc(x.([]any), func(e any) bool { return fits(root, e, v) }) },
		"allOf": func(x any) bool {
			return !slices.ContainsFunc(x.([]any), func(e any) bool { return !fits(root, e, v) })
		},
		"type": func(x any) bool {
			if list, ok := x.([]any); ok {
				return slices.ContainsFunc(list, func(t any) bool { return typeFits(t.(string), v) })
			}
			return typeFits(x.(string), v)
		},
	} {
		if x, ok := s[key]; ok && !check(x) {
			return false
		}
	}
	switch v := v.(type) {
	case string:
		return stringFits(s, v)
	case float64:
		return numberFits(s, v)
	case []any:
		return arrayFits(root, s, v)
	case map[string]any:
		return objectFits(root, s, v)
	}
	return true
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func typeFits(t string, v any) bool {
	f, isNumber := v.(float64)
	_, isString := v.(string)
	_, isBool := v.(bool)
	_, isList := v.([]any)
	_, isObject := v.(map[string]any)
	return map[string]bool{"string": isString, "number": isNumber, "integer": isNumber && f == math.Trunc(f), "boolean": isBool, "array": isList, "object": isObject, "null": v == nil}[t]
}

func number(s map[string]any, key string, otherwise float64) float64 {
	if f, ok := s[key].(float64); ok {
		return f
	}
	return otherwise
}

// formatChecks are the checks of formats that Go has no layout for.
var formatChecks = map[any]func(v string) bool{
	"uuid":     isUUID.MatchString,
	"duration": func(v string) bool { return isDuration.MatchString(v) && len(v) > 2 && !strings.HasSuffix(v, "T") },
	"hostname": isHost.MatchString,
	"email": func(v string) bool {
		a, err := mail.ParseAddress(v)
		return err == nil && a.Address == v && len(v) <= 254
	},
	"ipv4": func(v string) bool { a, err := netip.ParseAddr(v); return err == nil && a.Is4() },
	"ipv6": func(v string) bool { a, err := netip.ParseAddr(v); return err == nil && a.Is6() },
}

var isHost = regexp.MustCompile(`^([0-9A-Za-z](-?[0-9A-Za-z])*\.)*[0-9A-Za-z](-?[0-9A-Za-z])*$`)

var isDuration = regexp.MustCompile(`^P(\d+W|((\d+Y)?(\d+M)?(\d+D)?)(T(\d+H)?(\d+M)?(\d+S)?)?)$`)

var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func stringFits(s map[string]any, v string) bool {
	n := float64(utf8.RuneCountInString(v))
	if n < number(s, "minLength", 0) || n > number(s, "maxLength", math.Inf(1)) {
		return false
	}
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(strings.ReplaceAll(p, `\s`, `[\s\v\p{Z}\x{FEFF}]`)).MatchString(v) {
		return false
	}
	layout := map[any]string{"date": time.DateOnly, "time": "15:04:05Z07:00", "date-time": time.RFC3339}[s["format"]]
	if layout != "" {
		if _, err := time.Parse(layout, v); err != nil {
			return false
		}
	}
	valid := formatChecks[s["format"]]
	return valid == nil || valid(v)
}

func numberFits(s map[string]any, v float64) bool {
	return v >= number(s, "minimum", math.Inf(-1)) && v <= number(s, "maximum", math.Inf(1)) &&
		v > number(s, "exclusiveMinimum", math.Inf(-1)) && v < number(s, "exclusiveMaximum", math.Inf(1))
}

func arrayFits(root any, s map[string]any, v []any) bool {
	n := float64(len(v))
	if n < number(s, "minItems", 0) || n > number(s, "maxItems", math.Inf(1)) {
		return false
	}
	prefix, _ := s["prefixItems"].([]any)
	for i, x := range v {
		schema, ok := s["items"]
		if i < len(prefix) {
			schema, ok = prefix[i], true
		}
		if ok && !fits(root, schema, x) {
			return false
		}
	}
	return true
}

func objectFits(root any, s map[string]any, v map[string]any) bool {
	n := float64(len(v))
	if n < number(s, "minProperties", 0) {
		return false
	}
	required, _ := s["required"].([]any)
	for _, k := range required {
		if _, ok := v[k.(string)]; !ok {
			return false
		}
	}
	props, _ := s["properties"].(map[string]any)
	for k, x := range v {
		schema, ok := props[k]
		if !ok {
			schema, ok = s["additionalProperties"]
		}
		if ok && !fits(root, schema, x) {
			return false
		}
	}
	return true
}

var schemas = []string{
	`{}`, `true`,
	`{"type": "string", "minLength": 2, "maxLength": 5}`,
	`{"type": "string", "pattern": "^[A-Z]{2}-\\d+(\\.x|\"q\"|\\\\|\\s)?$"}`,
	`{"type": "string", "pattern": "ab+"}`,
	`{"type": "string", "format": "date"}`, `{"format": "time"}`, `{"type": "string", "format": "date-time"}`, `{"type": "string", "format": "uuid"}`,
	`{"type": "integer", "minimum": -17, "maximum": 1203}`, `{"type": "integer", "exclusiveMinimum": 7}`, `{"type": "integer", "maximum": -3.5}`, `{"minimum": 12, "exclusiveMaximum": 345, "type": "integer"}`,
	`{"type": "number", "minimum": -2, "exclusiveMaximum": 15}`, `{"type": "number", "exclusiveMinimum": 0, "maximum": 1}`, `{"type": "number", "maximum": -5}`, `{"type": "number"}`,
	`{"enum": ["a\n\"<>", 1, null, {"x": [1, 2.5]}, true]}`, `{"const": "日本"}`, `{"type": "string", "enum": ["x", 5]}`,
	`{"type": ["string", "null"], "minLength": 1}`,
	`{"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4}`,
	`{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}`, `{"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 3, "maxItems": 4}`,
	`{"type": "array", "items": {"type": "null"}, "maxItems": 0}`,
	`{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name"], "additionalProperties": false}`,
	`{"type": "object", "properties": {"a": {"type": "null"}, "ab": {"type": "boolean"}, "q\"": {"const": 1}}, "additionalProperties": {"type": "integer"}}`,
	`{"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["a", "c"]}`,
	`{"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 0}`, `{"type": "object"}`, `{"type": "object", "additionalProperties": false}`,
	`{"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "required": ["x"]}], "$defs": {"n": {"type": "null"}}}`,
	`{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0, "maximum": 9}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, "required": ["v"]}}}`,
	`{"type": "object", "title": "T", "description": "d", "properties": {"k": {"allOf": [{"$ref": "#/definitions/d"}], "default": 1}}, "definitions": {"d": {"oneOf": [{"const": 1}, {"const": "x"}]}}}`,
	`{"format": "duration"}`, `{"format": "hostname"}`, `{"format": "email", "maxLength": 254}`, `{"format": "ipv4", "minLength": 7}`, `{"format": "ipv6"}`,
}

// closers are the characters that a long walk prefers, in this order, to end open constructs.
var closers = []string{`"`, "}", "]", ":", ",", "0", "n", "1"}

// walk returns a random text of a grammar.
func walk(t *testing.T, rng *rand.Rand, g *Grammar, v *Vocabulary, length int) string {
	t.Helper()
	m := g.Matcher(v)
	var said []byte
	for n := 0; ; n++ {
		if n > 20000 {
			t.Fatalf("no end after %.200q", said)
		}
		if m.Done() && (n > length || rng.IntN(4) == 0) {
			return string(said)
		}
		mask, err := m.Allowed()
		if err != nil {
			t.Fatal(err)
		}
		var may []int32
		for id := range int32(v.Size()) {
			if mask.Has(id) {
				may = append(may, id)
			}
		}
		if len(may) == 0 {
			if !m.Done() {
				t.Fatalf("no character is allowed after %q", said)
			}
			return string(said)
		}
		id := may[rng.IntN(len(may))]
		if n > length && rng.IntN(8) > 0 {
			for _, c := range slices.Backward(closers) {
				if mask.Has(int32(c[0])) {
					id = int32(c[0])
				}
			}
		}
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
		said = append(said, v.tokens[id]...)
	}
}

// TestSchemaWalks checks that random texts of a schema's grammar are JSON that fits the schema.
func TestSchemaWalks(t *testing.T) {
	rng := testutil.Rand(t)
	v := byteVocabulary(`"name"`, `"age"`, "false", "2024", "-05-", "T1", ":30")
	for _, text := range schemas {
		g, err := FromJSONSchema([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var schema any
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			t.Fatal(err)
		}
		distinct := map[string]bool{}
		for range 20 {
			said := walk(t, rng, g, v, rng.IntN(60))
			var got any
			if err := json.Unmarshal([]byte(said), &got); err != nil || !utf8.ValidString(said) {
				t.Errorf("%s: %q is no JSON: %v", text, said, err)
			} else if !fits(schema, schema, got) {
				t.Errorf("%s: %q does not fit", text, said)
			}
			distinct[said] = true
		}
		if len(distinct) < 2 && !strings.Contains(text, "const") && !strings.Contains(text, `: 0}`) && !strings.Contains(text, `"x", 5`) {
			t.Errorf("%s: all texts are %v", text, distinct)
		}
	}
}

// TestSchemaTexts checks that texts are matched if and only if they fit the schema.
func TestSchemaTexts(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{}`, []string{`{"a": [1, -2.5e+7, "\u00e9\"", null]}`, "[\n  true,\n  false\n]", `"日"`}, []string{"[\n" + strings.Repeat(" ", 21) + "1]", `{a: 1}`, `[1,]`, `01`, `"`, `'x'`, "\"\n\"", `"\ud800"`}},
		{schemas[24], nil, []string{"[1]", "null"}},
		{schemas[25], []string{`{"name":"x"}`, `{"name": "x", "tags": []}`, `{ "name": "x" , "age": 3 }`}, []string{`{}`, `{"age":3}`, `{"age":3,"name":"x"}`, `{"name":"x","z":1}`, `{"name":"x",}`, `{"name":"x","age":-1}`}},
		{schemas[26], []string{`{}`, `{"a":null}`, `{"ab":true,"b":3}`, `{"a":null,"aa":1,"abc":2,"":3}`, `{"x":1}`}, []string{`{"a":1}`, `{"ab":1}`, `{"x":1,"a":null}`, `{"x":"y"}`, `{"\u0061":1}`, `{"q\"":2}`}},
		{schemas[27], []string{`{"a":1,"c":3}`, `{"a":1,"b":2,"c":3}`}, []string{`{"a":1}`, `{"a":1,"c":3,"d":4}`, `{"c":3}`}},
		{`{"type":"integer","minimum":-17,"maximum":1203}`, []string{"-17", "-9", "0", "7", "999", "1203"}, []string{"-18", "1204", "-0", "007", "1.0", "12030"}},
		{`{"type":"number","exclusiveMinimum":0,"maximum":1}`, []string{"0.5", "1", "1.0", "0.01"}, []string{"0", "0.0", "1.5", "-1", "2"}},
		{`{"type":"string","pattern":"^a|b$"}`, []string{`"a"`, `"ax"`, `"b"`, `"xb"`}, []string{`"xa"`, `"bx"`, `""`}},
		{`{"type":"string","pattern":"^$|^ab?$|^a(c|d$)|(e|^f)$"}`, []string{`""`, `"a"`, `"ab"`, `"ac"`, `"acx"`, `"ad"`, `"xe"`, `"f"`}, []string{`"b"`, `"abx"`, `"adx"`, `"xf"`, `"ex"`}},
		{`{"type":"string","pattern":"(a$|b)c"}`, nil, nil},
		{`{"type":"string","pattern":"^[\\u0041-\\u0043]\\uD83D\\uDE00\\\\u0041$"}`, []string{`"B😀\\u0041"`}, []string{`"A😀A"`, `"D😀\\u0041"`}},
		{`{"type":"string","pattern":"^.$"}`, []string{`"a"`, `"\t"`, `"日"`}, []string{`"\n"`, `"\r"`, "\"\u2028\"", `"ab"`}},
		{`{"type":"string","pattern":"^\\s\\S[\\s][^\\s][\\Sx]$"}`, []string{`" a bc"`, "\"\u00a0a\u3000bc\""}, []string{`"xa bc"`, "\" \u00a0 bc\"", "\" a \u2003c\"", "\" a b\ufeff\""}},
		{`{"type":"string","pattern":"^[[:a]]$"}`, []string{`"[]"`, `":]"`, `"a]"`}, []string{`"a"`, `"b"`}},
		{`{"type":"string","pattern":"ab"}`, []string{`"ab"`, `"xxabyy"`, `"aab"`}, []string{`"a"`, `"ba"`}},
		{`{"type":"string","maxLength":2}`, []string{`""`, `"日本"`, `"\u00e9x"`, `"\n\\"`}, []string{`"abc"`}},
		{`{"type":"string","format":"date"}`, []string{`"2024-12-31"`, `"2023-02-28"`}, []string{`"2024-13-01"`, `"2024-02-30"`, `"2024-04-31"`, `"24-01-01"`}},
	} {
		g, err := FromJSONSchema([]byte(c.schema))
		if err != nil {
			if len(c.yes) > 0 || len(c.no) > 0 || !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", c.schema, err)
			}
			continue
		}
		for _, text := range c.yes {
			if ok, _ := matches(g, text); !ok {
				t.Errorf("%s does not match %s", c.schema, text)
			}
		}
		for _, text := range c.no {
			if ok, _ := matches(g, text); ok {
				t.Errorf("%s matches %s", c.schema, text)
			}
		}
	}
}

// TestIntegerRanges compares the rules of random integer limits with a test of each integer.
func TestIntegerRanges(t *testing.T) {
	rng := testutil.Rand(t)
	for range 60 {
		lo := rng.IntN(400) - 200
		hi := lo + rng.IntN(1200)
		g, err := FromJSONSchema([]byte(`{"type":"integer","minimum":` + strconv.Itoa(lo) + `,"maximum":` + strconv.Itoa(hi) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{lo - 11, lo - 1, lo, lo + 1, lo + rng.IntN(hi-lo+1), hi - 1, hi, hi + 1, hi + 10, -lo, 10 * hi} {
			if ok, _ := matches(g, strconv.Itoa(n)); ok != (lo <= n && n <= hi) {
				t.Errorf("%d to %d: %d matches %v", lo, hi, n, ok)
			}
		}
	}
}

// TestSchemaErrors checks that unsupported schemas give errors with the position.
func TestSchemaErrors(t *testing.T) {
	for _, c := range []struct {
		schema string
		kind   error
		says   string
	}{
		{`{`, ErrSchema, "EOF"}, {`{} x`, ErrSchema, "after the JSON"}, {`3`, ErrSchema, "expected an object"}, {`false`, ErrSchema, "false"},
		{`{"type": "thing"}`, ErrSchema, "#/type"}, {`{"type": 3}`, ErrSchema, "#/type"}, {`{"type": []}`, ErrSchema, "no type"},
		{`{"properties": {"a/b": {"uniqueItems": true, "type": "array"}}}`, ErrUnsupported, "#/properties/a~1b/uniqueItems"},
		{`{"not": {}}`, ErrUnsupported, "#/not"}, {`{"if": {}, "then": {}}`, ErrUnsupported, "#/if"},
		{`{"type": "integer", "multipleOf": 3}`, ErrUnsupported, "multipleOf"},
		{`{"anyOf": [{}], "type": "string"}`, ErrUnsupported, "#/type"},
		{`{"type": "string", "minItems": 3}`, ErrUnsupported, "minItems"},
		{`{"type": "string", "pattern": "(?=a)"}`, ErrUnsupported, "pattern"}, {`{"type": "string", "pattern": "a\\bc"}`, ErrUnsupported, "pattern"},
		{`{"type": "string", "pattern": "a", "maxLength": 3}`, ErrUnsupported, "implies the lengths"},
		{`{"type": "string", "minLength": -1}`, ErrSchema, "minLength"}, {`{"type": "string", "minLength": 4, "maxLength": 3}`, ErrSchema, "minLength"},
		{`{"type": "string", "maxLength": 1e9}`, ErrLimit, "maxLength"}, {`{"type": "integer", "minimum": 5, "maximum": 4}`, ErrSchema, "limits"},
		{`{"type": "integer", "minimum": 1e400}`, ErrSchema, "minimum"}, {`{"type": "number", "minimum": 0.5}`, ErrUnsupported, "whole"},
		{`{"type": "string", "pattern": "^` + strings.Repeat("(^|(^)|(^)|(^))", 20) + `a$"}`, ErrLimit, "#/pattern"},
		{`{"type": "string", "pattern": "` + strings.Repeat("(^|a)", 18) + strings.Repeat("b?c?", 5000) + `"}`, ErrLimit, "alternatives"},
		{`{"$ref": "http://x"}`, ErrSchema, "same document"}, {`{"$ref": "#/nowhere"}`, ErrSchema, "nowhere"},
		{`{"$ref": "#"}`, ErrSchema, "itself"}, {`{"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}`, ErrSchema, "itself"},
		{`{"enum": []}`, ErrSchema, "enum"}, {`{"enum": 3}`, ErrSchema, "enum"}, {`{"const": 1, "type": "string"}`, ErrSchema, "fits"},
		{`{"patternProperties": {"^a": {}}, "additionalProperties": false, "minProperties": 1}`, ErrUnsupported, "#/patternProperties"},
		{`{"additionalProperties": false, "minProperties": 1}`, ErrSchema, "no properties are allowed"},
		{`{"type": "array", "contains": {}, "minItems": 2, "maxItems": 1}`, ErrUnsupported, "#/contains"},
		{`{"required": ["x"], "type": "object"}`, ErrUnsupported, "required"}, {`{"properties": 1}`, ErrSchema, "properties"},
		{`{"allOf": [{}, {}]}`, ErrUnsupported, "allOf"}, {`{"anyOf": []}`, ErrSchema, "anyOf"},
		{strings.Repeat(`{"items":`, 200) + "{}" + strings.Repeat("}", 200), ErrLimit, "deep"},
		{strings.Repeat(`[`, 100000), ErrSchema, "levels"},
	} {
		_, err := FromJSONSchema([]byte(c.schema))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80s: error %v, expected %v that says %q", c.schema, err, c.kind, c.says)
		}
	}
}

// FuzzSchema checks that no schema causes a panic, and that texts of its grammar are JSON.
func FuzzSchema(f *testing.F) {
	for _, s := range schemas {
		f.Add([]byte(s), uint64(1))
	}
	v := byteVocabulary()
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		if len(schema) > 2000 {
			return
		}
		g, err := FromJSONSchema(schema)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		m := g.Matcher(v)
		var said []byte
		for range 30 {
			mask, err := m.Allowed()
			if err != nil {
				return
			}
			id := int32(rng.IntN(v.Size()))
			for n := 0; n < v.Size() && !mask.Has(id); n++ {
				id = (id + 1) % int32(v.Size())
			}
			if m.Accept(id) != nil {
				break
			}
			said = append(said, v.tokens[id]...)
			if m.Done() && !json.Valid(said) {
				t.Errorf("%s: %q is no JSON", schema, said)
			}
		}
	})
}
