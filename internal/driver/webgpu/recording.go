package webgpu

import (
	"slices"

	"github.com/rayo-go/rayo/internal/driver"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// recording has the commands of a submission for one set and certain bound device memory. It is
// encoded once, and submitted again for the same bindings.
type recording struct {
	key      []memory // memory of each external slot
	commands []gpu.Command
	ends     []int // number of commands up to the end of each step
	groups   []*gpu.Group
	borrowed []*gpu.Buffer

	// Under sets.mu.
	users int
	gone  bool // the last user must free it
}

// memory identifies the memory of an external slot: the id of an array (0 for host memory) and the
// offset.
type memory struct {
	array uint64
	off   int64
}

// maxRecordings is the maximum number of recordings of a set.
const maxRecordings = 4

// record returns the commands for the bindings, new or cached, for one submission.
func (ss *sets) record(s *set, ext []driver.Binding) (*recording, error) {
	ss.mu.Lock()
	for i := len(s.recordings) - 1; i >= 0; i-- {
		if r := s.recordings[i]; r.is(ext) {
			r.users++
			if last := len(s.recordings) - 1; i != last {
				s.recordings = append(slices.Delete(s.recordings, i, i+1), r)
			}
			ss.mu.Unlock()
			return r, nil
		}
	}
	ss.mu.Unlock()
	r := &recorder{d: ss.d, e: s.l.e, set: s, ext: ext, recording: &recording{users: 1}}
	for i := range s.l.host {
		r.key = append(r.key, memoryOf(&ext[i]))
	}
	for i, st := range s.l.e.steps {
		r.step = i
		if err := st.record(r); err != nil {
			r.free()
			return nil, translateError(err)
		}
		r.ends = append(r.ends, len(r.commands))
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.recordings = append(s.recordings, r.recording)
	if len(s.recordings) > maxRecordings {
		s.recordings[0].drop()
		s.recordings = slices.Delete(s.recordings, 0, 1)
	}
	return r.recording, nil
}

func memoryOf(b *driver.Binding) memory {
	if b.Mem == nil {
		return memory{}
	}
	return memory{b.Mem.(*array).id, b.Off}
}

// is reports whether r was made for the bindings.
func (r *recording) is(ext []driver.Binding) bool {
	for i := range r.key {
		if r.key[i] != memoryOf(&ext[i]) {
			return false
		}
	}
	return true
}

// done ends the use of r.
func (ss *sets) done(r *recording) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if r.users--; r.gone && r.users == 0 {
		r.free()
	}
}

// drop frees r after its last use. It must be called under sets.mu.
func (r *recording) drop() {
	if r.gone = true; r.users == 0 {
		r.free()
	}
}

func (r *recording) free() {
	for _, g := range r.groups {
		g.Free()
	}
	for _, b := range r.borrowed {
		b.Free()
	}
	r.groups, r.borrowed = nil, nil
}

// forget drops the recordings that use an array.
func (ss *sets) forget(array uint64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for e := ss.used.Front(); e != nil; e = e.Next() {
		s := e.Value.(*set)
		s.recordings = slices.DeleteFunc(s.recordings, func(r *recording) bool {
			if !slices.ContainsFunc(r.key, func(m memory) bool { return m.array == array }) {
				return false
			}
			r.drop()
			return true
		})
	}
}

// recorder makes a recording.
type recorder struct {
	*recording
	d    *device
	e    *executable
	set  *set
	ext  []driver.Binding
	step int
}

func (r *recorder) locate(a arrayRef) gpu.Range {
	w := gpu.Range{Off: a.off, Bytes: a.bytes}
	switch a.kind {
	case temporary:
		w.Buffer = r.set.buffers[a.at]
	case constant:
		w.Buffer = r.e.fixed
	default:
		if b := &r.ext[a.at]; b.Mem != nil {
			w.Buffer = b.Mem.(*array).b
			w.Off += b.Off
			break
		}
		s := r.set.l.at[a.at]
		w.Buffer = r.set.buffers[s.buffer]
		w.Off += s.off
	}
	return w
}

// borrow returns memory for one array of one command.
func (r *recorder) borrow(bytes int64) (gpu.Range, error) {
	b, err := r.d.gpu.NewBuffer(max(words(bytes), minBytes), gpu.Storage)
	if err != nil {
		return gpu.Range{}, err
	}
	r.borrowed = append(r.borrowed, b)
	return gpu.Range{Buffer: b, Bytes: bytes}, nil
}

// copy adds a copy of whole words.
func (r *recorder) copy(dst, src gpu.Range) {
	if n := words(src.Bytes); n > 0 {
		r.commands = append(r.commands, gpu.Command{Src: src.Buffer, From: src.Off, Dst: dst.Buffer, To: dst.Off, Bytes: n})
	}
}

// dispatch runs a kernel.
type dispatch struct {
	code   *code
	grid   [3]uint32
	arrays []arrayRef
	// The parameters: the offset of constant parameters, or -1; otherwise the external slot that
	// holds them, or -1, their index among the parameters of a submission, and the parameters after
	// them.
	static    int64
	dynamic   int
	uniform   int64
	lengths   []byte
	lengthsAt int64
}

func (l *dispatch) record(r *recorder) error {
	if l.grid[0] == 0 || l.grid[1] == 0 || l.grid[2] == 0 {
		return nil
	}
	ranges := make([]gpu.Range, 0, len(l.arrays)+1)
	for _, a := range l.arrays {
		ranges = append(ranges, r.locate(a))
	}
	// An array that cannot be bound in place is copied: if its offset is not aligned for the
	// device, or if another array of the kernel is in the same buffer of the user and one of the
	// two is written. A copy has whole words: data that share the last word are copied there and
	// back unchanged.
	moved := make([]gpu.Range, len(ranges))
	for i, a := range l.arrays {
		users := a.kind == external && r.ext[a.at].Mem != nil
		if ranges[i].Off%max(r.d.limits.StorageAlign, 4) == 0 && ranges[i].Bytes > 0 && !(users && l.meets(ranges, i)) {
			continue
		}
		there, err := r.borrow(a.bytes)
		if err != nil {
			return err
		}
		moved[i], ranges[i] = ranges[i], there
		r.copy(there, moved[i])
	}
	for i := range ranges {
		if ranges[i].Bytes == 0 {
			ranges[i].Bytes = minBytes
		}
	}
	if l.code.params {
		p := gpu.Range{Buffer: r.e.params, Off: l.static}
		if l.dynamic >= 0 {
			p.Buffer, p.Off = r.set.uniform, l.uniform
		}
		for _, b := range l.code.blocks {
			ranges = append(ranges, gpu.Range{Buffer: p.Buffer, Off: p.Off + int64(b.Offset), Bytes: int64(b.Bytes)})
		}
	}
	g, err := r.d.gpu.Bind(l.code.pipeline, ranges)
	if err != nil {
		return err
	}
	r.groups = append(r.groups, g)
	r.commands = append(r.commands, gpu.Command{Group: g, Grid: l.grid})
	for i := range moved {
		if moved[i].Bytes > 0 && l.code.written[i] {
			r.copy(moved[i], ranges[i])
		}
	}
	return nil
}

// meets reports whether array i must be copied because another array is in the same buffer.
func (l *dispatch) meets(ranges []gpu.Range, i int) bool {
	for j := range ranges {
		if j != i && ranges[j].Buffer == ranges[i].Buffer && l.code.written[j] && (!l.code.written[i] || j < i) {
			return true
		}
	}
	return false
}
