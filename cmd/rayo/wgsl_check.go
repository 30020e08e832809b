package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rayo-go/rayo/wgsl"
)

type wgslCheckCmd struct {
	Name        string `arg:"" help:"A WGSL file, or a kernel as in rayo wgsl show."`
	Entry       string `placeholder:"NAME" help:"Entry point of the file, if it has several."`
	wgslTarget  `embed:""`
	wgslRequest `embed:""`
}

// wgslCompilers are the commands that compile a text, with arguments that prevent an output
// file. The port of naga to Go is missing because it accepts the same texts as naga.
var wgslCompilers = []struct {
	consumer wgsl.Consumer
	command  []string
}{
	{wgsl.Naga, []string{"naga"}},
	{wgsl.Tint, []string{"tint", "--format", "wgsl", "-o", os.DevNull}},
}

// Run prints the bindings of a file and compiles it with the installed compilers. Without a file it
// compiles the kernels of an operation, printed for each compiler.
func (c *wgslCheckCmd) Run(a *app) error {
	text, err := readText(c.Name)
	file := err == nil
	if !file && (!errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(c.Name, ".wgsl") || strings.ContainsRune(c.Name, filepath.Separator)) {
		return err
	}
	line := func(who, what string) { fmt.Fprintf(a.out, "%-7s %s\n", who, what) }
	var texts func(to wgsl.Consumer) ([]string, error)
	if file {
		s := wgsl.Source{Text: text, Entry: c.Entry, Name: filepath.Base(c.Name)}
		i, err := s.Interface()
		if err != nil {
			line("rayo", err.Error())
			return errFound
		}
		for _, l := range interfaceOf(i) {
			line("rayo", l)
		}
		k := s.Kernel()
		if err := k.Err(); err != nil {
			line("rayo", err.Error())
			return errFound
		}
		texts = func(to wgsl.Consumer) ([]string, error) {
			t, err := textOf(k, to)
			return []string{t}, err
		}
	} else {
		texts = func(to wgsl.Consumer) ([]string, error) {
			t := c.wgslTarget
			t.Consumer = to.String()
			all, err := c.print(a, c.Name, &t)
			var s []string
			for _, k := range all {
				s = append(s, k.text.Text)
			}
			return s, err
		}
		if _, err := texts(wgsl.Naga); err != nil {
			return err
		}
	}
	return compileAll(a, texts, line)
}

// compileText runs a compiler on a text, and returns its messages if it rejects the text.
func compileText(a *app, command []string, text string) (string, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "rayo-wgsl")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kernel.wgsl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(a.ctx, path, append(command[1:len(command):len(command)], file)...).CombinedOutput()
	if a.ctx.Err() != nil {
		return "", a.ctx.Err()
	}
	if err == nil {
		return "", nil
	}
	message := strings.TrimSpace(strings.ReplaceAll(string(out), dir+string(filepath.Separator), ""))
	if message == "" {
		message = err.Error()
	}
	return message, nil
}

// compileAll compiles texts with the installed compilers, and prints the results by line.
func compileAll(a *app, texts func(to wgsl.Consumer) ([]string, error), line func(who, what string)) error {
	mistakes := 0
	for _, x := range wgslCompilers {
		all, err := texts(x.consumer)
		if err != nil {
			return err
		}
		accepted := 0
		for _, t := range all {
			message, err := compileText(a, x.command, t)
			if errors.Is(err, exec.ErrNotFound) {
				line(x.command[0], "is not installed")
				break
			}
			if err != nil {
				return err
			}
			if message == "" {
				accepted++
				continue
			}
			mistakes++
			for _, l := range strings.Split(message, "\n") {
				line(x.command[0], l)
			}
		}
		if accepted > 0 && accepted == len(all) {
			line(x.command[0], "accepted")
		}
	}
	if mistakes > 0 {
		return errFound
	}
	return nil
}
