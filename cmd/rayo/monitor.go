package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/cuda"
)

type monitorCmd struct {
	Once     bool          `help:"Print the state once and exit."`
	JSON     bool          `name:"json" help:"Write JSON."`
	Interval time.Duration `default:"1s" help:"Time between two readings."`
}

// reading is the output of rayo monitor --json.
type reading struct {
	Time    time.Time     `json:"time"`
	Driver  string        `json:"driver"`
	Devices []cuda.Sample `json:"devices"`
}

func (c *monitorCmd) Run(a *app) error {
	m, err := cuda.OpenMonitor()
	if err != nil {
		return err
	}
	defer m.Close()
	return c.watch(a, m.Driver(), m.Read, terminal(a.out))
}

// watch reads and shows readings until the context ends. On a terminal each reading
// replaces the previous one.
func (c *monitorCmd) watch(a *app, driver string, read func() ([]cuda.Sample, error), live bool) error {
	for {
		all, err := read()
		if err != nil {
			return err
		}
		now := reading{time.Now(), driver, all}
		if c.JSON {
			err = writeJSON(a.out, now)
		} else {
			if live && !c.Once {
				fmt.Fprint(a.out, "\x1b[H\x1b[2J") // move the cursor to the upper left corner and clear the screen
			}
			err = now.show(a.out)
		}
		if err != nil || c.Once {
			return err
		}
		select {
		case <-a.ctx.Done():
			return a.ctx.Err()
		case <-time.After(max(c.Interval, 100*time.Millisecond)):
		}
	}
}

// show writes a reading as text.
func (r *reading) show(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, driver %s\n\n", r.Time.Format(time.DateTime), r.Driver)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range r.Devices {
		fmt.Fprintf(w, "%d\t%s\t%s\t\n", s.Index, s.Name, s.PCI)
		row := func(name, value, bar string) { fmt.Fprintf(w, "\t%s\t%s\t%s\n", name, value, bar) }
		row("busy", with(s.Utilization, "%"), bar(float64(s.Utilization)/100, 30))
		row("memory", of(s.MemoryUsed/(1<<30), s.MemoryTotal/(1<<30), "GiB"), bar(float64(s.MemoryUsed/s.MemoryTotal), 30))
		row("power", of(s.Power, s.PowerLimit, "W"), bar(float64(s.Power/s.PowerLimit), 30))
		row("clock", of(s.Clock, s.ClockMax, "MHz"), bar(float64(s.Clock/s.ClockMax), 30))
		row("temperature", with(s.Temperature, "°C"), "")
		row("bus", fmt.Sprintf("%s in, %s out", with(s.PCIeReceived/1e6, "MB/s"), with(s.PCIeSent/1e6, "MB/s")), "")
		if len(s.Slowed) > 0 {
			row("slowed by", strings.Join(s.Slowed, ", "), "")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Devices) == 0 {
		b.WriteString("no device\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// with returns a number with its unit, or "unknown".
func with(r cuda.Reading, unit string) string {
	if !r.Known() {
		return r.String()
	}
	return cuda.Reading(math.Round(float64(r)*10)/10).String() + " " + unit
}

// of returns a number and its limit, omitting unknown ones.
func of(r, limit cuda.Reading, unit string) string {
	if !r.Known() || !limit.Known() {
		return with(r, unit)
	}
	return fmt.Sprintf("%.1f of %.1f %s", float64(r), float64(limit), unit)
}

// bar draws a fraction in eighths of columns, or nothing if it is unknown.
func bar(share float64, width int) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return ""
	}
	eighths := int(math.Round(min(max(share, 0), 1) * float64(8*width)))
	s := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[r-1])
	}
	return s + strings.Repeat("·", width-(eighths+7)/8)
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}
