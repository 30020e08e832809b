package ptx_test

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// TestListing builds two kernels and looks for the lines of their stores.
func TestListing(t *testing.T) {
	m := ptx.NewModule(ptx.SM80)
	m.RecordPositions()
	for _, name := range []string{"one", "two"} {
		m.Kernel(name, func(k *ptx.Kernel) {
			x := ptx.GlobalParam[ptx.U32](k, "x")
			i := k.Special(ptx.TidX)
			k.If(i.Lt(ptx.U(7)), func() {
				x.At(i).Store(i) // line 19
			})
		})
	}
	l, err := m.Listing()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, s := range strings.Split(string(l.Text), "\n") {
		p := l.At(i + 1)
		if strings.HasPrefix(s, "\tst.global") {
			found++
			if !strings.HasSuffix(p.File, "program_test.go") || p.Line != 19 {
				t.Errorf("line %d, %q, comes from %v", i+1, s, p)
			}
		} else if strings.HasPrefix(s, ".") && p.File != "" {
			t.Errorf("line %d, %q, comes from %v", i+1, s, p)
		}
	}
	if found != 2 {
		t.Errorf("%d stores in\n%s", found, l.Text)
	}
	if p := l.At(0); p.File != "" {
		t.Errorf("line 0 comes from %v", p)
	}
}

func TestInstructions(t *testing.T) {
	seen := false
	for _, in := range ptx.Instructions() {
		if in.Text == "mad.wide.u32" {
			seen = true
			if in.Types != [4]string{"U64", "U32", "U32", "U64"} || in.Memory {
				t.Errorf("%+v", in)
			}
		}
		if strings.TrimSpace(in.Text) != in.Text || in.Text == "" {
			t.Errorf("an instruction called %q", in.Text)
		}
	}
	if !seen {
		t.Error("no mad.wide.u32")
	}
}
