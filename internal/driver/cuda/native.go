package cuda

import (
	"slices"
	"sync"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// asIs has the arrays for native kernels, which read and write all types directly.
type asIs struct{ *preparer }

// StorageType implements [driver.Arrays].
func (asIs) StorageType(o driver.Operand) op.DType { return o.Type }

// nativeOperation prepares an operation with native kernels. If there are none, it adds nothing and
// the error wraps [op.ErrUnsupported].
func (e *preparer) nativeOperation(s *driver.Step) (err error) {
	if !ptxkernels.Has(s.Op) {
		return errNoKernel
	}
	undo := e.mark()
	defer func() {
		if err != nil {
			undo()
		}
	}()
	r := &request{Request: portable.Request{Tuning: e.d.tuned()}}
	if err := r.Operation(asIs{e}, s); err != nil {
		return err
	}
	return e.lowering(asIs{e}, e.native, e.native).Operation(r, s)
}

// nativeMap is nativeOperation for an elementwise program. If operand 0 is not in a slot, first is
// its memory. scalars are the operands after In.
func (e *preparer) nativeMap(f *driver.Fused, exprs []*ir.Node, first *arrayRef, scalars []arrayRef, out []driver.Operand) error {
	r := &request{}
	if err := r.Program(asIs{e}, f, exprs, first, scalars, out); err != nil {
		return err
	}
	return e.native(r)
}

var errNoKernel = noKernel{}

// noKernel is the error for an operation without a native kernel.
type noKernel struct{}

func (noKernel) Error() string { return "no native kernel" }
func (noKernel) Unwrap() error { return op.ErrUnsupported }

// native adds the launches that compute a request.
func (e *preparer) native(r *request) error {
	if hasBytes(&r.Request) {
		return errNoKernel
	}
	p, err := ptxkernels.For(&r.Request, e.d.kernels)
	if err != nil || len(p.Stages) == 0 {
		return err
	}
	remove := e.mark()
	undo := func(err error) error {
		remove()
		return err
	}
	in, out := append([]arrayRef(nil), r.From...), r.To
	direct := e.direct && (r.Op == nil || r.Op.Class() == op.Reduction || r.Op.Class() == op.Row)
	// Elementwise programs may overwrite their operands, and other programs their first operand if
	// the plan allows it.
	mine := in[:len(r.In)]
	if p.InPlace {
		mine = mine[1:]
	}
	if err := e.copyOverlaps(mine, out); err != nil {
		return undo(err)
	}
	s := &nativeStep{e: e.executable, anywhere: p.Anywhere}
	s.arrays[portable.InputRef], s.arrays[portable.OutputRef] = in, out
	for _, n := range p.Scratch {
		s.arrays[portable.ScratchRef] = append(s.arrays[portable.ScratchRef], e.Reserve(n))
	}
	for _, n := range p.Zeros { // launches run one after the other in the stream
		s.arrays[portable.ScratchRef] = append(s.arrays[portable.ScratchRef], e.Constant(make([]byte, n)))
	}
	for i := range p.Stages {
		stage := &p.Stages[i]
		if err := launchable(stage.Grid); err != nil {
			return undo(err)
		}
		c, err := e.compile(programKey{native: stage.Kernel})
		if err != nil {
			return undo(err)
		}
		g := e.launchOf(stage, c)
		for _, a := range stage.Args {
			if a.Kind == ptxkernels.Map {
				direct = false // the tensor maps of the copies are made for device memory
			}
		}
		s.stages = append(s.stages, g)
	}
	e.direct = e.direct && direct
	e.steps = append(e.steps, s)
	return nil
}

// hasBytes reports whether an array of a request has elements of one byte. Native kernels neither
// read nor write them.
func hasBytes(r *portable.Request) bool {
	bytes := func(a portable.Array) bool { return a.Type.Storage() }
	if slices.ContainsFunc(r.In, bytes) || slices.ContainsFunc(r.Out, bytes) {
		return true
	}
	return r.Post != nil && slices.ContainsFunc(r.Post.In, func(o portable.Operand) bool { return o.Type.Storage() })
}

// nativeStep has the launches of a plan of native kernels.
type nativeStep struct {
	e      *executable
	arrays [len(ptxkernels.Arrays{})][]arrayRef // operands, results and temporaries, indexed by portable.RefKind
	stages []nativeStage
	mu     sync.Mutex // protects the tensor maps of the stages, and others

	anywhere *ptxkernels.Plan // plan for memory that is not aligned, or nil
	others   []nativeStage    // launches of anywhere, made when they are needed
}

// nativeStage is one launch.
type nativeStage struct {
	*ptxkernels.Stage
	code   *code
	config cu.Config
	maps   []mapAt // by argument: the last tensor map
}

// mapAt is a tensor map with its address. It is made again only if the address changes.
type mapAt struct {
	at  cu.Ptr
	tmp cu.TensorMap
}

func (s *nativeStep) enqueue(r *run) error {
	aligned := true
	for kind, list := range s.arrays {
		r.arrays[kind] = r.arrays[kind][:0]
		for _, a := range list {
			p := r.address(a.place)
			aligned = aligned && (uint64(p)%uint64(ptxkernels.Alignment()) == 0 || a.bytes == 0)
			r.arrays[kind] = append(r.arrays[kind], p)
		}
	}
	stages := s.stages
	if !aligned {
		if s.anywhere == nil {
			return s.borrowed(r)
		}
		var err error
		if stages, err = s.unaligned(); err != nil {
			return err
		}
	}
	return s.launch(r, stages)
}

func (s *nativeStep) launch(r *run, stages []nativeStage) error {
	for i := range stages {
		if err := stages[i].enqueue(s, r); err != nil {
			return err
		}
	}
	return nil
}

// unaligned returns the launches for memory that is aligned only to its elements.
func (s *nativeStep) unaligned() ([]nativeStage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others == nil {
		var all []nativeStage
		for i := range s.anywhere.Stages {
			stage := &s.anywhere.Stages[i]
			if err := launchable(stage.Grid); err != nil {
				return nil, err
			}
			c, err := s.e.compile(programKey{native: stage.Kernel})
			if err != nil {
				return nil, err
			}
			all = append(all, s.e.launchOf(stage, c))
		}
		s.others = all
	}
	return s.others, nil
}

// borrowed launches a step on unaligned memory of a user, which is rare. It copies the contents
// through aligned memory.
func (s *nativeStep) borrowed(r *run) error {
	for kind, list := range s.arrays {
		for i, a := range list {
			p := r.arrays[kind][i]
			if uint64(p)%uint64(ptxkernels.Alignment()) == 0 || a.bytes == 0 {
				continue
			}
			to, err := r.borrow(a.bytes)
			if err != nil {
				return err
			}
			if portable.RefKind(kind) == portable.InputRef {
				if err := r.hw.Copy(to, p, a.bytes); err != nil {
					return err
				}
			}
			r.arrays[kind][i] = to
		}
	}
	if err := s.launch(r, s.stages); err != nil {
		return err
	}
	for i, a := range s.arrays[portable.OutputRef] {
		if p := r.address(a.place); p != r.arrays[portable.OutputRef][i] {
			if err := r.hw.Copy(p, r.arrays[portable.OutputRef][i], a.bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchOf returns a launch of compiled code.
func (e *executable) launchOf(s *ptxkernels.Stage, c *code) nativeStage {
	g := nativeStage{Stage: s, code: c, config: s.Config(c.dynamic), maps: make([]mapAt, len(s.Args))}
	g.config.Overlap = e.d.overlap
	return g
}

func (g *nativeStage) enqueue(s *nativeStep, r *run) error {
	hw := r.hw
	if g.Zero >= 0 {
		if err := hw.Zero(r.arrays[portable.ScratchRef][g.Zero], s.arrays[portable.ScratchRef][g.Zero].bytes); err != nil {
			return err
		}
	}
	var err error
	r.args, err = g.AppendArgs(r.args[:0], &r.arrays, func(i int, at cu.Ptr) (cu.TensorMap, error) { return s.tensorMap(hw, g, i, at) })
	if err != nil {
		return err
	}
	return hw.Launch(g.code.fn, g.config, r.args)
}

// tensorMap returns the tensor map of argument i for an address.
func (s *nativeStep) tensorMap(hw Hardware, g *nativeStage, i int, at cu.Ptr) (cu.TensorMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &g.maps[i]
	if m.at != at {
		made, err := hw.TensorMap(g.Args[i].Tiles, at)
		if err != nil {
			return made, err
		}
		*m = mapAt{at, made}
	}
	return m.tmp, nil
}

// borrow allocates device memory until the end of the submission.
func (r *run) borrow(bytes int64) (cu.Ptr, error) {
	m, err := r.e.d.hw.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	r.borrowed = append(r.borrowed, m)
	return m.Ptr(), nil
}

// nativeDevice has the properties of the device that decide the choice of native kernels.
func nativeDevice(target ptx.Target, i cu.Info) ptxkernels.Device {
	shared := i.SharedPerBlockOptin
	if shared == 0 {
		shared = target.MaxShared()
	}
	return ptxkernels.Device{Target: target, Multiprocessors: max(i.Multiprocessors, 1), Shared: min(shared, target.MaxShared())}
}

func (s *nativeStep) calls() int { return len(s.stages) }
