package batch

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
)

// Profile holds measurements of several runs of a recording: the device time of each step, and its
// ratio to the limits of the device.
type Profile struct {
	Device string // kind:index and name
	Runs   int
	Total  Times // of the whole submission
	Steps  []StepProfile
	// Bandwidth and Flops are the limits of the device, measured with a large
	// copy (bytes/s) and a large matrix product (operations/s).
	Bandwidth, Flops float64

	last driver.Times // the timeline of one run
}

// StepProfile is one kernel.
type StepProfile struct {
	Name    string // the operations in it, joined by plus signs
	Formula string // of the elementwise part
	Time    Times
	Bytes   int64   // read and written, each array once
	Flops   float64 // arithmetic operations
	Share   float64 // of the time of all steps, 0 to 1
	// Roofline is the shortest time that the device's limits allow, divided by the median time. 1
	// means as fast as the limits allow; more than 1 is possible if data comes from caches.
	Roofline float64
	Bound    Bound
}

// Bound is the resource that limits a step.
type Bound string

// The bounds.
const (
	Memory   Bound = "memory"   // memory traffic takes the longest, and at least half of the time
	Compute  Bound = "compute"  // arithmetic takes the longest, and at least half of the time
	Overhead Bound = "overhead" // both take less than a tenth of the time, so launch, latency or a slow kernel dominates
	Unknown  Bound = "unknown"  // each takes less than half of the time, so there is no single bottleneck
)

// A limit is reported to bound a step that reaches at least the first of these shares of
// it, and to have little effect on a step that reaches at most the second.
const (
	boundAbove    = 0.5
	overheadBelow = 0.1
)

// Times are percentiles over the runs.
type Times struct{ Min, P50, P95, P99, Max time.Duration }

func percentiles(d []time.Duration) Times {
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(math.Ceil(q*float64(len(d))))-1] }
	return Times{d[0], at(0.50), at(0.95), at(0.99), d[len(d)-1]}
}

// profileRuns is the number of measured runs of Profile.
const profileRuns = 30

// Profile runs the recording 30 times, after a run that is not measured, and returns the time of
// each step. The results come from the last run; stores happen in every run. Like Execute, it ends
// the recording.
func (b *Batch) Profile(ctx context.Context, outs ...Value) (*Profile, error) {
	p, dst, err := b.prepare(ctx, outs)
	if err != nil {
		return nil, err
	}
	peaks, err := b.eng.Peaks(ctx)
	if err != nil {
		return nil, b.explain(err)
	}
	info := b.dev.Info()
	prog := p.Program()
	r := &Profile{Device: fmt.Sprintf("%v (%s)", b.dev, info.Name), Runs: profileRuns, Bandwidth: peaks.Bandwidth, Flops: peaks.Flops}
	r.last.Steps = make([]driver.Span, len(prog.Steps))
	steps := make([][]time.Duration, len(prog.Steps))
	var total []time.Duration
	for i := -1; i < profileRuns; i++ {
		if err := p.Run(ctx, b.refs, dst, &r.last); err != nil {
			return nil, b.explain(err)
		}
		if i < 0 {
			continue
		}
		total = append(total, r.last.Total.End-r.last.Total.Start)
		for j, s := range r.last.Steps {
			steps[j] = append(steps[j], s.End-s.Start)
		}
	}
	b.finish(dst)
	r.Total = percentiles(total)
	sum := 0.0
	for j := range prog.Steps {
		s := &prog.Steps[j]
		sp := StepProfile{Name: s.Name(), Time: percentiles(steps[j])}
		if sp.Name == "" {
			sp.Name = "copy"
		}
		if s.Post != nil && len(s.Post.Body) > 0 {
			sp.Formula = s.Post.Formulas()
		}
		sp.Bytes, sp.Flops = engine.StepCost(s)
		sp.classify(r)
		sum += sp.Time.P50.Seconds()
		r.Steps = append(r.Steps, sp)
	}
	for i := range r.Steps {
		if sum > 0 {
			r.Steps[i].Share = r.Steps[i].Time.P50.Seconds() / sum
		}
	}
	return r, nil
}

// classify finds which limit of the roofline bounds a step: memory, arithmetic or overhead.
func (s *StepProfile) classify(p *Profile) {
	t := max(s.Time.P50.Seconds(), 1e-9)
	mem, calc := float64(s.Bytes)/p.Bandwidth, s.Flops/p.Flops
	s.Roofline = max(mem, calc) / t
	switch {
	case s.Roofline < overheadBelow:
		s.Bound = Overhead
	case s.Roofline < boundAbove:
		s.Bound = Unknown
	case mem >= calc:
		s.Bound = Memory
	default:
		s.Bound = Compute
	}
}

// GBps returns gigabytes per second at the median time.
func (s *StepProfile) GBps() float64 { return float64(s.Bytes) / max(s.Time.P50.Seconds(), 1e-9) / 1e9 }

// GFLOPS returns 10⁹ operations per second at the median time.
func (s *StepProfile) GFLOPS() float64 { return s.Flops / max(s.Time.P50.Seconds(), 1e-9) / 1e9 }

// String returns the table of the steps and the bottlenecks in words.
func (p *Profile) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d runs: p50 %v, p95 %v, p99 %v; limits %.1f GB/s, %.1f GFLOP/s\n",
		p.Device, p.Runs, p.Total.P50, p.Total.P95, p.Total.P99, p.Bandwidth/1e9, p.Flops/1e9)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "step\tp50\tp95\tshare\tbytes\tGB/s\tGFLOP/s\troofline\tbound\t")
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(w, "%d %s\t%v\t%v\t%.0f%%\t%d\t%.1f\t%.1f\t%.0f%%\t%s\t\n",
			i, s.Name, s.Time.P50, s.Time.P95, 100*s.Share, s.Bytes, s.GBps(), s.GFLOPS(), 100*s.Roofline, s.Bound)
	}
	w.Flush()
	b.WriteString(p.Bottlenecks())
	return b.String()
}

// Bottlenecks describes the most expensive steps and possible improvements: the
// steps that take a tenth of the time or more, the largest first.
func (p *Profile) Bottlenecks() string {
	order := make([]int, 0, len(p.Steps))
	for i := range p.Steps {
		if p.Steps[i].Share >= 0.1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p.Steps[j].Share, p.Steps[i].Share) })
	var b strings.Builder
	for _, i := range order {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "step %d %s takes %.0f%% of the time: ", i, s.Name, 100*s.Share)
		switch {
		case s.Bound == Overhead || s.Bound == Unknown:
			p.unbound(&b, s)
		case s.Bound == Memory && s.Roofline >= 0.8:
			b.WriteString("it is bound by memory and near the limit; only less traffic helps: fuse it with its neighbours, or use a narrower type")
		case s.Bound == Memory:
			fmt.Fprintf(&b, "it is bound by memory at %.0f%% of the limit", 100*s.Roofline)
		case s.Roofline >= 0.8:
			b.WriteString("it is bound by arithmetic and near the limit")
		default:
			fmt.Fprintf(&b, "it is bound by arithmetic at %.0f%% of the limit", 100*s.Roofline)
		}
		b.WriteByte('\n')
	}
	if gap := p.Total.P50 - p.busy(); p.Total.P50 > 0 && float64(gap) > 0.3*float64(p.Total.P50) {
		fmt.Fprintf(&b, "%v of %v are between the steps: more work in one batch would hide it\n", gap, p.Total.P50)
	}
	return b.String()
}

// unbound describes the distance to the limits of a step without a bound.
func (p *Profile) unbound(b *strings.Builder, s *StepProfile) {
	t := max(s.Time.P50.Seconds(), 1e-9)
	fmt.Fprintf(b, "it reaches %.0f%% of the limit of memory and %.0f%% of that of arithmetic in %v, so neither bounds it",
		100*float64(s.Bytes)/p.Bandwidth/t, 100*s.Flops/p.Flops/t, s.Time.P50)
	if s.Bound == Overhead {
		b.WriteString(": it is too small for the device, or its kernel is slow; record larger arrays or more in one batch")
	}
}

func (p *Profile) busy() time.Duration {
	var d time.Duration
	for i := range p.Steps {
		d += p.Steps[i].Time.P50
	}
	return d
}

// WriteTrace writes the timeline of the last run in the Chrome trace format,
// which chrome://tracing and Perfetto show.
func (p *Profile) WriteTrace(w io.Writer) error {
	b := bufio.NewWriter(w)
	us := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e3, 'f', 3, 64) }
	fmt.Fprintf(b, `{"displayTimeUnit":"ns","traceEvents":[{"name":"process_name","ph":"M","pid":1,"args":{"name":%s}}`, quote(p.Device))
	for i, s := range p.last.Steps {
		st := &p.Steps[i]
		fmt.Fprintf(b, ",\n"+`{"name":%s,"cat":"step","ph":"X","pid":1,"tid":1,"ts":%s,"dur":%s,"args":{"step":%d,"formula":%s,"bytes":%d,"flops":%.0f,"bound":%s}}`,
			quote(st.Name), us(s.Start), us(s.End-s.Start), i, quote(st.Formula), st.Bytes, st.Flops, quote(string(st.Bound)))
	}
	b.WriteString("]}\n")
	return b.Flush()
}

// quote writes a JSON string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Baseline has the median times of a profile, to compare later profiles with.
type Baseline struct {
	Device string
	Total  time.Duration
	Steps  []BaselineStep
}

// BaselineStep is the median time of one step.
type BaselineStep struct {
	Name string
	Time time.Duration
}

// Baseline returns the data with which a later profile can be compared.
func (p *Profile) Baseline() *Baseline {
	b := &Baseline{Device: p.Device, Total: p.Total.P50}
	for i := range p.Steps {
		b.Steps = append(b.Steps, BaselineStep{p.Steps[i].Name, p.Steps[i].Time.P50})
	}
	return b
}

// WriteTo writes the baseline as text: a line for the device and the total,
// then one for each step, nanoseconds first.
func (b *Baseline) WriteTo(w io.Writer) (int64, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "rayo-baseline 1\n%d %s\n", b.Total, line(b.Device))
	for _, st := range b.Steps {
		fmt.Fprintf(&s, "%d %s\n", st.Time, line(st.Name))
	}
	n, err := io.WriteString(w, s.String())
	return int64(n), err
}

func line(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// maxBaseline is the maximum number of steps that ReadBaseline accepts.
const maxBaseline = 1 << 20

// ReadBaseline reads the output of [Baseline.WriteTo].
func ReadBaseline(r io.Reader) (*Baseline, error) {
	bad := func(n int) error {
		return fmt.Errorf("line %d of the baseline is not as Baseline.WriteTo writes it: %w", n, device.ErrUnsupported)
	}
	s := bufio.NewScanner(r)
	if !s.Scan() || s.Text() != "rayo-baseline 1" {
		return nil, bad(1)
	}
	var b *Baseline
	for n := 2; s.Scan(); n++ {
		num, name, ok := strings.Cut(s.Text(), " ")
		ns, err := strconv.ParseInt(num, 10, 64)
		if !ok || err != nil || ns < 0 || n > maxBaseline {
			return nil, bad(n)
		}
		if b == nil {
			b = &Baseline{Device: name, Total: time.Duration(ns)}
			continue
		}
		b.Steps = append(b.Steps, BaselineStep{name, time.Duration(ns)})
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	if b == nil {
		return nil, bad(2)
	}
	return b, nil
}

// Compare returns a table of the median times against a baseline, with ratios below 1 where the
// profile is faster. Steps are matched by index and name. old may be nil for no baseline.
func (p *Profile) Compare(old *Baseline) string {
	if old == nil {
		old = &Baseline{Device: p.Device}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if old.Device != p.Device {
		fmt.Fprintf(&b, "the baseline is of %s\n", old.Device)
	}
	row := func(name string, before, now time.Duration) {
		if before <= 0 {
			fmt.Fprintf(w, "%s\t-\t%v\t\n", name, now)
			return
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%.2f\n", name, before, now, float64(now)/float64(before))
	}
	fmt.Fprintln(w, "step\tbaseline\tnow\tratio")
	for i := range p.Steps {
		before := time.Duration(0)
		if i < len(old.Steps) && old.Steps[i].Name == p.Steps[i].Name {
			before = old.Steps[i].Time
		}
		row(fmt.Sprintf("%d %s", i, p.Steps[i].Name), before, p.Steps[i].Time.P50)
	}
	row("total", old.Total, p.Total.P50)
	w.Flush()
	return b.String()
}
