package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/roofline"
	"github.com/schollz/progressbar/v3"
)

type benchCmd struct {
	JSON     bool   `name:"json" help:"Write JSON."`
	Threads  int    `placeholder:"N" help:"Number of CPU threads; all by default."`
	Only     string `placeholder:"REGEXP" help:"Measure only the cases that match, such as 'matmul|relu 1M'."`
	Quick    bool   `help:"Measure fewer sizes, with less time for each."`
	Profile  bool   `help:"Show the time of each step of the demonstration's pipeline instead."`
	Trace    string `placeholder:"FILE" help:"With --profile: write a timeline in Chrome's trace format."`
	Save     string `placeholder:"FILE" help:"With --profile: save the times as a baseline."`
	Baseline string `placeholder:"FILE" help:"With --profile: compare with a baseline."`
}

// benchReport is the result of rayo bench.
type benchReport struct {
	Device   string      `json:"device"`
	Name     string      `json:"name"`
	Detail   string      `json:"detail"`
	Roofline *roofReport `json:"roofline,omitempty"`
	Results  []measured  `json:"results"`
	// Missing is the number of lines that an interrupted run did not measure.
	Missing int `json:"missing,omitempty"`
}

// roofReport holds the limits of the machine, in 10⁹ per second.
type roofReport struct {
	Read float64 `json:"readGBps"`
	Copy float64 `json:"copyGBps"`
	FMA  float64 `json:"fmaGFLOPs"`
}

// measured is one line of the table.
type measured struct {
	Op     string  `json:"op"`
	Size   string  `json:"size"`
	NS     float64 `json:"ns"` // median
	GBps   float64 `json:"GBps"`
	GFLOPs float64 `json:"GFLOPs"`
	// Share is the least time that the limits allow, divided by the median. It is
	// above 1 if the data comes from caches.
	Share float64 `json:"share,omitempty"`
	Bound string  `json:"bound,omitempty"` // the limit: memory or arithmetic; or unsupported
}

// validate checks the flags, and returns the cells to measure.
func (c *benchCmd) validate() (*regexp.Regexp, error) {
	only, err := regexp.Compile(c.Only)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--only: %w", err)
	case c.Threads < 0:
		return nil, fmt.Errorf("--threads=%d: the number of threads must be 0 or more", c.Threads)
	case !c.Profile && (c.Trace != "" || c.Save != "" || c.Baseline != ""):
		return nil, fmt.Errorf("--trace, --save and --baseline need --profile")
	}
	return only, nil
}

func (c *benchCmd) Run(a *app) error {
	only, err := c.validate()
	if err != nil {
		return err
	}
	dev, err := openPinned(a.ctx, device.WithThreads(c.Threads))
	if err != nil {
		return err
	}
	defer dev.Close()
	if c.Profile {
		return c.profile(a, dev)
	}
	var cells []cell
	for _, cl := range cellsOf(dev.Info().Kind, c.Quick) {
		if only.MatchString(cl.op + " " + cl.size) {
			cells = append(cells, cl)
		}
	}
	if len(cells) == 0 {
		return fmt.Errorf("--only=%s matches no operation", c.Only)
	}
	r, err := c.measure(a, dev, cells)
	return c.show(a, r, err)
}

// show writes the measurements, even after an error, and returns err.
func (c *benchCmd) show(a *app, r *benchReport, err error) error {
	if err != nil && len(r.Results) == 0 {
		return err
	}
	if c.JSON {
		return errors.Join(err, writeJSON(a.out, r))
	}
	return errors.Join(err, r.write(a.out))
}

// measure measures cells. If there is an error, it also returns the measurements before the error.
func (c *benchCmd) measure(a *app, dev *device.Device, cells []cell) (*benchReport, error) {
	bar := progress(a.err, len(cells)+1)
	defer bar.Clear()
	info := dev.Info()
	r := &benchReport{Device: dev.String(), Name: info.Name, Detail: info.Detail, Results: []measured{}, Missing: len(cells)}
	var roof roofline.Roofline
	if info.Kind == device.CPU {
		bar.Describe("limits")
		var err error
		if roof, err = roofline.Measure(a.ctx, info.Threads); err != nil {
			return r, err
		}
		r.Roofline = &roofReport{roof.Read / 1e9, roof.Copy / 1e9, roof.FMA / 1e9}
	}
	bar.Add(1)
	budget := 200 * time.Millisecond
	if c.Quick {
		budget = 40 * time.Millisecond
	}
	for _, cl := range cells {
		bar.Describe(cl.op + " " + cl.size)
		m, err := cl.measure(a, dev, roof, budget)
		if err != nil {
			return r, err
		}
		r.Results = append(r.Results, m)
		r.Missing--
		bar.Add(1)
	}
	return r, nil
}

// openPinned opens the device that Open would choose, pinned, so that it runs all
// work itself.
func openPinned(ctx context.Context, opts ...device.Option) (*device.Device, error) {
	dev, err := device.Open(ctx, opts...)
	if err != nil || dev.Pinned() {
		return dev, err
	}
	info := dev.Info()
	dev.Close()
	return device.Open(ctx, append(opts, device.Require(info.Kind), device.WithIndex(info.Index))...)
}

// progress returns a progress bar on w if w is a terminal, else one that prints nothing.
func progress(w io.Writer, n int) *progressbar.ProgressBar {
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(w), progressbar.OptionSetVisibility(terminal(w)),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionShowCount())
}

// measure measures one cell and compares it with the roofline.
func (cl *cell) measure(a *app, dev *device.Device, roof roofline.Roofline, budget time.Duration) (measured, error) {
	if cl.resident != nil {
		return cl.resident.measure(a, dev, roof)
	}
	w, err := cl.prepare(a.ctx, dev)
	if err != nil {
		return measured{}, fmt.Errorf("%s %s: %w", cl.op, cl.size, err)
	}
	t, err := medianFor(a, budget, w.run)
	if err != nil {
		return measured{}, err
	}
	m := measured{Op: cl.op, Size: cl.size}
	return m.under(roof, w, t), nil
}

// under returns m with the time t of w, and its share of the roofline if there is one.
func (m measured) under(roof roofline.Roofline, w work, t time.Duration) measured {
	s := t.Seconds()
	m.NS, m.GBps, m.GFLOPs = float64(t), w.bytes/s/1e9, w.flops/s/1e9
	if roof.Copy == 0 || roof.FMA == 0 {
		return m
	}
	bandwidth := roof.Copy
	if w.reads {
		bandwidth = roof.Read
	}
	memory, arithmetic := w.bytes/bandwidth, w.flops/roof.FMA
	m.Share, m.Bound = memory/s, "memory"
	if arithmetic > memory {
		m.Share, m.Bound = arithmetic/s, "arithmetic"
	}
	return m
}

func (r *benchReport) write(out io.Writer) error {
	fmt.Fprintf(out, "%s: %s (%s)\n", r.Device, r.Name, r.Detail)
	if l := r.Roofline; l != nil {
		fmt.Fprintf(out, "limits: %s GB/s read, %s GB/s copied, %s GFLOP/s of fused multiply-adds\n", digits(l.Read), digits(l.Copy), digits(l.FMA))
	}
	fmt.Fprintln(out)
	// Names are aligned to the left and numbers to the right. A tabwriter cannot align
	// both ways.
	ops, sizes := len("operation"), len("size")
	for _, m := range r.Results {
		ops, sizes = max(ops, utf8.RuneCountInString(m.Op)), max(sizes, utf8.RuneCountInString(m.Size))
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%-*s   %-*s\ttime\tGB/s\tGFLOP/s\tof the limit\t\n", ops, "operation", sizes, "size")
	for _, m := range r.Results {
		gbps, gflops, share := digits(m.GBps), digits(m.GFLOPs), ""
		switch m.Bound {
		case "memory":
			gflops = ""
			share = fmt.Sprintf("%.0f%% memory    ", 100*m.Share)
		case "arithmetic":
			gbps = ""
			share = fmt.Sprintf("%.0f%% arithmetic", 100*m.Share)
		case "unsupported":
			fmt.Fprintf(w, "%-*s   %-*s\t\t\t\tunsupported    \t\n", ops, m.Op, sizes, m.Size)
			continue
		}
		fmt.Fprintf(w, "%-*s   %-*s\t%s\t%s\t%s\t%s\t\n", ops, m.Op, sizes, m.Size, timeText(time.Duration(m.NS)), gbps, gflops, share)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Missing > 0 {
		fmt.Fprintf(out, "\n%d more were not measured.\n", r.Missing)
	}
	_, err := fmt.Fprint(out, "\nTimes are medians into memory that is used again; resident, of arrays that stay on the device, by its clock.\nGB/s counts what must be read and written at least; above 100% of the limit of memory the data came from caches.\n")
	return err
}
