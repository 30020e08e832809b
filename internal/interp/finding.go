package interp

import (
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Kind is the kind of a defect. It is an error itself, so that errors.Is finds it in a [Finding].
type Kind uint8

// The kinds of findings.
const (
	OutOfBounds       Kind = iota + 1 // an index beyond the end of a buffer or array
	Race                              // two lanes access an element, one of them writes, and the accesses are not ordered
	Uninitialised                     // a read of memory or a variable that was never written
	DivergentBarrier                  // a barrier that not all lanes of the workgroup reach
	DivergentSubgroup                 // a subgroup operation that not all lanes of the workgroup reach
	NotUniform                        // lanes disagree about a value that has to be uniform
	IndexOverflow                     // an index whose computation wrapped around
	Budget                            // a loop had more iterations than the budget allows
	CounterOverflow                   // the counter of a For passed the end of its type
	Aliased                           // two bindings share memory and one of them is written
	ShuffleRange                      // a shuffle from a lane that the subgroup does not have
	OrderDependent                    // results differ between orders in which lanes run
)

var kinds = [...]string{"", "out of bounds", "race", "uninitialised read", "divergent barrier",
	"divergent subgroup operation", "not uniform", "index overflow", "trip budget", "loop counter overflow",
	"aliased bindings", "shuffle out of range", "result depends on the order of lanes"}

// Error returns the name of the kind.
func (k Kind) Error() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Finding is a mistake of a kernel that a run has found. It is an error.
type Finding struct {
	Kind   Kind
	Kernel string
	Value  ir.Value  // the instruction
	Name   string    // the buffer, array or variable, if there is one
	Index  int64     // the element, possibly negative if it is out of bounds; -1 if there is none
	Lanes  [2]int32  // lanes in the workgroup: the lane of the access and the lanes that took part in it; -1 if there is none
	Group  [3]uint32 // the workgroup of the first lane
	Other  ir.Value  // for a race, the instruction of the other lane, 0 if unknown
	Note   string    // more in words
	// File and Line are where the author's program made the instruction, if
	// the program has positions.
	File string
	Line int
	// Subgroup and Schedule are the settings of the run in which it showed first.
	Subgroup int
	Schedule Schedule
}

// Unwrap returns the kind.
func (f *Finding) Unwrap() error { return f.Kind }

// FindingAs sets target, of errors.As, to f in the type that package device shows to users.
// Package device sets it.
var FindingAs = func(f *Finding, target any) bool { return false }

// As lets errors.As find the type that package device shows to users.
func (f *Finding) As(target any) bool { return FindingAs(f, target) }

// Error describes the finding in one line.
func (f *Finding) Error() string {
	var b strings.Builder
	if f.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	}
	fmt.Fprintf(&b, "kernel %s: %v", f.Kernel, f.Kind)
	if f.Name != "" {
		fmt.Fprintf(&b, ": %s", f.Name)
		if f.Index >= 0 || f.Kind == OutOfBounds {
			fmt.Fprintf(&b, "[%d]", f.Index)
		}
	} else if f.Index >= 0 {
		fmt.Fprintf(&b, ": %d", f.Index)
	}
	if f.Note != "" {
		fmt.Fprintf(&b, ", %s", f.Note)
	}
	if f.Lanes[0] >= 0 {
		fmt.Fprintf(&b, " (workgroup %d,%d,%d lane %d", f.Group[0], f.Group[1], f.Group[2], f.Lanes[0])
		if f.Lanes[1] >= 0 {
			fmt.Fprintf(&b, " and lane %d", f.Lanes[1])
		}
		b.WriteByte(')')
	}
	if f.Value != 0 && f.File == "" {
		b.WriteString(" at " + spot(nil, f.Value))
	}
	return b.String()
}

// spot returns the position of an instruction: in the author's file or, without positions, in the listing of the
// program.
func spot(p *ir.Program, v ir.Value) string {
	if p != nil {
		if file, line := ir.Position(p.Pos, v); file != "" {
			return fmt.Sprintf("%s:%d", file, line)
		}
	}
	return fmt.Sprintf("v%d", v)
}

// locate sets the author's position of the instruction.
func (f *Finding) locate(p *ir.Program) { f.File, f.Line = ir.Position(p.Pos, f.Value) }
