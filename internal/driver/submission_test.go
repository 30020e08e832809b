package driver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCompletion(t *testing.T) {
	mistake := errors.New("mistake")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c := NewCompletion()
	if err := c.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with a context that is over: %v", err)
	}
	var none context.Context
	if err := c.Wait(none); !errors.Is(err, ErrContext) {
		t.Errorf("waiting without a context: %v", err)
	}
	heard := make(chan error)
	go func() { heard <- c.Wait(context.Background()) }()
	c.Complete(mistake)
	if err := <-heard; err != mistake {
		t.Errorf("waiting: %v", err)
	}
	for _, c := range []*Completion{c, Completed(mistake)} {
		<-c.Done()
		for _, ctx := range []context.Context{context.Background(), over, none} {
			if err := c.Wait(ctx); err != mistake {
				t.Errorf("waiting for a completed submission: %v", err)
			}
		}
	}
}

// TestRefBarrier has many come and go while others shut the gate.
func TestRefBarrier(t *testing.T) {
	for range 200 {
		var g RefBarrier
		var inside, refused atomic.Int64
		var released atomic.Bool
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					if !g.Enter() {
						refused.Add(1)
						continue
					}
					inside.Add(1)
					if released.Load() {
						t.Error("inside after the release")
					}
					inside.Add(-1)
					g.Leave()
				}
			})
		}
		for range 2 {
			all.Go(func() {
				g.Shut(func() {
					if released.Swap(true) {
						t.Error("released twice")
					}
					if n := inside.Load(); n != 0 {
						t.Errorf("released with %d inside", n)
					}
				})
				if !released.Load() {
					t.Error("shut, and not released")
				}
			})
		}
		all.Wait()
		if g.Enter() {
			t.Fatal("entered a closed gate")
		}
	}
}

func TestJob(t *testing.T) {
	mistake := errors.New("mistake")
	var g RefBarrier
	g.Enter()
	var heard error
	s := &Submission{Ext: []Binding{{Off: 4}}, Times: &Times{}}
	var j *Job
	s.Complete = func(err error) {
		heard = err
		select {
		case <-j.Done():
			t.Error("done before it was told")
		default:
		}
	}
	j = NewJob(s)
	s.Ext[0].Off = 8
	if got := j.Submission.Ext[0].Off; got != 4 || j.Submission.Times != s.Times {
		t.Errorf("the submission of the job is the caller's: %d", got)
	}
	j.End(mistake, &g)
	g.Shut(func() {})
	if err := j.Wait(context.Background()); err != mistake || heard != mistake {
		t.Errorf("ended with %v, told of %v", err, heard)
	}
	if j.Submission.Ext != nil || j.Submission.Complete != nil {
		t.Error("keeps memory of the caller")
	}
}

// own is memory of a device, and foreign memory of another device.
type own struct{ bytes int64 }

type foreign struct{ own }

func (own) Bytes() int64 { return 0 }
func (own) Free()        {}

func TestExternals(t *testing.T) {
	x := ExternalsOf(&Program{Ext: 3, Slots: []Slot{
		{Ext: 0, Bytes: 8}, {Ext: -1, Bytes: 100, Written: true}, {Ext: 1, Bytes: 12, Written: true}, {Ext: 0, Bytes: 20},
		{Ext: 0, Bytes: 1000, Written: true, Data: []byte{1}}, {Ext: 1, Bytes: 4},
	}})
	for i, want := range []struct {
		need    int64
		written bool
	}{{20, false}, {12, true}, {0, false}} {
		if x.Need[i] != want.need || x.Written[i] != want.written {
			t.Errorf("slot %d: %d bytes, written %v", i, x.Need[i], x.Written[i])
		}
	}
	host := func(n int) Binding { return Binding{Host: make([]byte, n)} }
	behind := func(m Memory, off int64) (int64, error) {
		a, ok := m.(own)
		if !ok {
			return 0, ErrForeign
		}
		return a.bytes - off, nil
	}
	for _, c := range []struct {
		name string
		ext  []Binding
		want error
	}{
		{"as needed", []Binding{host(20), host(12), {}}, nil},
		{"more", []Binding{host(21), host(13), host(1), host(1)}, nil},
		{"too few", []Binding{host(20), host(12)}, ErrShape},
		{"a byte short", []Binding{host(20), host(11), {}}, ErrShape},
		{"nothing", []Binding{{}, host(12), {}}, ErrShape},
		{"on the device", []Binding{{Mem: own{24}, Off: 4}, host(12), {}}, nil},
		{"beyond it", []Binding{{Mem: own{24}, Off: 8}, host(12), {}}, ErrShape},
		{"of another", []Binding{{Mem: (*foreign)(nil)}, host(12), {}}, ErrForeign},
	} {
		if err := x.Check(c.ext, behind); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRecovered(t *testing.T) {
	f := func(panics bool) (err error) {
		defer Recovered(&err)
		if panics {
			panic("a defect")
		}
		return ErrClosed
	}
	if err := f(false); err != ErrClosed {
		t.Errorf("without a panic: %v", err)
	}
	if err := f(true); err == nil || !strings.Contains(err.Error(), "a defect") || !strings.Contains(err.Error(), "TestRecovered") {
		t.Errorf("a panic became %v", err)
	}
}

// TestSubmissionsAllocate has what every submission passes allocate nothing, and one
// that nobody waits for no more than the job, its channel and its list of bindings.
func TestSubmissionsAllocate(t *testing.T) {
	var g RefBarrier
	var x = Externals{Need: []int64{8, 8}, Written: []bool{false, true}}
	m := Memory(&own{8})
	s := &Submission{Ext: []Binding{{Host: make([]byte, 8)}, {Mem: m}}}
	behind := func(m Memory, off int64) (int64, error) { return m.(*own).bytes - off, nil }
	pass := func() {
		if err := x.Check(s.Ext, behind); err != nil || !g.Enter() {
			t.Fatal("refused")
		}
	}
	if n := testing.AllocsPerRun(100, func() { pass(); g.Leave() }); n != 0 {
		t.Errorf("%v allocations on the way of every submission", n)
	}
	if n := testing.AllocsPerRun(100, func() { pass(); NewJob(s).End(nil, &g) }); n > 3 {
		t.Errorf("%v allocations for a job", n)
	}
}
