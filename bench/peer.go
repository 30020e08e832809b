package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A peer is a process that answers requests. A signal stops it between requests, so
// that its threads do not disturb others by spinning.
type peer struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// startPeer runs the command, which serves on its standard input and output. The
// caller must lock its thread, because the process ends when the thread does.
func startPeer(name string, command ...string) (*peer, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &peer{name, cmd, in, bufio.NewReader(out)}, nil
}

// ask sends a request and waits for the reply. The process runs only during this time.
func (p *peer) ask(q request) (reply, error) {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return reply{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := json.NewEncoder(p.in).Encode(q); err != nil {
		return reply{}, fmt.Errorf("%s: %w", p.name, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return reply{}, fmt.Errorf("%s ended during %s: %w", p.name, q.key(), err)
	}
	var a reply
	if err := json.Unmarshal(line, &a); err != nil {
		return reply{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if a.Error != "" {
		return reply{}, fmt.Errorf("%s cannot measure %s: %s", p.name, q.key(), a.Error)
	}
	return a, p.cmd.Process.Signal(syscall.SIGSTOP)
}

func (p *peer) close() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
