package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// maxInputDepth is the maximum nesting of values of the input.
const maxInputDepth = 100

// converter converts Go values to values of templates. It keeps its first error.
type converter struct{ err error }

func (c *converter) fail(format string, args ...any) value {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return nil
}

// pairs returns a mapping without the keys whose value is nil.
func pairs(kv ...value) *dict {
	d := newDict()
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] != nil {
			d.set(kv[i], kv[i+1])
		}
	}
	return d
}

// given returns a string, or nil for "".
func given(s string) value {
	if s == "" {
		return nil
	}
	return s
}

func (c *converter) messages(ms []Message) value {
	l := make(list, len(ms))
	for i, msg := range ms {
		var calls value
		if len(msg.ToolCalls) > 0 {
			cs := make(list, len(msg.ToolCalls))
			for j, call := range msg.ToolCalls {
				var arguments value = newDict()
				if len(call.Arguments) > 0 {
					arguments = c.json(call.Arguments)
				}
				cs[j] = pairs("type", "function", "id", given(call.ID), "function", pairs("name", call.Name, "arguments", arguments))
			}
			calls = cs
		}
		l[i] = pairs("role", msg.Role, "content", msg.Content, "reasoning_content", given(msg.Reasoning),
			"tool_calls", calls, "tool_call_id", given(msg.ToolCallID), "name", given(msg.Name))
	}
	return l
}

func (c *converter) tools(ts []Tool) value {
	l := make(list, len(ts))
	for i, t := range ts {
		var parameters value = newDict()
		if len(t.Parameters) > 0 {
			parameters = c.json(t.Parameters)
		}
		l[i] = pairs("type", "function", "function", pairs("name", t.Name, "description", t.Description, "parameters", parameters))
	}
	return l
}

// value converts a Go value of a type that encoding/json produces, or an integer.
func (c *converter) value(v any, depth int) value {
	if depth > maxInputDepth {
		return c.fail("values are nested more than %d deep", maxInputDepth)
	}
	switch v := v.(type) {
	case nil, bool, string, int64, float64:
		return v
	case json.RawMessage:
		return c.json(v)
	case json.Number:
		return c.number(v)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int()
	case r.CanUint():
		if u := r.Uint(); u <= math.MaxInt64 {
			return int64(u)
		}
	case r.CanFloat():
		return r.Float()
	case r.Kind() == reflect.Slice:
		l := make(list, r.Len())
		for i := range l {
			l[i] = c.value(r.Index(i).Interface(), depth+1)
		}
		return l
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		return c.mapping(r, depth)
	}
	return c.fail("%v of type %T", v, v)
}

// mapping converts a Go map to a mapping with sorted keys.
func (c *converter) mapping(r reflect.Value, depth int) value {
	fields := map[string]any{}
	for it := r.MapRange(); it.Next(); {
		fields[it.Key().String()] = it.Value().Interface()
	}
	d := newDict()
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		d.set(k, c.value(fields[k], depth+1))
	}
	return d
}

// json converts JSON to a value. It keeps the order of the keys of objects.
func (c *converter) json(raw []byte) value {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v := c.next(dec, 0)
	if _, err := dec.Token(); c.err == nil && !errors.Is(err, io.EOF) {
		return c.fail("unexpected data after the JSON value in %.40q", raw)
	}
	return v
}

func (c *converter) next(dec *json.Decoder, depth int) value {
	if depth > maxInputDepth {
		return c.fail("values are nested more than %d deep", maxInputDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return c.fail("JSON: %w", err)
	}
	switch t := t.(type) {
	case json.Number:
		return c.number(t)
	case json.Delim:
		if t == '[' {
			l := list{}
			for dec.More() && c.err == nil {
				l = append(l, c.next(dec, depth+1))
			}
			c.close(dec)
			return l
		}
		d := newDict()
		for dec.More() && c.err == nil {
			k := c.next(dec, depth+1)
			d.set(k, c.next(dec, depth+1))
		}
		c.close(dec)
		return d
	}
	return t
}

func (c *converter) close(dec *json.Decoder) {
	if c.err == nil {
		if _, err := dec.Token(); err != nil {
			c.fail("JSON: %w", err)
		}
	}
}

func (c *converter) number(n json.Number) value {
	if !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	f, err := n.Float64()
	if err != nil {
		return c.fail("number %s: %w", n, err)
	}
	return f
}
