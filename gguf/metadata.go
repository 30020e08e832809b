package gguf

import (
	"fmt"
	"iter"
	"slices"
)

// Metadata holds keys with values, in the order of the file. The zero value is empty and
// ready for use. Only one goroutine may use a Metadata while it changes.
type Metadata struct {
	keys   []string
	values map[string]Value
}

// Len returns the number of keys.
func (m *Metadata) Len() int { return len(m.keys) }

// All returns the keys and values in order.
func (m *Metadata) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, k := range m.keys {
			if !yield(k, m.values[k]) {
				return
			}
		}
	}
}

// Get returns the value of a key.
func (m *Metadata) Get(key string) (v Value, ok bool) {
	v, ok = m.values[key]
	return v, ok
}

// Text returns the string of a key.
func (m *Metadata) Text(key string) (s string, ok bool) {
	v, there := m.values[key]
	s, ok = v.Text()
	return s, ok && there
}

// Uint returns the integer of a key, which may have any kind but must not be negative.
func (m *Metadata) Uint(key string) (n uint64, ok bool) {
	v, there := m.values[key]
	n, ok = v.Uint()
	return n, ok && there
}

// Float returns the number of a key.
func (m *Metadata) Float(key string) (x float64, ok bool) {
	v, there := m.values[key]
	x, ok = v.Float()
	return x, ok && there
}

// Bool returns the boolean of a key.
func (m *Metadata) Bool(key string) (b, ok bool) {
	v, there := m.values[key]
	b, ok = v.Bool()
	return b, ok && there
}

func (m *Metadata) has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// Set sets the value of a key. It adds a new key at the end. The error is ErrFormat for
// a key that is empty or longer than 65535 bytes.
func (m *Metadata) Set(key string, v Value) error {
	if len(key) == 0 || len(key) > maxName {
		return fmt.Errorf("gguf: a key has %d bytes: expected 1 to %d: %w", len(key), maxName, ErrFormat)
	}
	if m.values == nil {
		m.values = map[string]Value{}
	}
	if !m.has(key) {
		m.keys = append(m.keys, key)
	}
	m.values[key] = v
	return nil
}

// Delete removes a key and reports whether it was there.
func (m *Metadata) Delete(key string) bool {
	if !m.has(key) {
		return false
	}
	delete(m.values, key)
	m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
	return true
}

// Clone returns a copy that can be changed.
func (m *Metadata) Clone() *Metadata {
	c := &Metadata{}
	if m == nil {
		return c
	}
	for k, v := range m.All() {
		_ = c.Set(k, v) // cannot fail: the key is valid
	}
	return c
}
