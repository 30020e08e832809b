package emu

import (
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// Kind is the kind of a defect. It is an error itself, so that errors.Is finds it in the error of
// [Machine.Launch].
type Kind uint8

// The kinds of findings.
const (
	OutOfBounds      Kind = iota + 1 // an access outside every allocation or array
	Misaligned                       // an address that is not a multiple of the size of the access
	Race                             // two threads access a word, one of them writes, and the accesses are not ordered
	Uninitialised                    // a use of a value that was never written
	DivergentBarrier                 // a barrier that not all threads reach
	DivergentWarp                    // a warp instruction that not all of its members reach
	Deadlock                         // threads wait for an event that cannot happen
	MissingWait                      // a use of memory before an asynchronous instruction has finished with it, or without the required fence
	Budget                           // the launch took more steps than allowed
	BadOperand                       // an operand that the instruction does not accept
	StackOverflow                    // nested calls need more local memory than a thread has
)

var kinds = [...]string{"", "out of bounds", "misaligned", "race", "uninitialised read", "divergent barrier",
	"divergent warp instruction", "deadlock", "missing wait", "step budget", "bad operand", "stack overflow"}

// Error returns the name of the kind.
func (k Kind) Error() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Finding is a defect of a kernel that a launch has found. It is an error.
type Finding struct {
	Kind   Kind
	Kernel string
	Pos    ptx.Position // the author's line, if recorded
	Line   int          // line of the text
	Text   string       // the instruction
	Block  [3]int       // the thread
	Thread [3]int
	// For a race: the other access, or zero values if it is not known.
	OtherPos    ptx.Position
	OtherLine   int
	OtherBlock  [3]int
	OtherThread [3]int
	Name        string // name of the allocation or array, or ""
	Offset      int64  // bytes from the start of the allocation or array, or -1
	Note        string // more details
}

// Unwrap returns the kind.
func (f *Finding) Unwrap() error { return f.Kind }

// Error describes the finding in one line.
func (f *Finding) Error() string {
	var b strings.Builder
	if p := f.Pos.String(); p != "" {
		b.WriteString(p + ": ")
	}
	fmt.Fprintf(&b, "kernel %s: %v", f.Kernel, f.Kind)
	if f.Name != "" {
		fmt.Fprintf(&b, ": %s", f.Name)
		if f.Offset >= 0 {
			fmt.Fprintf(&b, "+%d", f.Offset)
		}
	}
	if f.Note != "" {
		fmt.Fprintf(&b, ", %s", f.Note)
	}
	fmt.Fprintf(&b, " (block %s thread %s", triple(f.Block), triple(f.Thread))
	if f.OtherLine > 0 {
		fmt.Fprintf(&b, ", and block %s thread %s", triple(f.OtherBlock), triple(f.OtherThread))
		if p := f.OtherPos.String(); p != "" {
			b.WriteString(" at " + p)
		} else {
			fmt.Fprintf(&b, " at line %d of the PTX", f.OtherLine)
		}
	}
	b.WriteByte(')')
	if f.Text != "" {
		fmt.Fprintf(&b, " in line %d of the PTX: %s", f.Line, f.Text)
	}
	return b.String()
}

func triple(v [3]int) string {
	if v[1] == 0 && v[2] == 0 {
		return fmt.Sprint(v[0])
	}
	return fmt.Sprintf("%d,%d,%d", v[0], v[1], v[2])
}

// Findings are the defects that one launch has found, in the order of their occurrence.
// [Machine.Launch] returns them as an error.
type Findings []*Finding

// Error lists the findings, one in each line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return "emu: " + strings.Join(lines, "\n")
}

// Unwrap returns the findings.
func (fs Findings) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// report collects the findings of a launch.
type report struct {
	findings Findings
	seen     map[sighting]bool
	limit    int
	fatal    bool // the launch cannot continue
}

// sighting identifies equal findings.
type sighting struct {
	kind Kind
	pc   int
	note string
}

func (r *report) full() bool { return r.fatal || len(r.findings) >= r.limit }

// find adds a finding for a lane of warp w at pc, unless the report already has it.
func (w *warp) find(kind Kind, pc, lane int, note string, more func(f *Finding)) {
	r, s := &w.b.run.report, sighting{kind, pc, note}
	if r.seen[s] || r.full() {
		return
	}
	r.seen[s] = true
	k := w.b.run.k
	f := &Finding{Kind: kind, Kernel: k.name, Block: w.b.at, Thread: w.b.run.thread(w.index*32 + lane), Note: note, Offset: -1}
	if pc >= 0 && pc < len(k.code) {
		f.Line = k.code[pc].line
		f.Pos, f.Text = k.module.at(f.Line), k.module.text(f.Line)
	}
	if more != nil {
		more(f)
	}
	r.findings = append(r.findings, f)
}

// stop adds a finding after which the launch cannot continue.
func (w *warp) stop(kind Kind, pc, lane int, note string) {
	w.find(kind, pc, lane, note, nil)
	w.b.run.report.fatal = true
}
