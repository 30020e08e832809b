package ptx_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/ptx"
)

// assemble runs ptxas over the text and returns its output. It fails the test if ptxas
// rejects the text.
func assemble(t testing.TB, text []byte, target ptx.Target, options ...string) string {
	t.Helper()
	out, err := runPtxas(t, text, target, options...)
	if err != nil {
		t.Fatalf("ptxas for %v: %v\n%s", target, err, excerpt(text, out))
	}
	return out
}

func runPtxas(t testing.TB, text []byte, target ptx.Target, options ...string) (string, error) {
	t.Helper()
	testutil.Need(t, "ptxas")
	name := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-arch=" + target.String(), "-o", os.DevNull}, options...)
	out, err := exec.Command("ptxas", append(args, name)...).CombinedOutput()
	return string(out), err
}

// excerpt adds the lines that ptxas speaks of.
func excerpt(text []byte, out string) string {
	lines := bytes.Split(text, []byte("\n"))
	var w strings.Builder
	for i, s := range strings.Split(out, "\n") {
		if i > 40 {
			break
		}
		fmt.Fprintln(&w, s)
		if _, after, ok := strings.Cut(s, ", line "); ok {
			n := 0
			if fmt.Sscan(after, &n); n > 0 && n <= len(lines) {
				fmt.Fprintf(&w, "\t%s\n", lines[n-1])
			}
		}
	}
	return w.String()
}

func TestPtxasKernels(t *testing.T) {
	for _, target := range []ptx.Target{ptx.SM70, ptx.SM80, ptx.SM90a} {
		t.Run(target.String(), func(t *testing.T) {
			m := ptx.NewModule(target)
			for _, k := range kernels {
				m.Kernel(k.name, k.build)
			}
			text, err := m.PTX()
			if err != nil {
				t.Fatal(err)
			}
			if s := assemble(t, []byte(text), target, "-v"); strings.Contains(s, "spill") && !strings.Contains(s, " 0 bytes spill stores") {
				t.Error(s)
			}
		})
	}
}

// TestPtxasTable assembles each instruction in the lowest version and for the
// least target that the table names for it, and all of them for each target.
func TestPtxasTable(t *testing.T) {
	for _, g := range ptx.TableGroups() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			assemble(t, g.Text, g.Target, "-O0")
		})
	}
}

// TestPtxasLowest shows that no version and no target below those of the table
// has an instruction: ptxas refuses each line.
func TestPtxasLowest(t *testing.T) {
	for _, g := range ptx.LowerGroups() {
		t.Run(g.Name, func(t *testing.T) {
			// ptxas gives up after some mistakes: those that it has found go, until it
			// finds no more.
			lines := bytes.Split(g.Text, []byte("\n"))
			for found := true; found; {
				found = false
				out, err := runPtxas(t, bytes.Join(lines, []byte("\n")), g.Target, "-O0")
				for _, s := range strings.Split(out, "\n") {
					_, after, ok := strings.Cut(s, ", line ")
					if n := 0; ok && err != nil {
						fmt.Sscan(after, &n)
						if n > 0 && n <= len(lines) && g.Names[name(lines[n-1])] {
							lines[n-1], found = nil, true
						}
					}
				}
			}
			for _, line := range lines {
				if g.Names[name(line)] {
					t.Errorf("not refused: %s", line)
				}
			}
		})
	}
}

// name returns the name of the instruction in a line, "" if there is none.
func name(line []byte) string {
	f := strings.Fields(string(line))
	if len(f) == 0 {
		return ""
	}
	return strings.TrimSuffix(f[0], ";")
}
