package batch

import (
	"slices"
	"sync"
	"time"
)

// choice is the schedule of a pipeline: the number of rows in a chunk, and the number of chunks in flight.
type choice struct{ rows, depth int }

const (
	// fewest is the minimum number of chunks in flight: one is read while another is computed.
	fewest = 2
	// usual is the number of chunks in flight if the budget allows it: a third one is with the
	// caller. deeper is tried after the rows are chosen.
	usual, deeper = 3, 6

	// The sizes to try, in bytes of operands. The smallest is about the second-level cache of a
	// core, because smaller chunks have too much overhead. The largest hides a round trip to any
	// device.
	firstChunk, growth, lastChunk = 512 << 10, 4, 32 << 20

	// A trial measures at least trialChunks chunks and trialTime, which is longer than the time
	// slices of other programs.
	trialChunks, trialTime = 6, 30 * time.Millisecond
	// A size is better if it is faster by the factor better. After misses sizes that are not
	// better, no further one is tried.
	better, misses = 1.05, 2
)

// sizing chooses by measurement among the numbers of rows of a list, then between the depths. Each
// trial runs until enough of its chunks have been measured; the chunks of the trial that are still
// running then are not measured.
type sizing struct {
	mu      sync.Mutex
	trials  []choice            // remaining trials; the first one is running
	number  int                 // number of the running trial
	deeper  func(rows int) bool // whether the budget allows deeper
	settled bool

	chunks, rows int
	start        time.Time
	best         choice
	rate         float64
	missed       int
	deep         bool // the running trial is for the depth
}

// sizes returns the choices for chunks of a pipeline in the order of their trials, the likely best first. Small chunks
// stay in the cache of a CPU. Other devices need large ones, because each chunk costs a round trip.
func (p *flow) sizes() []choice {
	if n := p.opts.Rows; n > 0 {
		return []choice{{n, p.depth(n, usual)}}
	}
	var list []choice
	first := int64(firstChunk)
	if p.inTurns { // chunks stay in the second-level cache of a core
		first /= growth
	}
	for bytes := first; bytes <= lastChunk; bytes *= growth {
		rows := int(max(bytes/int64(p.row), 1))
		if len(list) > 0 && (rows == list[len(list)-1].rows || p.cost(rows)*fewest > p.opts.Memory) {
			continue
		}
		for rows > 1 && p.cost(rows)*fewest > p.opts.Memory {
			rows /= 2
		}
		list = append(list, choice{rows, p.depth(rows, usual)})
	}
	if p.remote {
		slices.Reverse(list)
	}
	return list
}

// cost returns the bytes of a chunk, results included.
func (p *flow) cost(rows int) int64 {
	return int64(rows)*(int64(p.row)+p.perRow) + p.fixed
}

// depth returns the number of chunks that the budget allows, up to want.
func (p *flow) depth(rows, want int) int {
	return int(min(max(p.opts.Memory/max(p.cost(rows), 1), fewest), int64(want)))
}

// sizing returns the sizing of a run. Runs continue the trials of earlier ones, which may have been too
// short for all.
func (p *flow) sizing() *sizing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trials == nil {
		list := p.sizes()
		p.trials = &sizing{trials: list, best: list[0], deeper: func(rows int) bool { return p.depth(rows, deeper) == deeper }}
	}
	p.trials.restart()
	return p.trials
}

// restart begins the running trial again. The time between two runs does not belong to it.
func (s *sizing) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = 0
	if !s.settled {
		s.number++ // chunks of other runs that are under way are not measured
	}
}

// next returns the choice for the next chunk, and the number of its trial.
func (s *sizing) next() (c choice, trial int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return s.best, s.number
	}
	return s.trials[0], s.number
}

// refuse records that the device cannot run the chunks of a trial, and reports whether another
// choice remains.
func (s *sizing) refuse(trial int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case trial != s.number: // another run has left this trial
		return true
	case s.settled || s.rate == 0 && len(s.trials) == 1:
		return false
	case s.rate == 0: // no choice has been measured
		s.trials = s.trials[1:]
		s.best = s.trials[0]
	default:
		s.settled = true
	}
	s.number++
	s.chunks = 0
	return true
}

// done records that a chunk was completed at time now.
func (s *sizing) done(trial, rows int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled || trial != s.number {
		return
	}
	// The first chunk includes compilation, and each chunk in flight needs memory that the device has
	// not allocated before.
	unmeasured := s.trials[0].depth
	if s.chunks++; s.chunks <= unmeasured {
		s.start, s.rows = now, 0
		return
	}
	s.rows += rows
	took := now.Sub(s.start)
	if s.chunks >= unmeasured+trialChunks && took >= trialTime {
		s.finishTrial(float64(s.rows) / took.Seconds())
	}
}

// finishTrial ends a trial whose throughput was rate, in rows a second.
func (s *sizing) finishTrial(rate float64) {
	if rate > s.rate*better || s.rate == 0 {
		s.best, s.rate, s.missed = s.trials[0], rate, 0
	} else {
		s.missed++
	}
	s.trials = s.trials[1:]
	s.number++
	s.chunks = 0
	switch {
	case s.deep:
		s.settled = true
	case len(s.trials) > 0 && s.missed < misses:
	case s.deeper(s.best.rows):
		s.deep = true
		s.trials = []choice{{s.best.rows, deeper}}
	default:
		s.settled = true
	}
}
