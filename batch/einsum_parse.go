package batch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/device"
)

// A part is an operand or the result in a spec, with its labels.
type part struct {
	at       int     // position of its first byte in the spec
	labels   []label // spelled inserts the labels of the ellipsis
	places   []int   // positions of the labels in the spec
	ellipsis int     // index of the label after it, or -1
}

// parse reads the spec and checks the operands.
func (e *einsum) parse(xs []Value) error {
	ins, result, explicit := strings.Cut(e.spec, "->")
	var parts []part
	at, wide := 0, 0
	for i, text := range strings.Split(ins, ",") {
		p, err := read(text, at)
		if err != nil {
			return err
		}
		if i < len(xs) {
			n := len(xs[i].Shape())
			if n < len(p.labels) || p.ellipsis < 0 && n > len(p.labels) {
				return misplaced(at, "operand %d has shape %v, which %d labels do not fit", i, xs[i].Shape(), len(p.labels))
			}
			if p.ellipsis >= 0 {
				wide = max(wide, n-len(p.labels))
			}
		}
		parts = append(parts, p)
		at += len(text) + 1
	}
	if len(parts) != len(xs) {
		return fmt.Errorf("the spec has %d operands, the call has %d: %w", len(parts), len(xs), device.ErrShape)
	}
	for i, p := range parts {
		t := term{xs[i], p.spelled(len(xs[i].Shape()) - len(p.labels))}
		e.terms = append(e.terms, t)
		for _, l := range p.labels {
			e.uses[l]++
		}
	}
	if err := e.measure(parts); err != nil {
		return err
	}
	if !explicit {
		e.implied(wide)
		return nil
	}
	return e.explicit(result, len(ins)+len("->"), wide)
}

// read reads the labels of a part that begins at position at of the spec.
func read(text string, at int) (part, error) {
	p := part{at: at, ellipsis: -1}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ':
		case c >= 'A' && c <= 'Z':
			p.labels, p.places = append(p.labels, label(c-'A')), append(p.places, at+i)
		case c >= 'a' && c <= 'z':
			p.labels, p.places = append(p.labels, label(c-'a')+letters/2), append(p.places, at+i)
		case strings.HasPrefix(text[i:], "...") && p.ellipsis < 0:
			p.ellipsis = len(p.labels)
			i += 2
		default:
			return p, misplaced(at+i, "%q is no label: labels are letters, and ... stands once for the other axes", c)
		}
	}
	return p, nil
}

// spelled returns the labels with n axes in place of the ellipsis: the last of these axes has the
// label after the largest letter.
func (p *part) spelled(n int) []label {
	if p.ellipsis < 0 {
		return slices.Clone(p.labels)
	}
	return slices.Concat(p.labels[:p.ellipsis], ellipsis(n), p.labels[p.ellipsis:])
}

// ellipsis returns the labels of n axes.
func ellipsis(n int) []label {
	ls := make([]label, n)
	for i := range ls {
		ls[i] = label(letters + n - 1 - i)
	}
	return ls
}

// measure determines the extents of labels, and drops axes of one element that broadcast.
func (e *einsum) measure(parts []part) error {
	for l := range e.extents {
		e.extents[l] = -1
	}
	for i, t := range e.terms {
		for k, l := range t.labels {
			switch d, have := t.v.Shape()[k], e.extents[l]; {
			case have < 0, l >= letters && have == 1:
				e.extents[l] = d
			case d == have, l >= letters && d == 1:
			case l >= letters:
				return misplaced(parts[i].at, "operand %d has %d elements along axis %d, which ... stands for, where another has %d", i, d, k, have)
			default:
				at := parts[i].places[slices.Index(parts[i].labels, l)]
				return misplaced(at, "operand %d has %d elements along axis %d, where %q has %d", i, d, k, e.spec[at], have)
			}
		}
	}
	for i := range e.terms {
		t := &e.terms[i]
		for k := len(t.labels) - 1; k >= 0; k-- {
			if l := t.labels[k]; l >= letters && e.extents[l] != t.v.Shape()[k] {
				t.v, t.labels = e.b.Squeeze(t.v, k), slices.Delete(t.labels, k, k+1)
			}
		}
	}
	return nil
}

// implied sets the labels of the result of a spec without ->.
func (e *einsum) implied(wide int) {
	e.out = ellipsis(wide)
	for l := range label(letters) {
		if e.uses[l] == 1 {
			e.out = append(e.out, l)
		}
	}
}

// explicit reads the labels of the result.
func (e *einsum) explicit(text string, at, wide int) error {
	p, err := read(text, at)
	if err != nil {
		return err
	}
	for i, l := range p.labels {
		switch {
		case e.uses[l] == 0:
			return misplaced(p.places[i], "no operand has %q", e.spec[p.places[i]])
		case slices.Contains(p.labels[:i], l):
			return misplaced(p.places[i], "%q stands twice in the result", e.spec[p.places[i]])
		}
	}
	if p.ellipsis < 0 && wide > 0 {
		return misplaced(at, "the result lacks the ... that operands have: sum over letters instead")
	}
	e.out = p.spelled(wide)
	return nil
}
