package ir

import "testing"

// TestUseFunctions checks that programs without functions keep them, and that the others expand each.
func TestUseFunctions(t *testing.T) {
	table := functions.Load()
	defer functions.Store(table)
	functions.Store(nil)
	called := visited(0)
	IfFunctions(&called)
	for c := Add; c <= lastCode; c++ {
		if c.Composite() && expansionOf(c) != nil {
			t.Errorf("%v has an expansion before UseFunctions", c)
		}
	}
	UseFunctions()
	IfFunctions(&called)
	if called != 1 {
		t.Errorf("WithFunctions was called %d times, expected 1", called)
	}
	for c := Add; c <= lastCode; c++ {
		if c.Composite() && expansionOf(c) == nil {
			t.Errorf("%v has no expansion", c)
		}
	}
}

type visited int

func (v *visited) WithFunctions() { *v++ }
