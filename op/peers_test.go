package op

import (
	"slices"
	"strings"
	"testing"
)

// TestPeers checks that PeersNamed finds each entry by each of its names in other libraries, with and
// without the prefix of the library and in lower case, and that each operation is in the table or in
// the list of operations that other libraries do not have.
func TestPeers(t *testing.T) {
	own := []string{"hypot", "softplus", "gelu_tanh", "scale", "add_scalar", "axpy", "fma", "threefry", "matmul_q"}
	listed := map[string]bool{}
	for _, p := range Peers() {
		if (p.Name == "") == (p.Method == "") {
			t.Errorf("%+v is neither an operation nor a method, or both", p)
		}
		if o := Lookup(p.Name); p.Name != "" && (o == nil || o.Name() != p.Name) {
			t.Errorf("there is no operation %q", p.Name)
		}
		if key := p.Name + p.Method; listed[key] {
			t.Errorf("%s is listed twice", key)
		} else {
			listed[key] = true
		}
		is := func(q Peer) bool { return q.Name == p.Name && q.Method == p.Method }
		for _, n := range p.Names() {
			_, bare, _ := strings.Cut(n, ".")
			for _, as := range []string{n, strings.ToLower(n), bare} {
				if !slices.ContainsFunc(PeersNamed(as), is) {
					t.Errorf("%q does not find %s%s", as, p.Name, p.Method)
				}
			}
		}
	}
	for _, o := range Catalogue() {
		if !listed[o.Name()] && !slices.Contains(own, o.Name()) {
			t.Errorf("%s has no names in other libraries: add them to peers, or add the operation to the list of this test", o)
		}
	}
	for _, n := range []string{"np.nothing", "", "torch."} {
		if p := PeersNamed(n); p != nil {
			t.Errorf("%q finds %v", n, p)
		}
	}
	if p := PeersNamed("ReduceSum"); len(p) != 1 || p[0].Name != "sum" {
		t.Errorf("ReduceSum finds %v", p)
	}
	if p := PeersNamed("numpy.Clip"); len(p) != 1 || p[0].Name != "clip" {
		t.Errorf("numpy.Clip finds %v", p)
	}
}
