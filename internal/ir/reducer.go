package ir

// A Reducer defines a reduction or a scan by expressions over a state of one or more numbers.
// Identity is the state before the first element. Lift makes the state of one element.
// Merge combines two states, and Finish computes the result from a state. Merge is
// associative up to rounding, and commutative, so that devices may split the elements as
// they like. The float64 reference of integers evaluates the fold; portable kernels and the
// CPU compile it into loops.
type Reducer struct {
	Identity []*Node // constants
	Lift     []*Node // over Arg 0, the element, and Arg 1, its index in the row, of type I32
	Merge    []*Node // over the components of two states; the earlier state comes first
	Finish   *Node   // over the numbers of the state and, behind them, the count of elements, of type F32
}

// States returns how many numbers a state has.
func (r *Reducer) States() int { return len(r.Identity) }

// Indexed reports whether the index of an element matters.
func (r *Reducer) Indexed() bool { return usesArg(r.Lift, 1) }

// Counted reports whether the result depends on the count of elements.
func (r *Reducer) Counted() bool { return usesArg([]*Node{r.Finish}, len(r.Identity)) }

func usesArg(roots []*Node, arg int) bool {
	list, _ := Flatten(roots...)
	for _, n := range list {
		if n.Code == Arg && n.Index == arg {
			return true
		}
	}
	return false
}

// Step returns the state after one more element: over the numbers of the state, then
// the element, then its index.
func (r *Reducer) Step() []*Node {
	n := r.States()
	var args, moved []*Node
	for i, s := range r.Identity {
		args = append(args, NewArg(i, s.Type))
	}
	list, _ := Flatten(r.Lift...)
	for _, l := range list {
		if l.Code == Arg {
			for len(moved) <= l.Index {
				moved = append(moved, nil)
			}
			moved[l.Index] = NewArg(n+l.Index, l.Type)
		}
	}
	for _, l := range r.Lift {
		args = append(args, Substitute(l, moved, nil))
	}
	steps := make([]*Node, n)
	for i, m := range r.Merge {
		steps[i] = Substitute(m, args, nil)
	}
	return steps
}

// A ReducerEvaluator computes a reduction or a scan in float64.
type ReducerEvaluator struct {
	states         int
	identity       []float64
	step           []*Evaluator
	finish         *Evaluator
	state, scratch []float64
}

// Evaluator returns an evaluator of the reduction.
func (r *Reducer) Evaluator() *ReducerEvaluator {
	n := r.States()
	e := &ReducerEvaluator{states: n, finish: NewEvaluator(r.Finish), state: make([]float64, n), scratch: make([]float64, n+2)}
	for i, s := range r.Step() {
		e.identity = append(e.identity, r.Identity[i].Value)
		e.step = append(e.step, NewEvaluator(s))
	}
	return e
}

// Begin starts a row.
func (e *ReducerEvaluator) Begin() { copy(e.state, e.identity) }

// Take adds element i of the row.
func (e *ReducerEvaluator) Take(x float64, i int) {
	copy(e.scratch, e.state)
	e.scratch[e.states], e.scratch[e.states+1] = x, float64(i)
	for k, s := range e.step {
		e.state[k] = s.Eval(e.scratch, nil)
	}
}

// Result returns the result of the count elements that were taken.
func (e *ReducerEvaluator) Result(count int) float64 {
	copy(e.scratch, e.state)
	e.scratch[e.states] = float64(count)
	return e.finish.Eval(e.scratch, nil)
}

// Empty returns the result of no elements.
func (r *Reducer) Empty() float64 {
	e := r.Evaluator()
	e.Begin()
	return e.Result(0)
}
