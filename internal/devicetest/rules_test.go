package devicetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// aliasing checks that elementwise and row operations may overwrite an operand, and that no operation may overwrite
// a part of an operand.
func aliasing(t *testing.T, open Open) {
	dev := start(t, open)
	ctx := t.Context()
	free := deviationsOf(ctx, dev)
	lengths := []int{1, 7, 64, 65, 1000, 20011}
	switch kind := dev.Info().Kind; {
	case short() && kind == device.CUDA, // emulated
		testutil.Raced && kind == device.WebGPU: // the test has one goroutine and calls a library written in C
		lengths = lengths[:5]
	}
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise && o.Class() != op.Row || !hasMethod(o) {
			continue
		}
		for _, n := range lengths {
			for over := range o.Inputs() {
				if o.Class() == op.Row && over > 0 {
					break
				}
				c := sample(o, n, uint64(n))
				want, _, err := c.Reference()
				if err != nil {
					t.Fatal(err)
				}
				also, err := c.allows(free)
				if err != nil {
					t.Fatal(err)
				}
				in := c.operands()
				if err := c.oneShot(ctx, dev, n%2 == 0, in, []*array{in[over]}); err != nil {
					t.Errorf("%v over operand %d: %v", &c, over, err)
				} else if err := in[over].check(o, want[0], &also, 0); err != nil {
					t.Errorf("%v over operand %d: %v", &c, over, err)
				}
			}
		}
		for over := range o.Inputs() {
			c := sample(o, 40, 9)
			for _, shift := range []int{-1, 1, 39} {
				in := c.operands()
				long := newArray(op.F32, in[over].n+80)
				at := 40
				copy(long.data[4*at:], in[over].data)
				whole := *long
				part := whole
				part.data, part.n = long.data[4*at:][:4*in[over].n], in[over].n
				in[over] = &part
				dst := whole
				dst.n = 40
				dst.data = long.data[4*(at+shift):][:160]
				before := long.clone()
				for _, async := range []bool{false, true} {
					err := c.oneShot(ctx, dev, async, in, []*array{&dst})
					if !errors.Is(err, device.ErrOverlap) {
						t.Errorf("%v with dst %d after operand %d: %v, want ErrOverlap", &c, shift, over, err)
					}
					if err := long.unchanged(before); err != nil {
						t.Errorf("%v: refused, but %v", &c, err)
					}
				}
			}
		}
	}
	// Operations that are not elementwise may not overwrite an operand at all.
	x, w := make([]float32, 64), make([]float32, 64)
	for name, err := range map[string]error{
		"matmul over a":        dev.MatMul(ctx, x, x, w, nil, 8, 8, 8),
		"matmul over b":        dev.MatMul(ctx, w, x, w, nil, 8, 8, 8),
		"matvec":               dev.MatVec(ctx, x[:8], w, x[4:12], 8, 8),
		"transpose":            dev.Transpose(ctx, x, x, 8, 8),
		"conv2d":               dev.Conv2D(ctx, x, x, w[:1], nil, [4]int{1, 1, 8, 8}, [4]int{1, 1, 1, 1}),
		"sum of rows":          device.Reduce(ctx, dev, x[:8], op.Sum, op.Attrs{}, 8, 8, x),
		"softmax, shifted":     dev.Softmax(ctx, x[1:], x[:63], 7, 9),
		"attention":            dev.Attention(ctx, x, x, w, w, device.AttentionSize{Heads: 1, Tq: 8, Tk: 8, Dim: 8}),
		"topk":                 dev.TopK(ctx, x[:8], make([]int32, 8), x, 8, 8, 1),
		"sort":                 dev.Sort(ctx, x[:8], make([]int32, 8), x[4:12], 1, 8),
		"gather":               dev.Gather(ctx, x[:8], x, []int32{0}, 8, 8),
		"layer norm over beta": dev.LayerNorm(ctx, x[:8], w[:8], w[8:16], x[:8], 1, 8),
	} {
		if !errors.Is(err, device.ErrOverlap) {
			t.Errorf("%s: %v, want ErrOverlap", name, err)
		}
	}
}

// sample is a case of an elementwise or row operation over n elements.
func sample(o *op.Operation, n int, seed uint64) Case {
	g := newGenerator(seed)
	c := Case{Op: o}
	c.Params, _ = g.params(o)
	if o.Options() != "" {
		c.Params = nil
	}
	for i := range o.Inputs() {
		s := op.Shape{n}
		if o.Class() == op.Row && i == 0 {
			s = op.Shape{1, n}
		}
		c.In = append(c.In, g.tensor(op.F32, s, g.tame))
	}
	return c
}

// twoOptions calls every method that takes an option struct with two of them.
func twoOptions(t *testing.T, dev *device.Device) {
	args := func(m reflect.Value, v batch.Value) []reflect.Value {
		mt := m.Type()
		if !mt.IsVariadic() || !mt.In(mt.NumIn()-1).Elem().Implements(reflect.TypeFor[Options]()) {
			return nil
		}
		var args []reflect.Value
		for i := range mt.NumIn() - 1 {
			a := reflect.Zero(mt.In(i))
			switch mt.In(i) {
			case reflect.TypeFor[context.Context]():
				a = reflect.ValueOf(t.Context())
			case reflect.TypeFor[batch.Value]():
				a = reflect.ValueOf(v)
			}
			args = append(args, a)
		}
		o := reflect.Zero(mt.In(mt.NumIn() - 1).Elem())
		return append(args, o, o)
	}
	calls := 0
	check := func(name string, err error) {
		calls++
		if !errors.Is(err, device.ErrShape) || !strings.Contains(err.Error(), "2 option structs") {
			t.Errorf("%s with two option structs: %v", name, err)
		}
	}
	for i := range reflect.TypeOf(dev).NumMethod() {
		m, name := reflect.ValueOf(dev).Method(i), reflect.TypeOf(dev).Method(i).Name
		a := args(m, batch.None)
		if a == nil {
			continue
		}
		out := m.Call(a)
		switch r := out[len(out)-1].Interface().(type) {
		case error:
			check(name, r)
		case interface{ Wait(context.Context) error }:
			check(name, r.Wait(t.Context()))
		default:
			t.Errorf("%s gives %v", name, out)
		}
	}
	for i := range reflect.TypeFor[*batch.Batch]().NumMethod() {
		b := batch.New(dev)
		m, name := reflect.ValueOf(b).Method(i), reflect.TypeOf(b).Method(i).Name
		if a := args(m, b.Upload([]float32{1})); a != nil {
			m.Call(a)
			check("batch."+name, b.Err())
		}
	}
	if calls < 30 {
		t.Errorf("only %d methods take options", calls)
	}
}

// nilContext checks that every method that takes a context returns an error for a nil context.
func nilContext(t *testing.T, dev *device.Device) {
	var none context.Context
	buf, err := device.Upload(t.Context(), dev, []float32{1})
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	b := batch.New(dev)
	v := b.Relu(b.Upload([]float32{1}))
	plan, err := b.Compile(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	errs := everyMethod(none, dev)
	for name, err := range map[string]error{
		"Open": second(device.Open(none)), "List": second(device.List(none)), "Upload": second(device.Upload(none, dev, []float32{1})),
		"Write": device.Write(none, buf, []float32{1}), "Read": device.Read(none, []float32{1}, buf), "NewBuffer": second(dev.NewBuffer(none, op.F32, 1)),
		"Tune":    second(dev.Tune(none, op.MatMul, op.Attrs{}, []op.DType{op.F32, op.F32}, []op.Shape{{2, 2}, {2, 2}})),
		"Execute": b.Execute(none), "ExecuteAsync": b.ExecuteAsync(none).Wait(t.Context()), "Compile": second(b.Compile(none)),
		"Profile": second(b.Profile(none)), "Plan.Run": plan.Run(none), "Plan.RunAsync": plan.RunAsync(none).Wait(t.Context()),
	} {
		errs["the function "+name] = err
	}
	for name, err := range errs {
		if !errors.Is(err, device.ErrContext) {
			t.Errorf("%s with a nil context: %v, want ErrContext", name, err)
		}
	}
	p := plan.RunAsync(t.Context())
	if err := p.Wait(none); err != nil && !errors.Is(err, device.ErrContext) {
		t.Errorf("Wait with a nil context: %v", err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// alike checks that a method and its asynchronous form return errors with the same text.
func alike(t *testing.T, errs map[string]error) {
	compared := 0
	for name, err := range errs {
		twin, ok := errs[name+"Async"]
		if !ok {
			continue
		}
		var a, b *device.OpError
		if errors.As(err, &a) && errors.As(twin, &b) {
			compared++
			if len(a.Shapes) == 0 || a.Error() != b.Error() {
				t.Errorf("%s: %v, but without waiting %v", name, a, b)
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d methods were compared with their twins", compared)
	}
}

// mistakes checks that wrong arguments give typed errors at once.
func mistakes(t *testing.T, open Open) {
	dev := start(t, open)
	twoOptions(t, dev)
	nilContext(t, dev)
	ctx := t.Context()
	// Call every one-shot method of the catalogue with one slice, each in turn, that is nil or one element too
	// short.
	for _, o := range op.Catalogue() {
		for _, c := range Cases(o, op.F32, 1, true) {
			want, types, err := c.Reference()
			if err != nil || len(c.In[0].Data) < 2 {
				continue
			}
			in := c.operands()
			out := make([]*array, len(want))
			for i, w := range want {
				out[i] = newArray(types[i], len(w.Data))
			}
			if c.oneShot(ctx, dev, false, in, out) != nil {
				continue // there is no such method
			}
			slots := append(append([]*array(nil), in...), out...)
			for i := range slots {
				if slots[i] == nil || slots[i].n < 2 || i >= len(in) && o.Class() == op.Reduction && !c.Rows {
					continue
				}
				if o.Class() == op.Reduction && len(in) == 1 && !c.Rows || o == op.Gather && i == 1 {
					continue // any length will do
				}
				for _, n := range []int{slots[i].n - 1, 0} {
					bad := *slots[i]
					bad.n, bad.data = n, bad.data[:n*bad.typ.Size()]
					if n == 0 && i < len(in) && i >= fewest(o) {
						continue // absent
					}
					all := append([]*array(nil), slots...)
					all[i] = &bad
					for _, async := range []bool{false, true} {
						err := c.oneShot(ctx, dev, async, all[:len(in)], all[len(in):])
						if !errors.Is(err, device.ErrShape) {
							t.Errorf("%v with slice %d of %d elements instead of %d: %v, want ErrShape", &c, i, n, slots[i].n, err)
						}
						var oe *device.OpError
						if !errors.As(err, &oe) || oe.Op == "" || oe.Device == "" {
							t.Errorf("%v: the error %v does not say what failed where", &c, err)
						}
					}
				}
			}
			break
		}
	}
	x := make([]float32, 16)
	big := math.MaxInt/4 + 1
	for name, c := range map[string]struct{ got, want error }{
		"product beyond int":     {dev.MatMul(ctx, x, x[:0], x[:0], nil, big, 4, big), device.ErrShape},
		"negative extent":        {dev.MatMul(ctx, x[:4], x[4:8], x[8:12], nil, -2, -2, 2), device.ErrShape},
		"rows beyond int":        {dev.Softmax(ctx, x[:4], x[4:8], big, 4), device.ErrShape},
		"negative rows":          {dev.Softmax(ctx, x[:4], x[4:8], -1, -4), device.ErrShape},
		"negative columns":       {device.Reduce(ctx, dev, x[:1], op.Sum, op.Attrs{}, 1, -4, x[4:8]), device.ErrShape},
		"map in place of reduce": {device.Reduce(ctx, dev, x[:1], op.Relu, op.Attrs{}, 1, 4, x[4:8]), device.ErrUnsupported},
		"indices as numbers":     {device.Reduce(ctx, dev, x[:1], op.ArgMax, op.Attrs{}, 1, 4, x[4:8]), device.ErrUnsupported},
		"dot of one operand":     {device.Reduce(ctx, dev, x[:1], op.Dot, op.Attrs{}, 1, 4, x[4:8]), device.ErrShape},
		"extreme of nothing":     {second(dev.Max(ctx, nil)), device.ErrShape},
		"index of nothing":       {second(dev.ArgMin(ctx, nil)), device.ErrShape},
		"too many":               {dev.TopK(ctx, x[:3], make([]int32, 3), x[4:6], 1, 2, 3), device.ErrShape},
		"less than none":         {dev.TopK(ctx, nil, nil, x[4:6], 1, 2, -1), device.ErrShape},
		"odd heads":              {dev.Rope(ctx, x[:3], x[4:7], 1, 1, 3), device.ErrShape},
		"window too large":       {dev.Conv2D(ctx, x[:1], x[1:5], x[5:14], nil, [4]int{1, 1, 2, 2}, [4]int{1, 1, 3, 3}), device.ErrShape},
		"nil operation":          {dev.Map(ctx, x[:1], nil, x[1:2]), device.ErrUnsupported},
		"not elementwise":        {dev.Map(ctx, x[:1], op.Sum, x[1:2]), device.ErrUnsupported},
		"too few operands":       {dev.Map(ctx, x[:1], op.Add, x[1:2]), device.ErrShape},
		"no operands":            {dev.Map(ctx, x[:1], op.Add), device.ErrShape},
		"a broken operation":     {dev.Map(ctx, x[:1], op.Unary("broken", nil), x[1:2]), device.ErrUnsupported},
		"a negative buffer":      {second(dev.NewBuffer(ctx, op.F32, -1)), device.ErrShape},
		"a buffer beyond int":    {second(dev.NewBuffer(ctx, op.F32, big, 8)), device.ErrShape},
		"no activation":          {dev.MatMul(ctx, x[:4], x[4:8], x[8:12], nil, 2, 2, 2, op.MatMulOpts{Act: op.Add}), device.ErrUnsupported},
		"other sizes":            {second(dev.Dot(ctx, x[:3], x[:4])), device.ErrShape},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	recorded(t, dev, open)
}

func fewest(o *op.Operation) int {
	n, _ := o.Arity()
	return n
}

func second[T any](_ T, err error) error { return err }

// recorded checks that Execute and Compile return the first mistake of a recording.
func recorded(t *testing.T, dev *device.Device, open Open) {
	ctx := t.Context()
	other := start(t, open)
	foreign, err := device.Upload(ctx, other, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	own, err := dev.NewBuffer(ctx, op.F32, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	another := batch.New(dev)
	strange := another.Upload([]float32{1, 2})
	x := []float32{1, 2, 3, 4, 5, 6}
	for name, c := range map[string]struct {
		record func(b *batch.Batch)
		want   error
	}{
		"shapes":           {func(b *batch.Batch) { b.Add(b.Upload(x, 2, 3), b.Upload(x, 3, 2)) }, device.ErrShape},
		"an inner extent":  {func(b *batch.Batch) { b.Add(b.Upload(x, 6, 1), b.Upload(x, 2, 3)) }, device.ErrShape},
		"axes":             {func(b *batch.Batch) { b.Permute(b.Upload(x, 2, 3), 0, 0) }, device.ErrShape},
		"no step":          {func(b *batch.Batch) { b.Slice(b.Upload(x), 0, 0, 3, 0) }, device.ErrShape},
		"less than none":   {func(b *batch.Batch) { b.Pad(b.Upload(x), 0, -1, 0, 0) }, device.ErrShape},
		"parts":            {func(b *batch.Batch) { b.Split(b.Upload(x), 0, 2, 3) }, device.ErrShape},
		"inner extents":    {func(b *batch.Batch) { b.MatMul(b.Upload(x, 2, 3), b.Upload(x, 2, 3), batch.None) }, device.ErrShape},
		"types":            {func(b *batch.Batch) { b.Add(b.Upload(x), batch.Upload(b, []int32{1, 2, 3, 4, 5, 6})) }, device.ErrUnsupported},
		"exp of integers":  {func(b *batch.Batch) { b.Exp(batch.Upload(b, []int32{1})) }, device.ErrUnsupported},
		"a wrong shape":    {func(b *batch.Batch) { b.Upload(x, 4) }, device.ErrShape},
		"a negative shape": {func(b *batch.Batch) { b.Upload(x, -2, -3) }, device.ErrShape},
		"the zero value":   {func(b *batch.Batch) { b.Relu(batch.Value{}) }, device.ErrShape},
		"another's value":  {func(b *batch.Batch) { b.Relu(strange) }, device.ErrForeign},
		"another's buffer": {func(b *batch.Batch) { b.Use(foreign) }, device.ErrForeign},
		"no buffer":        {func(b *batch.Batch) { b.Use(nil) }, device.ErrForeign},
		"store elsewhere":  {func(b *batch.Batch) { b.Store(foreign, 0, b.Upload(x[:2])) }, device.ErrForeign},
		"store too much":   {func(b *batch.Batch) { b.Store(own, 3, b.Upload(x[:2])) }, device.ErrShape},
		"store before":     {func(b *batch.Batch) { b.Store(own, -1, b.Upload(x[:2])) }, device.ErrShape},
		"store far behind": {func(b *batch.Batch) { b.Store(own, math.MaxInt, b.Upload(x[:2])) }, device.ErrShape},
		"store a type":     {func(b *batch.Batch) { b.Store(own, 0, batch.Upload(b, []int32{1})) }, device.ErrUnsupported},
		"get too few":      {func(b *batch.Batch) { batch.ReadInto(b, b.Relu(b.Upload(x)), make([]float32, 5)) }, device.ErrShape},
		"nil operation":    {func(b *batch.Batch) { b.Map(nil, b.Upload(x)) }, device.ErrUnsupported},
		"no operand":       {func(b *batch.Batch) { b.Map(op.Relu) }, device.ErrUnsupported},
		"nine extents":     {func(b *batch.Batch) { b.Upload(x[:1], 1, 1, 1, 1, 1, 1, 1, 1, 1) }, nil},
		"reshape":          {func(b *batch.Batch) { b.Reshape(b.Upload(x), 4) }, device.ErrShape},
		"topk":             {func(b *batch.Batch) { b.TopK(b.Upload(x), 7) }, device.ErrShape},
		"sort along":       {func(b *batch.Batch) { b.Sort(b.Upload(x), op.SortOpts{Along: op.Axes(1)}) }, device.ErrShape},
		"max of nothing":   {func(b *batch.Batch) { b.Max(b.Upload(nil)) }, device.ErrShape},
	} {
		b := batch.New(dev)
		c.record(b)
		first := b.Err()
		b.Relu(strange) // a later mistake does not replace the first
		b.Relu(b.Upload(x))
		for how, err := range map[string]error{"Execute": b.Execute(ctx), "Compile": second(b.Compile(ctx)), "ExecuteAsync": b.ExecuteAsync(ctx).Wait(ctx)} {
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v, want %v", name, how, err, c.want)
			}
			if first == nil || err != nil && !strings.Contains(err.Error(), first.Error()) {
				t.Errorf("%s: %s: %v, but the first mistake was %v", name, how, err, first)
			}
		}
		// Reset forgets the mistake.
		b.Reset()
		y := b.Relu(b.Upload(x))
		if err := b.Execute(ctx); err != nil {
			t.Errorf("%s: after Reset: %v", name, err)
		} else if out, err := batch.Read[float32](ctx, b, y); err != nil || len(out) != len(x) || out[5] != 6 {
			t.Errorf("%s: after Reset: %v, %v", name, out, err)
		}
	}

	b := batch.New(dev)
	y := b.Relu(b.Upload(x))
	z := b.Neg(y)
	if _, err := batch.Read[float32](ctx, b, z); !errors.Is(err, device.ErrNotExecuted) {
		t.Errorf("Read before Execute: %v, want ErrNotExecuted", err)
	}
	if err := b.Execute(ctx); err != nil {
		t.Error(err)
	}
	if _, err := batch.Read[float32](ctx, b, y); !errors.Is(err, device.ErrNotExecuted) {
		t.Errorf("Read of a value that was consumed: %v, want ErrNotExecuted", err)
	}
	if err := b.Execute(ctx); err == nil {
		t.Error("a second Execute succeeded")
	}
	if _, err := batch.Read[float32](ctx, b, strange); !errors.Is(err, device.ErrForeign) {
		t.Errorf("Read of another's value: %v, want ErrForeign", err)
	}
	if _, err := batch.Read[int32](ctx, b, z); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("Read as another type: %v, want ErrUnsupported", err)
	}
	b.Reset()
	if b.Relu(z); !errors.Is(b.Err(), device.ErrForeign) {
		t.Errorf("a value from before Reset: %v, want ErrForeign", b.Err())
	}
	if err := batch.New(nil).Execute(ctx); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("no device: %v, want ErrNoDevice", err)
	}
}

// everyMethod calls every method of the device that takes a context, with zero values for the other arguments. It
// returns the errors by the names of the methods.
func everyMethod(ctx context.Context, dev *device.Device) map[string]error {
	errs := map[string]error{}
	r := reflect.ValueOf(dev)
	context := reflect.TypeFor[context.Context]()
	for i := range r.NumMethod() {
		m, name := r.Method(i), r.Type().Method(i).Name
		typ := m.Type()
		if typ.NumIn() == 0 || typ.In(0) != context || strings.HasPrefix(name, "Rope") || name == "Kernel" || name == "Tune" {
			continue // Rope needs pairs of elements, Kernel a kernel, and Tune arguments without a zero value
		}
		args := []reflect.Value{reflect.ValueOf(&ctx).Elem()}
		for j := 1; j < typ.NumIn(); j++ {
			if typ.IsVariadic() && j == typ.NumIn()-1 {
				break
			}
			args = append(args, fitting(typ.In(j)))
		}
		if name == "Map" || name == "MapAsync" {
			args[2] = reflect.ValueOf(op.Relu)
			args = append(args, fitting(typ.In(1)))
		}
		results := m.Call(args)
		last := results[len(results)-1]
		if w := last.MethodByName("Wait"); w.IsValid() && typ.NumOut() == 1 && !last.IsNil() {
			last = w.Call(args[:1])[0]
		}
		err, ok := last.Interface().(error)
		if !ok && !last.IsZero() {
			err = fmt.Errorf("%s returns %v", name, last)
		}
		errs[name] = err
	}
	return errs
}

// fitting returns an argument of the given type: a slice of one element, or a size of one. Such arguments fit each
// other.
func fitting(t reflect.Type) reflect.Value {
	switch t.Kind() {
	case reflect.Slice:
		return reflect.MakeSlice(t, 1, 1)
	case reflect.Int:
		return reflect.ValueOf(1)
	case reflect.Array:
		a := reflect.New(t).Elem()
		for i := range a.Len() {
			a.Index(i).SetInt(1)
		}
		return a
	case reflect.Struct:
		s := reflect.New(t).Elem()
		for i := range s.NumField() {
			if s.Field(i).Kind() == reflect.Int {
				s.Field(i).SetInt(1)
			}
		}
		return s
	case reflect.Uint8:
		v := reflect.New(t).Elem()
		v.SetUint(uint64(op.F32))
		return v
	}
	return reflect.Zero(t)
}
