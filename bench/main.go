// Command bench compares rayo on the CPU with NumPy, PyTorch, OpenBLAS and MKL,
// side by side on one machine:
//
//	make bench-peers
//	make bench-peers PEERS_FLAGS='-only tanh,matmul -sizes 1000,1024'
//
// Every implementation runs in a process of its own. For each cell the
// processes take turns, in a new random order every round, and all but the
// one whose turn it is are stopped. A full run rewrites the tables between the markers
// of docs/BENCHMARKS.md and docs/measurements/cpu.md and the plots in docs/bench.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.serve, "serve", false, "answer requests on standard input; this program starts itself with this flag")
	only := flag.String("only", "", "comma-separated `operations` to measure, or groups of them: roofs, arrays, matmul, catalogue, axes, linalg, own")
	sizes := flag.String("sizes", "", "comma-separated `sizes` to measure: elements, or rows or columns of a product")
	flag.BoolVar(&o.quick, "quick", false, "measure fewer rounds, and change no documents")
	flag.BoolVar(&o.json, "json", false, "print the results as JSON instead of tables")
	flag.BoolVar(&o.keep, "keep", false, "keep the results of earlier runs for the cells that this run does not measure")
	flag.BoolVar(&o.report, "report", false, "write the tables and plots from the results in out/results.json, without measuring")
	flag.StringVar(&o.gpu, "gpu", "", "write the tables from the output of gpu.sh bench in `file`, without measuring")
	flag.Parse()
	o.only = list(*only)
	for _, s := range list(*sizes) {
		n, err := strconv.Atoi(s)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: -sizes: %v\n", err)
			os.Exit(2)
		}
		o.sizes = append(o.sizes, n)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	serve, quick, json, keep, report bool
	only                             []string
	sizes                            []int
	gpu                              string
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func run(o options) error {
	if o.serve {
		return serve(os.Stdin, os.Stdout)
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.gpu != "" {
		return documentGPU(o.gpu, filepath.Join(root, "docs", "measurements", "gpu.md"))
	}
	file := filepath.Join(root, "bench", "out", "results.json")
	res := &results{}
	var failed error
	if o.keep || o.report {
		if res, err = load(file); err != nil {
			return err
		}
	}
	if !o.report {
		measured := cells(o.only, o.sizes)
		if len(measured) == 0 {
			return fmt.Errorf("-only matches no cell; it accepts %s and the groups roofs, arrays, matmul, catalogue, axes, linalg, own", strings.Join(arrayOps, ", "))
		}
		if err := res.describe(root, o.quick); err != nil {
			return err
		}
		// Results from before an interruption or the death of a peer are also kept and
		// printed.
		failed = measure(root, measured, o.quick, res)
		if err := res.save(file); err != nil {
			return err
		}
	}
	if o.json {
		return errors.Join(res.write(os.Stdout), failed)
	}
	res.print(os.Stdout)
	if failed != nil {
		return failed
	}
	if missing := res.missing(); missing > 0 || res.Quick {
		fmt.Printf("\ndocs/BENCHMARKS.md was not changed: ")
		if missing > 0 {
			fmt.Printf("%d cells have no results yet.\n", missing)
		} else {
			fmt.Printf("these are the results of a quick run.\n")
		}
		return nil
	}
	return res.document(filepath.Join(root, "docs"))
}

// findRoot returns the folder of the repository. The working directory must be this folder or bench.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "bench", "peers", "peers.py")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run this command in the folder of the repository or in bench")
		}
	}
	return "", err
}

// python returns the interpreter of the environment that peers.sh creates.
func python(root string) string {
	if dir := os.Getenv("PEERS"); dir != "" {
		return filepath.Join(dir, "bin", "python")
	}
	return filepath.Join(root, "bench", "out", "venv", "bin", "python")
}

// measure asks every server about every cell and adds the answers to res.
func measure(root string, measured []cell, quick bool, res *results) error {
	runtime.LockOSThread() // the servers end when this thread ends
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)

	self, err := os.Executable()
	if err != nil {
		return err
	}
	script := filepath.Join(root, "bench", "peers", "peers.py")
	commands := map[string][]string{
		"rayo":     {self, "-serve"},
		"numpy":    {python(root), script, "numpy"},
		"torch":    {python(root), script, "torch"},
		"openblas": {python(root), script, "numpy"},
		"mkl":      {python(root), script, "mkl"},
	}
	peers := map[string]*peer{}
	defer func() {
		for _, p := range peers {
			p.close()
		}
	}()

	rounds, samples := 7, 5
	if quick {
		rounds, samples = 3, 3
	}
	start := time.Now()
	for i, c := range measured {
		res.clear(c)
		failed := map[string]bool{}
		var first []float64 // elements of the first result
		for range rounds {
			names := c.servers()
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for _, name := range names {
				select {
				case <-interrupted:
					return fmt.Errorf("interrupted at %s", c.key())
				default:
				}
				if failed[name] {
					continue
				}
				p := peers[name]
				if p == nil {
					if p, err = startPeer(name, commands[name]...); err != nil {
						return err
					}
					peers[name] = p
				}
				a, err := p.ask(newRequest(c, name, samples))
				if err == nil {
					err = verify(c, a.Check)
				}
				if k := axisCaseOf(c); k != nil && err == nil {
					if first == nil {
						first = a.Check
					}
					if err = k.agree(a.Check, first); err != nil { // any of the systems may be wrong
						for _, all := range names {
							failed[all] = true
						}
					}
				}
				if err != nil {
					// A cell that a server cannot compute, or computes wrongly, has no number for it.
					fmt.Fprintf(os.Stderr, "\r%s: %v\n", name, err)
					failed[name] = true
					continue
				}
				res.add(c, name, a)
			}
		}
		for name := range failed { // servers without samples, or with wrong results
			delete(res.Cells[c.key()].By, name)
		}
		fmt.Fprintf(os.Stderr, "\r%3d of %d cells, %s \x1b[K", i+1, len(measured), time.Since(start).Round(time.Second))
	}
	fmt.Fprintln(os.Stderr)
	return nil
}

// newRequest returns a request for a cell to a server.
func newRequest(c cell, server string, samples int) request {
	q := request{cell: c, Samples: samples, Ms: 1}
	if k := axisCaseOf(c); k != nil {
		q.Operands, q.Forms = k.in, k.forms(server)
		return q
	}
	k, _ := caseOf(c)
	q.Shapes = k.Shapes
	if d, ok := domains[c.Op]; ok && k.Op != nil {
		q.Domain = &d
	}
	return q
}
