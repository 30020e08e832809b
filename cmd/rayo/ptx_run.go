package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/ptx/emu"
)

type ptxRunCmd struct {
	File   string   `arg:"" help:"A PTX file."`
	Kernel string   `arg:"" help:"Name of the kernel."`
	Args   []string `arg:"" optional:"" name:"argument" help:"The kernel's arguments: 1024 or 0.5 (of the parameter's type), u64:7; arrays f32[1024] (uninitialised), f32[64]=0, f32[4]=1,2,3,4, f32[64]=random, f32[64]=iota, f32[]=@FILE (its bytes). Write -- before all arguments if one is negative."`
	Grid   string   `default:"1" placeholder:"X,Y,Z" help:"Number of blocks along x, y and z."`
	Block  string   `default:"32" placeholder:"X,Y,Z" help:"Threads of a block along x, y and z; 32 by default."`
	Shared int      `placeholder:"BYTES" help:"Dynamic shared memory of a block."`
	First  int      `default:"8" placeholder:"N" help:"Show the first N elements of each array; 8 by default."`
	Lines  bool     `help:"Also print the counts of each line of the PTX."`
	Order  string   `enum:"ascending,descending,shuffled" default:"ascending" placeholder:"ORDER" help:"Order of blocks and warps: ascending, descending, shuffled."`
	Seed   uint64   `default:"1" placeholder:"N" help:"Seed of random arrays and of the shuffled order."`
	Steps  int64    `placeholder:"N" help:"Stop after this many warp instructions; 268435456 by default."`
	GPU    bool     `name:"gpu" help:"Run on the first NVIDIA GPU instead of in the emulator. A GPU does not check accesses."`
}

func (c *ptxRunCmd) Run(a *app) error {
	text, err := readText(c.File)
	if err != nil {
		return err
	}
	grid, err := parseDim("--grid", c.Grid)
	if err != nil {
		return err
	}
	block, err := parseDim("--block", c.Block)
	if err != nil {
		return err
	}
	if c.Shared < 0 || c.Steps < 0 {
		return errors.New("--shared and --steps must not be negative")
	}
	var args []*argument
	total := 0
	for i, s := range c.Args {
		x, err := parseArgument(s, c.Seed+uint64(i))
		if err != nil {
			return err
		}
		if total += x.n * elementSizes[x.typ]; total > 4*maxArray {
			return fmt.Errorf("the arrays are too large: all together may have at most %d MiB", 4*maxArray>>20)
		}
		args = append(args, x)
	}
	if c.GPU {
		return c.onGPU(a, text, grid, block, args)
	}
	return c.emulate(a, text, grid, block, args)
}

// parseDim reads a size of up to three axes.
func parseDim(flag, s string) ([3]int, error) {
	d := [3]int{1, 1, 1}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == 'x' })
	if len(parts) < 1 || len(parts) > 3 {
		return d, fmt.Errorf("%s %q: write up to three sizes, as 16,16", flag, s)
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 1 {
			return d, fmt.Errorf("%s %q: write up to three sizes, as 16,16", flag, s)
		}
		d[i] = int(n)
	}
	return d, nil
}

func (c *ptxRunCmd) emulate(a *app, text string, grid, block [3]int, args []*argument) error {
	module, err := emu.Parse(text)
	if err != nil {
		return err
	}
	k, err := module.Kernel(c.Kernel)
	if err != nil {
		return fmt.Errorf("%w; the kernels are: %s", err, kernelNames(module))
	}
	if err := k.Err(); err != nil {
		return err
	}
	if err := asParameters(args, k); err != nil {
		return err
	}
	schedule := emu.Schedule(slices.Index([]string{"ascending", "descending", "shuffled"}, c.Order))
	m := emu.NewMachine(emu.Config{Memory: 4 * maxArray, Schedule: schedule, Seed: c.Seed, Steps: c.Steps})
	params := make([]any, len(args))
	at := make([]emu.Ptr, len(args))
	for i, x := range args {
		if !x.array {
			params[i] = x.value()
			continue
		}
		if at[i], err = m.Alloc(fmt.Sprintf("argument %d, %s[%d]", i+1, x.typ, x.n), x.n*elementSizes[x.typ]); err != nil {
			return err
		}
		if x.data != nil {
			if err := m.Write(at[i], x.data); err != nil {
				return err
			}
		}
		params[i] = at[i]
	}
	ran := m.Launch(a.ctx, k, emu.Dim{X: grid[0], Y: grid[1], Z: grid[2]}, emu.Dim{X: block[0], Y: block[1], Z: block[2]}, c.Shared, params...)
	var findings emu.Findings
	switch {
	case errors.As(ran, &findings):
		for _, f := range findings {
			fmt.Fprintln(a.out, f)
		}
		fmt.Fprintln(a.out)
	case ran != nil:
		return ran
	}
	err = c.results(a, args, func(i int, b []byte) error { return m.Read(at[i], b) })
	if err != nil {
		return err
	}
	c.counts(a, m.Stats())
	if findings != nil {
		return errFound
	}
	return nil
}

// results shows the arrays that have changed or had no contents before the launch.
func (c *ptxRunCmd) results(a *app, args []*argument, read func(i int, b []byte) error) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i, x := range args {
		if !x.array {
			continue
		}
		b := make([]byte, x.n*elementSizes[x.typ])
		if err := read(i, b); err != nil {
			return err
		}
		if x.data != nil && bytes.Equal(b, x.data) {
			continue
		}
		var s []string
		for j := range min(x.n, max(c.First, 0)) {
			s = append(s, x.element(b, j))
		}
		if len(s) < x.n {
			s = append(s, "...")
		}
		fmt.Fprintf(w, "argument %d\t%s[%d]\t%s\n", i+1, x.typ, x.n, strings.Join(s, " "))
	}
	return w.Flush()
}

// counts prints the instruction counts of a launch.
func (c *ptxRunCmd) counts(a *app, s *emu.Stats) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\ninstructions\t%d of threads, %d of warps\n", s.Threads, s.Warps)
	fmt.Fprintf(w, "loads\t%d requests, %d sectors of 32 bytes for %d bytes\n", s.LoadRequests, s.LoadSectors, s.LoadBytes)
	fmt.Fprintf(w, "stores\t%d requests, %d sectors of 32 bytes for %d bytes\n", s.StoreRequests, s.StoreSectors, s.StoreBytes)
	fmt.Fprintf(w, "shared memory\t%d requests, %d passes, %d of them bank conflicts\n", s.SharedRequests, s.SharedPasses, s.Conflicts)
	fmt.Fprintf(w, "atomics, barriers\t%d, %d\n", s.Atomics, s.Barriers)
	if c.Lines {
		fmt.Fprintln(w, "\nline\twarps\tsectors\tconflicts")
		for _, i := range s.Instructions() {
			fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%s\n", i.Line, i.Warps, i.LoadSectors+i.StoreSectors, i.Conflicts, strings.TrimSpace(i.Text))
		}
	}
	w.Flush()
}
