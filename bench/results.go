package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// results holds the replies of the measured servers, stored in out/results.json.
type results struct {
	Machine  string            `json:"machine"`
	Date     string            `json:"date"`
	Commit   string            `json:"commit"`
	Command  string            `json:"command"`
	Quick    bool              `json:"quick"`
	Versions map[string]string `json:"versions"`
	Cells    map[string]*line  `json:"cells"`
}

// line is one cell with the timings of all implementations.
type line struct {
	Cell cell              `json:"cell"`
	By   map[string]*times `json:"by"`
}

// times is the samples of one server for one cell, from all rounds.
type times struct {
	Form string    `json:"form"`
	Ns   []float64 `json:"ns"`
}

func (t *times) median() float64 { return quantile(t.Ns, 0.5) }
func (t *times) q25() float64    { return quantile(t.Ns, 0.25) }

func load(file string) (*results, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return &results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &results{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func (r *results) save(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.write(f)
}

func (r *results) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// describe records the machine and the versions of this run. It does not mix results of
// different machines or versions.
func (r *results) describe(root string, quick bool) error {
	machine := machineName()
	versions := map[string]string{"Go": runtime.Version()}
	out, err := exec.Command(python(root), filepath.Join(root, "bench", "peers", "peers.py"), "versions").Output()
	if err != nil {
		return fmt.Errorf("the peers do not answer (%w): bench/peers.sh installs them", err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, version, _ := strings.Cut(l, ": ")
		versions[name] = version
	}
	if r.Cells == nil || r.Machine != machine || fmt.Sprint(r.Versions) != fmt.Sprint(versions) {
		*r = results{Cells: map[string]*line{}}
	}
	commit, _ := exec.Command("git", "-C", root, "rev-parse", "--short", "HEAD").Output()
	r.Machine, r.Versions = machine, versions
	r.Commit = strings.TrimSpace(string(commit))
	r.Date = time.Now().UTC().Format("2006-01-02")
	r.Command = "make bench-peers"
	r.Quick = quick
	return nil
}

// machineName returns the name of the processor, its number of cores and the memory of the machine.
func machineName() string {
	name := runtime.GOARCH
	memory := ""
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		field := map[string]string{}
		for _, l := range strings.Split(string(data), "\n") {
			if k, v, ok := strings.Cut(l, ":"); ok {
				field[strings.TrimSpace(k)] = strings.TrimSpace(v)
			}
		}
		if field["model name"] != "" {
			name = fmt.Sprintf("%s (family %s, model %s)", field["model name"], field["cpu family"], field["model"])
		}
	}
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(data), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB of memory", (kib+mib/2)/mib)
		}
	}
	return fmt.Sprintf("%s, %d processors%s, %s/%s", name, runtime.NumCPU(), memory, runtime.GOOS, runtime.GOARCH)
}

func (r *results) clear(c cell) {
	r.Cells[c.key()] = &line{Cell: c, By: map[string]*times{}}
}

func (r *results) add(c cell, server string, a reply) {
	by := r.Cells[c.key()].By
	if by[server] == nil {
		by[server] = &times{Form: a.Form}
	}
	by[server].Ns = append(by[server].Ns, a.Ns...)
}

// of returns the times of a server for a cell, or nil.
func (r *results) of(c cell, server string) *times {
	if l := r.Cells[c.key()]; l != nil {
		return l.By[server]
	}
	return nil
}

// ratio returns how many times as long as rayo the server took, by the medians
// and by the first quartiles; ok is false if either was not measured.
func (r *results) ratio(c cell, server string) (median, q25 float64, ok bool) {
	a, b := r.of(c, "rayo"), r.of(c, server)
	if a == nil || b == nil {
		return 0, 0, false
	}
	return b.median() / a.median(), b.q25() / a.q25(), true
}

// missing counts the cells of a full run that have no result of rayo.
func (r *results) missing() int {
	n := 0
	for _, c := range cells(nil, nil) {
		if r.of(c, "rayo") == nil {
			n++
		}
	}
	return n
}
