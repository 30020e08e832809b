package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

type ptxCheckCmd struct {
	Name       string `arg:"" help:"A PTX file, or a kernel as in rayo ptx show."`
	ptxTarget  `embed:""`
	ptxRequest `embed:""`
}

// maxSource is the largest size in bytes of a file that the command reads.
const maxSource = 64 << 20

// errFound is the error of a command that has found and listed mistakes.
var errFound = errors.New("there are mistakes")

// Run checks the PTX in three ways, as far as possible: with the checks of package ptx for kernels
// that are built here, with the emulator's parser, and with ptxas if it is installed.
func (c *ptxCheckCmd) Run(a *app) error {
	text, err := readText(c.Name)
	mistakes := 0
	report := func(who string, err error, fine string) {
		if err == nil {
			fmt.Fprintf(a.out, "%-9s %s\n", who, fine)
			return
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintf(a.out, "%-9s %s\n", who, line)
			mistakes++
		}
	}
	var em *emu.Module
	switch {
	case err == nil:
		if em, err = emu.Parse(text); err == nil {
			err = em.Err()
		}
		report("emulator", err, kernelNames(em))
	case !errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(c.Name, ".ptx") || strings.ContainsRune(c.Name, filepath.Separator) && !strings.HasPrefix(c.Name, "sample/"):
		return err
	default:
		m, _, err := c.module(c.Name, c.ptxTarget, true)
		if err != nil {
			return err
		}
		report("verify", m.Verify(), "nothing found")
		if text, err = m.PTX(); err != nil {
			return err
		}
		if em, err = emu.Load(m); err == nil {
			err = em.Err()
		}
		report("emulator", err, kernelNames(em))
	}
	log, err := assemble(a, text)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(a.out, "ptxas     is not installed")
	} else {
		report("ptxas", err, log)
	}
	if mistakes > 0 {
		return errFound
	}
	return nil
}

// readText reads a text file.
func readText(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxSource:
		return "", fmt.Errorf("%s is too large: at most %d MiB are read", name, maxSource>>20)
	case bytes.IndexByte(b, 0) >= 0:
		return "", fmt.Errorf("%s is not text", name)
	}
	return string(b), nil
}

func kernelNames(m *emu.Module) string {
	if m == nil {
		return ""
	}
	var s []string
	for _, k := range m.Kernels() {
		s = append(s, fmt.Sprintf("%s, %d instructions", k.Name(), k.Instructions()))
	}
	if s == nil {
		return "no kernels"
	}
	return strings.Join(s, "; ")
}

var (
	ptxTargetLine = regexp.MustCompile(`(?m)^\s*\.target\s+(sm_\w+)`)
	ptxasUsage    = regexp.MustCompile(`(?s)entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers`)
)

// assemble runs ptxas on the text and returns its report on registers.
func assemble(a *app, text string) (string, error) {
	path, err := exec.LookPath("ptxas")
	if err != nil {
		return "", err
	}
	target := ptx.SM90a.String()
	if m := ptxTargetLine.FindStringSubmatch(text); m != nil {
		target = m[1]
	}
	dir, err := os.MkdirTemp("", "rayo-ptx")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ptx")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(a.ctx, path, "-v", "-arch="+target, "-o", os.DevNull, file).CombinedOutput()
	log := strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(string(out), file+", ", ""), file, "the text"))
	if a.ctx.Err() != nil {
		return "", a.ctx.Err()
	}
	if err != nil {
		var lines []string
		for _, l := range strings.Split(log, "\n") {
			l = strings.TrimPrefix(strings.TrimSpace(l), "ptxas ")
			if l != "" && !strings.HasPrefix(l, "info") && !strings.HasPrefix(l, "fatal") {
				lines = append(lines, l)
			}
		}
		if lines == nil {
			lines = []string{fmt.Sprintf("%v: %s", err, log)}
		}
		return "", errors.New(strings.Join(lines, "\n"))
	}
	var s []string
	for _, m := range ptxasUsage.FindAllStringSubmatch(log, -1) {
		spills := ""
		if m[3] != "0" {
			spills = ", " + m[3] + " bytes spilled"
		}
		s = append(s, fmt.Sprintf("%s, %s registers%s", m[1], m[4], spills))
	}
	if s == nil {
		return "assembled", nil
	}
	return strings.Join(s, "; "), nil
}
