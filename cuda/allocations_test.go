//go:build !race

// Under the race detector, pools drop objects at random.

package cuda

import "testing"

// TestLaunchDoesNotAllocate checks that repeated launches and copies do not allocate Go memory.
func TestLaunchDoesNotAllocate(t *testing.T) {
	d := must[*Device](t)(stubDriver().open(0, WithCubinCache("")))
	defer d.Close()
	s := must[*Stream](t)(d.NewStream(0))
	fn := must[*Function](t)(must[*Module](t)(d.Load([]byte(reluText))).Function("relu"))
	e := must[*Event](t)(d.NewEvent(false))
	must[Memory](t)(s.Alloc(1000)).Free()
	var p Params
	src, large, twenty := make([]byte, 1000), make([]byte, 3<<20), make([]byte, 20)
	for name, f := range map[string]func(){
		"Launch": func() {
			p = p[:0]
			p.Ptr(1)
			p.Ptr(2)
			p.U32(3)
			if err := s.Launch(fn, Config{Grid: Dim{X: 1}, Block: Dim{X: 32}}, p); err != nil {
				t.Fatal(err)
			}
		},
		"cooperative Launch": func() { s.Launch(fn, Config{Cooperative: true}, twenty) },
		"Copy":               func() { s.Copy(1, 2, 3) },
		"Record":             func() { s.Record(e) },
		"After":              func() { s.After(e) },
		"Synchronize":        func() { s.Synchronize() },
		"Done":               func() { s.Done() },
		"Alloc":              func() { m, _ := s.Alloc(1000); m.Free() },
		"Upload":             func() { s.Upload(1, src) },
		"large Upload":       func() { s.Upload(1, large) },
		"Download":           func() { s.Download(src, 1) },
		"large Download":     func() { s.Download(large, 1) },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
