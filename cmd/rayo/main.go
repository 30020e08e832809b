// Command rayo shows the devices of this machine and their speed, and runs models.
//
//	rayo devices        list the devices found, and why others were refused
//	rayo ops [name]     list the operations, or show one
//	rayo bench          measure operations, and compare them with the limits of the machine
//	rayo tune           measure the kernel variants of each operation and store the fastest
//	rayo monitor        show utilisation, memory, power and clocks of NVIDIA devices
//	rayo ptx            list, show, check and run PTX, the assembly language of NVIDIA GPUs
//	rayo wgsl           list, show and check kernels in WGSL, for all other GPUs
//	rayo gguf           inspect, verify, quantise, split and compare models in GGUF files
//	rayo run            talk to a language model
//	rayo serve          serve a language model over HTTP, with OpenAI's interface
//	rayo embed          write the embeddings of texts by a model
//	rayo llm-bench      measure the speed of a language model
//	rayo demo           process a photograph, multiply matrices, and check the results
//	rayo version        print the version of the command and of the drivers that it finds
//	rayo completion     print a completion script for a shell
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

// commandLine is the command line. A subcommand is a struct with a method Run.
type commandLine struct {
	Devices  devicesCmd  `cmd:"" help:"List the devices found, and the reasons why others were refused."`
	Ops      opsCmd      `cmd:"" help:"List the operations, or show one in full."`
	Bench    benchCmd    `cmd:"" help:"Measure operations on this machine, and compare them with the limits of memory and arithmetic."`
	Tune     tuneCmd     `cmd:"" help:"Measure the kernel variants of each operation and store the fastest."`
	Monitor  monitorCmd  `cmd:"" help:"Show utilisation, memory, power and clocks of NVIDIA devices."`
	PTX      ptxCmd      `cmd:"" name:"ptx" help:"Show, check and run PTX, the assembly language of NVIDIA GPUs."`
	WGSL     wgslCmd     `cmd:"" name:"wgsl" help:"Show and check kernels in WGSL, the shading language of WebGPU."`
	GGUF     ggufCmd     `cmd:"" name:"gguf" help:"Inspect, check, change and quantise models in GGUF files."`
	Run      runCmd      `cmd:"" help:"Talk to a language model in a file."`
	Serve    serveCmd    `cmd:"" help:"Serve a language model over HTTP, with OpenAI's interface and a page to chat."`
	Embed    embedCmd    `cmd:"" help:"Write the embeddings of texts by a model, as JSON."`
	LLMBench llmBenchCmd `cmd:"" name:"llm-bench" help:"Measure a language model: tokens a second of prompts and of answers."`
	Demo     demoCmd     `cmd:"" help:"Run real work on the best device, check every result, and write a picture."`

	Version    versionCmd    `cmd:"" help:"Print the version of this command and of the drivers that it finds."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

const description = `Show the devices of this machine and their speed, and run language models.

RAYO_DEVICE=cpu:0 chooses a device, RAYO_THREADS=2 limits the threads of the CPU,
and RAYO_SIMD=avx2 or RAYO_SIMD=generic limits its instruction set.`

// app is the environment of a subcommand.
type app struct {
	ctx      context.Context
	out, err io.Writer
	commands *kong.Node // all commands
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process, even if it waits, for example for a file
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// printer records the first error of a write, so that subcommands need not check writes.
type printer struct {
	io.Writer
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// The exit codes.
const (
	exitOK    = 0
	exitFail  = 1 // the command could not do its work, or a check failed
	exitUsage = 2 // the command line is wrong

	exitInterrupted = 130 // the exit code of a program that SIGINT ends
)

// misused returns the command in which the parser found a mistake, and what its help lists.
func misused(err error) (command, list string) {
	command, list = "rayo", "the commands"
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return command, list
	}
	if n := p.Context.Selected(); n != nil {
		command += " " + n.Path()
		if len(n.Children) == 0 {
			list = "its arguments and flags"
		}
	}
	return command, list
}

// exit is the value of the panic by which kong ends the program. run recovers it.
type exit int

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			c, ok := p.(exit)
			if !ok {
				panic(p)
			}
			code = int(c)
		}
	}()
	var g commandLine
	k, err := kong.New(&g, kong.Name("rayo"), kong.Description(description), kong.Writers(out, errs),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(c int) { panic(exit(c)) }))
	if err != nil {
		fmt.Fprintln(errs, "rayo: BUG:", err)
		return exitFail
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	c, err := k.Parse(args)
	if err != nil {
		command, list := misused(err)
		fmt.Fprintf(errs, "%s: %v\nRun %[1]s --help for a list of %[3]s.\n", command, err, list)
		return exitUsage
	}
	w := &printer{Writer: out}
	err = c.Run(&app{ctx, w, errs, k.Model.Node})
	if err == nil {
		err = w.err
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "rayo: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintf(errs, "rayo: %v\n", err)
	}
	return exitFail
}
