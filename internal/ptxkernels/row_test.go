package ptxkernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

var rowOps = []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm}
var rowTypes = []op.DType{op.F32, op.F16, op.BF16}

// rowTrial returns an operation on rows with weights, some of them absent.
func rowTrial(o *op.Operation, t op.DType, rows, cols int) *trial {
	values := []*op.Array{normal(rows, cols)}
	for i := 1; i < len(o.Inputs()); i++ {
		if rand.IntN(3) == 0 {
			values = append(values, nil)
		} else {
			values = append(values, normal(cols))
		}
	}
	for len(values) > 1 && values[len(values)-1] == nil && rand.IntN(2) == 0 { // nil at the end, or left out
		values = values[:len(values)-1]
	}
	return newTrial(o, o.Defaults(), t, values...)
}

func TestRows(t *testing.T) {
	t.Parallel()
	lengths := []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129, 256, 257, 509, 512, 1000, 1024, 1025, 2048, 2053, 4096, 4099, 8192}
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			t.Run(fmt.Sprint(o.Name(), "/", typ), func(t *testing.T) {
				t.Parallel()
				for _, cols := range lengths {
					if !sampled() {
						continue
					}
					rowTrial(o, typ, 1+rand.IntN(max(3, min(300, 3000/cols))), cols).must(t, h200)
				}
			})
		}
	}
}

// TestRowsLong tests long rows, which are slow in the emulator: a random sample in each run.
func TestRowsLong(t *testing.T) {
	t.Parallel()
	for _, cols := range []int{8209, 16384, 16411, 32768, 32771, 40000, 65536, 65521, 131072, 140001, 600000} {
		if testing.Short() && rand.IntN(8) > 0 {
			continue
		}
		rowTrial(rowOps[rand.IntN(len(rowOps))], rowTypes[rand.IntN(len(rowTypes))], 1+rand.IntN(2), cols).must(t, []Device{h200, a100}[rand.IntN(2)])
	}
}

// TestRowsSpecial computes rows with NaN and infinities.
func TestRowsSpecial(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for _, cols := range []int{1, 3, 16, 37, 200, 1028, 1029} {
				if !sampled() {
					continue
				}
				c := rowTrial(o, typ, 12, cols)
				x := c.values[0].Data
				for i, v := range []float64{nan, inf, -inf, 0, math.Copysign(0, -1), 65504, -65504} {
					x[i*cols+rand.IntN(cols)] = v
				}
				for i := range cols {
					x[8*cols+i], x[9*cols+i], x[10*cols+i] = -inf, inf, 100
				}
				if o == op.Softmax || o == op.LogSoftmax {
					x[11*cols] = math.MaxFloat32
					for i := range cols {
						x[6*cols+i] *= 30
					}
				}
				c.must(t, h200)
			}
		}
	}
}

// TestRowsSmall tests probabilities down to the smallest number of each type and below, in packed
// and unpacked registers.
func TestRowsSmall(t *testing.T) {
	t.Parallel()
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax} {
		for _, typ := range rowTypes {
			for _, packed := range []bool{false, true} {
				if packed && typ == op.F32 {
					continue
				}
				w := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: rowVector(typ), Registers: 2, Packed: packed, Load: ptx.Once, Save: ptx.Once}
				cols := w.room() - rand.IntN(100) - w.Width
				c := newTrial(o, o.Defaults(), typ, normal(2, cols))
				for i := range cols {
					c.values[0].Data[i] = -110 * float64(i) / float64(cols)
				}
				c.bySchedule(t, w, 1)
			}
		}
	}
}

// TestRowParts tests rows of several blocks, which wait for each other, read the row twice, or are
// a cluster.
func TestRowParts(t *testing.T) {
	t.Parallel()
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for i := range 7 {
				if !sampled() {
					continue
				}
				w := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: rowVector(typ), Registers: 1 + rand.IntN(2), Shared: rand.IntN(2), Load: ptx.Once, Save: ptx.Once}
				w.Packed, w.AlignedWeights = typ != op.F32 && rand.IntN(2) == 0, rand.IntN(2) == 0
				parts := 2 + rand.IntN(3)
				cols := parts*w.room() - w.Width*(1-i%2)
				switch {
				case i == 6: // the last thread of the last part has one element
					cols = parts*w.room() - w.Width + 1
				case i > 1:
					cols -= rand.IntN(w.room()) + w.Width
				}
				c := rowTrial(o, typ, 3, cols)
				if i == 4 || i == 5 {
					x := c.values[0].Data
					x[rand.IntN(cols)] = math.Inf(1)
					x[cols+rand.IntN(cols)] = math.NaN()
					for j := range cols / 2 { // fill a part or more
						x[2*cols+j] = math.Inf(-1)
					}
				}
				r, err := c.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := planRowParts(r, w, parts, i%3 == 0)
				if rand.IntN(2) == 0 {
					p, err = planRowCluster(r, w, parts)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := c.runPlan(&rig{device: h200, schedule: emu.Schedule(rand.IntN(3))}, r, p); err != nil {
					t.Errorf("%v %v of %d parts, %d of them: %v", o, typ, parts, cols, err)
				}
			}
		}
	}
}

// TestRowSchedules requires that the chosen schedules have room for the rows, and fit on the
// device.
func TestRowSchedules(t *testing.T) {
	t.Parallel()
	small := Device{Target: ptx.SM86, Multiprocessors: 20, Shared: ptx.SM86.MaxShared()}
	for _, d := range []*Device{&h200, &a100, &small} {
		for _, typ := range rowTypes {
			for cols := 1; cols <= 16*maxVectors; cols += 1 + cols/500 {
				o, weights := rowOps[rand.IntN(len(rowOps))], 0
				if o == op.LayerNorm || o == op.RMSNorm {
					weights = rand.IntN(len(o.Inputs()))
				}
				w := chooseRowSchedule(o, typ, cols, weights, d)
				if w.Ring > 0 && w.Ring <= w.Shared {
					continue // several blocks share a row
				}
				shared := 16 * w.threads() * max(w.Ring, w.Shared)
				if w.Staged {
					shared = w.Groups * w.Rows * w.room() * typ.Size()
				}
				if n := rowVectors(cols, w.Width); n > w.Lanes*(w.Registers+w.Shared) || w.threads() > 1024 || w.threads()%32 != 0 ||
					w.Lanes < 128 && w.Lanes&(w.Lanes-1) != 0 || w.Lanes%128*(w.Lanes/128) != 0 || w.Lanes > 32 && w.Groups*w.Rows > 1 || w.Lanes > 32 && w.Lanes < 128 ||
					w.Ring > w.Shared+w.Registers || (shared+1<<10)*max(w.Blocks, 1) > d.Shared || w.Staged && w.Groups*w.Rows%8 != 0 {
					t.Fatalf("%v of %d on %v: %s", typ, cols, d.Target, w.name())
				}
			}
		}
	}
}

// TestRowsMany tests enough short rows that each thread has several.
func TestRowsMany(t *testing.T) {
	t.Parallel()
	d := h200
	d.Multiprocessors = 1
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			cols := rowVector(typ) * (1 + rand.IntN(32))
			rowTrial(o, typ, 2100+rand.IntN(100), cols).must(t, d)
		}
	}
}

// bySchedule runs an operation on rows with schedule w, with parts blocks for each row, and returns
// the plan.
func (c *trial) bySchedule(t *testing.T, w rowSchedule, parts int) *Plan {
	t.Helper()
	r, err := c.request()
	if err != nil {
		t.Fatal(err)
	}
	var p *Plan
	if parts > 1 {
		p, err = planRowCluster(r, w, parts)
	} else {
		p, err = planRowsBy(r, w, &h200)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.runPlan(&rig{device: h200, schedule: emu.Schedule(rand.IntN(3))}, r, p); err != nil {
		t.Errorf("%v of %v %v by %s: %v", r.Op, r.In[0].Type, r.In[0].Shape, p.Variant, err)
	}
	return p
}

// TestRowStaged tests rows that go through shared memory.
func TestRowStaged(t *testing.T) {
	t.Parallel()
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for range 4 {
				if !sampled() {
					continue
				}
				w := rowSchedule{Lanes: 1 << rand.IntN(6), Rows: 1 + rand.IntN(2), Width: 1, Registers: 1 + rand.IntN(5), Staged: true, Load: ptx.Once, Save: ptx.Once}
				w.Groups = 128 / w.Lanes
				w.Rows *= max(1, 8/w.Groups)
				c := rowTrial(o, typ, 1+rand.IntN(3*w.Groups*w.Rows), w.room()-rand.IntN(w.Lanes))
				c.bySchedule(t, w, 1)
			}
		}
	}
}

// TestRowNarrow tests short rows, and 16-bit elements that are loaded by two or four.
func TestRowNarrow(t *testing.T) {
	t.Parallel()
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for i := range 6 {
				if !sampled() {
					continue
				}
				w := rowSchedule{Lanes: 1 << rand.IntN(6), Rows: 1 + rand.IntN(3), Width: rowVector(typ), Registers: 1 + rand.IntN(5), AlignedWeights: rand.IntN(2) == 0}
				w.Groups = 128 / w.Lanes
				if typ != op.F32 {
					w.Width, w.Packed = 2<<(i%3), rand.IntN(2) == 0
				}
				cols := w.room() - rand.IntN(w.Lanes*w.Width)
				if cols = max(1, cols-w.Width+1); w.Width*typ.Size() == 8 { // rows must be aligned to a vector
					cols = (cols + w.Width - 1) / w.Width * w.Width
				}
				c := rowTrial(o, typ, 1+rand.IntN(3*w.Groups*w.Rows), cols)
				c.bySchedule(t, w, 1)
			}
		}
	}
}

// TestRowLaid tests misaligned rows with aligned copies of the weights, in blocks and in clusters.
func TestRowLaid(t *testing.T) {
	t.Parallel()
	for _, o := range []*op.Operation{op.LayerNorm, op.RMSNorm} {
		for _, typ := range rowTypes {
			for i := range 4 {
				if !sampled() {
					continue
				}
				w := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: rowVector(typ), Registers: 1 + rand.IntN(2), Shared: rand.IntN(2), AlignedWeights: true}
				w.Packed = typ != op.F32 && rand.IntN(2) == 0
				parts := 1 + i%2
				cols := parts*w.room() - w.Width - rand.IntN(w.room()/2)
				cols -= cols & 1 * (i / 2) // every alignment, or every second one
				rows := 1 + rand.IntN(3*w.Width)
				c := newTrial(o, o.Defaults(), typ, normal(rows, cols), normal(cols))
				if o == op.LayerNorm && rand.IntN(2) == 0 {
					c = newTrial(o, o.Defaults(), typ, normal(rows, cols), normal(cols), normal(cols))
				}
				p := c.bySchedule(t, w, parts)
				if shift := cols%w.Width != 0; shift != (len(p.Stages) == 2) {
					t.Errorf("%d launches for rows of %d", len(p.Stages), cols)
				}
			}
		}
	}
}

// TestRowLaidChosen requires that plans copy the weights for many rows, and not for few.
func TestRowLaidChosen(t *testing.T) {
	t.Parallel()
	for _, cols := range []int{127, 777, 5001, 31001, 33333} {
		for _, rows := range []int{3, minAligned/cols + 1} {
			x, w := portable.Array{Type: op.BF16, Shape: op.Shape{rows, cols}}, portable.Array{Type: op.BF16, Shape: op.Shape{cols}}
			p, err := For(&portable.Request{Op: op.LayerNorm, Attrs: op.LayerNorm.Defaults(), In: []portable.Array{x, w, w}, Out: []portable.Array{x}}, h200)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := p.Stages[0].Kernel.Name == layWeights, rows > 3; got != want {
				t.Errorf("%d rows of %d: weights laid out: %v", rows, cols, got)
			}
		}
	}
}

// TestRowStream tests blocks that iterate over rows.
func TestRowStream(t *testing.T) {
	t.Parallel()
	d := h200
	d.Multiprocessors = 3
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for i := range 6 {
				if !sampled() {
					continue
				}
				w := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: rowVector(typ), Registers: 1 + rand.IntN(2), Shared: 1 + rand.IntN(3), Load: ptx.Once, Save: ptx.Once}
				w.Ring = w.Shared + 1 + rand.IntN(w.Registers)
				w.AlignedWeights = rand.IntN(2) == 0
				w.Packed = typ != op.F32 && rand.IntN(2) == 0
				cols := w.room() - w.Width*(1-i%2)
				if i > 1 {
					cols -= rand.IntN(w.room()/2) + w.Width
				}
				c := rowTrial(o, typ, 1+rand.IntN(11), cols)
				r, err := c.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := planRowsBy(r, w, &d)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.runPlan(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}, r, p); err != nil {
					t.Errorf("%v %v of %d: %v", o, typ, cols, err)
				}
			}
		}
	}
}

func TestPtxasRows(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, target := range []ptx.Target{ptx.SM80, ptx.SM90a} {
		t.Run(target.String(), func(t *testing.T) {
			t.Parallel()
			d := h200
			d.Target = target
			for _, o := range rowOps {
				for _, typ := range rowTypes {
					for range 1 {
						cols := 1 + rand.IntN(1<<(1+rand.IntN(17)))
						if rand.IntN(2) == 0 {
							cols = (cols + 7) &^ 7
						}
						if !sampled() {
							continue
						}
						r, err := rowTrial(o, typ, 1, cols).request()
						if err != nil {
							t.Fatal(err)
						}
						rows := 1 + rand.IntN(300)
						r.In[0].Shape, r.Out[0].Shape = op.Shape{rows, cols}, op.Shape{rows, cols}
						p, err := For(r, d)
						if err != nil {
							t.Fatal(err)
						}
						for _, s := range p.Stages {
							spills(t, s.Kernel, fmt.Sprint(s.Kernel.Name, " ", typ, " ", cols, " ", p.Variant), target, cols%8 != 0 || cols > 1<<13)
						}
					}
				}
			}
		})
	}
}

// spills assembles a kernel and fails the test if it spills registers, unless some is set. Then a
// few bytes are allowed, because the assembler spills a little even if registers are free.
func spills(t *testing.T, k *Kernel, name string, target ptx.Target, some bool) {
	m := ptx.NewModule(target)
	m.Kernel("k", k.Build)
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	file := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-v", "-arch="+target.String(), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s", name, out)
		return
	}
	n := 0
	if m := regexp.MustCompile(`([0-9]+) bytes spill stores`).FindSubmatch(out); m != nil {
		n, _ = strconv.Atoi(string(m[1]))
	}
	if !some && n > 32 {
		t.Errorf("%s: %s", name, out)
	}
	t.Log(name, strings.Join(regexp.MustCompile(`Used.*|[0-9]+ bytes spill stores`).FindAllString(string(out), -1), ""))
}

// TestRowsFused tests epilogues after resident rows, aligned and misaligned, and after reductions.
func TestRowsFused(t *testing.T) {
	t.Parallel()
	for _, cols := range []int{3, 8, 37, 130, 1024, 2053} {
		if sampled() {
			rowTrial(rowOps[rand.IntN(len(rowOps))], rowTypes[rand.IntN(len(rowTypes))], 3, cols).mustFuse(t, h200)
			reduceTrial(reduceOps[rand.IntN(6)], rowTypes[rand.IntN(len(rowTypes))], 5, cols).mustFuse(t, h200)
		}
	}
}

// TestRowMutants removes instructions from these kernels, and checks that the tests fail.
func TestRowMutants(t *testing.T) {
	t.Parallel()
	resident := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: 4, Registers: 1, Load: ptx.Once, Save: ptx.Once}
	slots := resident
	slots.Shared = 1
	softmax, long := rowTrial(op.Softmax, op.F32, 3, 1000), rowTrial(op.Softmax, op.F32, 3, 2000)
	request := func(c *trial) *portable.Request {
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	short := rowTrial(op.Softmax, op.BF16, 21, 33)
	staged := rowSchedule{Lanes: 8, Groups: 16, Rows: 1, Width: 1, Registers: 5, Staged: true, Load: ptx.Once, Save: ptx.Once}
	stream := rowSchedule{Lanes: 128, Groups: 1, Rows: 1, Width: 4, Registers: 2, Shared: 2, Ring: 3, Load: ptx.Once, Save: ptx.Once}
	few := h200
	few.Multiprocessors = 2
	rms := newTrial(op.RMSNorm, op.RMSNorm.Defaults(), op.F32, normal(7, 2000), nil)
	sum := reduceTrial(op.Sum, op.F32, -1, 5000)
	plan := func(p *Plan, err error) *Plan {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	split := reduceSchedule{Lanes: 128, Groups: 1, Width: 4, Batch: 2, Load: ptx.Once}
	for _, m := range []struct {
		name, cut string
		which     int // index of the occurrence
		c         *trial
		plan      *Plan
		want      emu.Kind
	}{
		{"barrier of a reduction", "bar.sync 0;", 1, softmax, plan(planRowParts(request(softmax), resident, 2, true)), emu.Race},
		{"wait for copies", "cp.async.wait_group 0;", 1, long, plan(planRowParts(request(long), slots, 2, true)), emu.MissingWait},
		{"barrier after the wait for other parts", "bar.sync 0;", 4, softmax, plan(planRowParts(request(softmax), resident, 2, false)), emu.Race},
		{"fence before the count of parts", "fence.acq_rel.gpu;", 1, softmax, plan(planRowParts(request(softmax), resident, 2, false)), emu.Race},
		{"acquiring the count", ".acquire.gpu", 1, softmax, plan(planRowParts(request(softmax), resident, 2, false)), emu.Race},
		{"barrier before staged rows are read", "bar.sync 0;", 1, short, plan(planRowsBy(request(short), staged, &h200)), emu.Race},
		{"barrier before staged rows are stored", "bar.sync 0;", 2, short, plan(planRowsBy(request(short), staged, &h200)), emu.Race},
		{"wait for the slots of the next row", "cp.async.wait_group 2;", 1, rms, plan(planRowsBy(request(rms), stream, &few)), emu.MissingWait},
		{"barrier between the reductions of two rows", "bar.sync 0;", 2, rms, plan(planRowsBy(request(rms), stream, &few)), emu.Race},
		{"fence before the last block", "fence.acq_rel.gpu;", 1, sum, plan(planReduceBy(request(sum), split, 3)), emu.Race},
		{"fence of the last block", "fence.acq_rel.gpu;", 2, sum, plan(planReduceBy(request(sum), split, 3)), emu.Race},
		{"barrier of the last block", "bar.sync 0;", 2, sum, plan(planReduceBy(request(sum), split, 3)), emu.Race},
	} {
		found := false
		mutate := func(text string) string {
			at := -1
			for range m.which {
				next := strings.Index(text[at+1:], m.cut)
				if next < 0 {
					return text
				}
				at += 1 + next
			}
			found = true
			return text[:at] + replacement[m.cut] + text[at+len(m.cut):]
		}
		err := m.c.runPlan(&rig{device: h200, mutate: mutate}, request(m.c), m.plan)
		if !found {
			t.Errorf("%s: nothing to remove", m.name)
		} else if !errors.Is(err, m.want) {
			t.Errorf("without the %s: %v", m.name, err)
		}
	}
}

// replacement has the text that replaces the removed text, if it is not empty.
var replacement = map[string]string{".acquire.gpu": ".relaxed.gpu"}
