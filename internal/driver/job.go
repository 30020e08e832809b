package driver

// Job is a submission that nobody waits for yet, while it waits for its turn and
// runs, and its fence.
type Job struct {
	Completion
	// Submission is a copy of the arguments of Submit, because the caller may change them after
	// Submit has returned.
	Submission Submission
}

// NewJob returns a job for a submission.
func NewJob(s *Submission) *Job {
	j := &Job{Submission: *s}
	j.done = make(chan struct{})
	j.Submission.Ext = append([]Binding(nil), s.Ext...)
	return j
}

// End ends the job with the error of its submission, which leaves g before
// anybody hears of it.
func (j *Job) End(err error, g *RefBarrier) {
	if f := j.Submission.Complete; f != nil {
		f(err)
	}
	// The caller may use its memory again.
	j.Submission = Submission{}
	g.Leave()
	j.Complete(err)
}
