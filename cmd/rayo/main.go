// Command rayo shows the devices of this machine and their speed, and runs models.
//
//	rayo devices        the devices found, those refused, and why
//	rayo ops [name]     the catalogue of operations
//	rayo bench          the speed of this machine, beside its limits
//	rayo tune           the fastest way for each operation, kept
//	rayo monitor        what NVIDIA's devices are doing
//	rayo ptx            the assembly of NVIDIA's GPUs: list, show, check, run
//	rayo wgsl           the kernels of every other GPU: list, show, check
//	rayo gguf           models in GGUF files: inspect, verify, quantize, split, compare
//	rayo run            a conversation with a language model
//	rayo serve          a language model over HTTP, with OpenAI's interface
//	rayo embed          embeddings of texts by a model
//	rayo llm-bench      the speed of a language model
//	rayo demo           a photograph, a matrix product and a chain, all checked
//	rayo version        what this command was built from, and the drivers that it finds
//	rayo completion     a script by which a shell completes command lines
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
	GGUF     ggufCmd     `cmd:"" name:"gguf" help:"Inspect, check, change and quantize models in GGUF files."`
	Run      runCmd      `cmd:"" help:"Talk to a language model in a GGUF file."`
	Serve    serveCmd    `cmd:"" help:"Serve a language model over HTTP, with OpenAI's interface and a page to chat."`
	Embed    embedCmd    `cmd:"" help:"Write the embeddings of texts by a model, as JSON."`
	LLMBench llmBenchCmd `cmd:"" name:"llm-bench" help:"Measure a language model: tokens a second of prompts and of answers."`
	Demo     demoCmd     `cmd:"" help:"Run real work on the best device, check every result, and write a picture."`

	Version    versionCmd    `cmd:"" help:"Print the version of this command and of the drivers that it finds."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

const description = `Numeric work on whatever this machine has.

RAYO_DEVICE=cpu:0 chooses a device, RAYO_THREADS=2 bounds the CPU's threads, and
RAYO_SIMD=avx2 or generic its instructions.`

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
		fmt.Fprintf(errs, "rayo: %v\nrayo --help shows what there is.\n", err)
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
