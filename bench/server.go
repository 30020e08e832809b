package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rayo-go/rayo/op"
)

// A request asks a server for timings of a cell: how many samples, and how long
// the calls of one sample shall last together.
type request struct {
	cell
	Samples int     `json:"samples"`
	Ms      float64 `json:"ms"`
	// Shapes are the operands of an operation of the catalogue group.
	Shapes []op.Shape `json:"shapes,omitempty"`
	// Domain is the interval of their elements, nil for inputs as they are.
	Domain *domain `json:"domain,omitempty"`
	// Operands and Forms are those of an axisCase.
	Operands []operand `json:"operands,omitempty"`
	Forms    []string  `json:"forms,omitempty"`
}

// A reply has the samples, in nanoseconds a call, the way the operation was
// written, and the first, middle and last element of its result.
type reply struct {
	Ns    []float64 `json:"ns"`
	Form  string    `json:"form"`
	Check []float64 `json:"check"`
	Error string    `json:"error,omitempty"`
}

// A form is one way to run an operation. The fastest form of a cell is measured.
type form struct {
	name string
	run  func() error
}

// serve answers requests and measures in the same way as peers/peers.py. Each
// implementation runs in a separate process, which the driver stops while it
// measures another implementation.
func serve(in io.Reader, out io.Writer) error {
	debug.SetGCPercent(-1) // Python's collector is off too
	r := newRayo()
	defer r.close()
	var now cell
	var p prepared
	requests := bufio.NewScanner(in)
	w := json.NewEncoder(out)
	for requests.Scan() {
		var q request
		err := json.Unmarshal(requests.Bytes(), &q)
		if err == nil && q.cell != now {
			p.close()
			runtime.GC() // the arrays of the last cell
			p, err = r.prepare(q.cell)
			now = q.cell
		}
		var a reply
		if err == nil {
			a, err = p.answer(q)
		}
		if err != nil {
			a, now = reply{Error: err.Error()}, cell{}
		}
		if i := slices.IndexFunc(a.Check, func(v float64) bool { return v-v != 0 }); i >= 0 { // JSON has no NaN and no infinities
			a = reply{Error: fmt.Sprintf("%s: the result has %v", q.key(), a.Check[i])}
		}
		if err := w.Encode(a); err != nil {
			return err
		}
	}
	return requests.Err()
}

// prepared is a cell with its arrays, ready to run.
type prepared struct {
	form  form
	check []float64
	stop  func()
}

func (p *prepared) close() {
	if p.stop != nil {
		p.stop()
	}
	*p = prepared{}
}

// choose keeps the fastest of the forms. check reads the result of the first.
func choose(fs []form, check func() []float64) (prepared, error) {
	best, bestNs := -1, math.Inf(1)
	for i, f := range fs {
		if err := f.run(); err != nil {
			return prepared{}, err
		}
		calls := callsFor(f.run, 2)
		for range 3 {
			if ns := timed(f.run, calls); ns < bestNs {
				best, bestNs = i, ns
			}
		}
	}
	if err := fs[0].run(); err != nil {
		return prepared{}, err
	}
	p := prepared{form: fs[best]}
	if check != nil {
		p.check = check()
	}
	return p, nil
}

func (p *prepared) answer(q request) (reply, error) {
	if p.form.run == nil {
		return reply{}, fmt.Errorf("%s was not prepared", q.key())
	}
	a := reply{Form: p.form.name, Check: p.check}
	calls := callsFor(p.form.run, q.Ms)
	for range q.Samples {
		a.Ns = append(a.Ns, timed(p.form.run, calls))
	}
	return a, p.form.run()
}

// timed returns the mean time of the given number of calls, in nanoseconds.
func timed(run func() error, calls int) float64 {
	start := time.Now()
	for range calls {
		run()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(calls)
}

// callsFor returns the number of calls that take ms milliseconds, after a warm-up of about 5 ms.
func callsFor(run func() error, ms float64) int {
	calls, spent := 1, 0.0
	for {
		ns := timed(run, calls)
		spent += ns * float64(calls)
		if spent >= 5e6 && (calls > 1 || spent >= 1e7 || ns > 1e6) {
			return max(1, int(ms*1e6/ns+0.5))
		}
		if ns*float64(calls) < 1e6 {
			calls *= 2
		}
	}
}

// fill writes the input that every server computes for a seed: values in [-4, 4).
func fill(x []float32, seed int) {
	for i := range x {
		x[i] = float32(float64(hash(i, seed))/(1<<32)*8 - 4)
	}
}
