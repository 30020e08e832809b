package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rayo-go/rayo/llm/serve"
)

type serveCmd struct {
	modelFlags `embed:""`
	draftFlags `embed:""`
	Listen     string        `default:"localhost:8080" help:"Address and port. Use 0.0.0.0:8080 to accept requests from other machines."`
	Name       string        `placeholder:"NAME" help:"Model name in answers; by default the name in the file."`
	Parallel   int           `default:"4" help:"Number of texts generated at once; other requests wait."`
	Waiting    int           `default:"64" help:"Maximum number of requests in progress or waiting; others are refused."`
	Keys       string        `type:"existingfile" placeholder:"FILE" help:"A file with one API key on each line; each request under /v1 must have one of them."`
	Grace      time.Duration `default:"10s" help:"Time for answers to finish after an interrupt."`
}

func (c *serveCmd) Run(a *app) error {
	var keys []string
	if c.Keys != "" {
		b, err := os.ReadFile(c.Keys)
		if err != nil {
			return err
		}
		if keys = strings.Fields(string(b)); len(keys) == 0 {
			return fmt.Errorf("the file %s has no keys", c.Keys)
		}
	}
	if c.Parallel < 1 {
		return fmt.Errorf("--parallel is %d: expected 1 or more", c.Parallel)
	}
	as, draft, dev, err := c.openWith(a.ctx, c.Parallel, &c.draftFlags)
	if err != nil {
		return err
	}
	defer dev.Close()
	if draft != nil {
		defer draft.Close()
	}
	defer as.Close()
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	// Requests are cancelled at the end of the grace period.
	base, cut := context.WithCancel(context.WithoutCancel(a.ctx))
	defer cut()
	s := &http.Server{Handler: serve.New(as, serve.Options{Name: c.Name, Keys: keys, Waiting: c.Waiting}),
		BaseContext: func(net.Listener) context.Context { return base }, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(a.err, "%s on %v: http://%v (chat), http://%v/v1 (OpenAI's interface)\n", plain(as.Name()), dev, l.Addr(), l.Addr())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-a.ctx.Done():
	}
	fmt.Fprintf(a.err, "ending; answers have %v\n", c.Grace)
	ctx, done := context.WithTimeout(base, c.Grace)
	defer done()
	if err := s.Shutdown(ctx); err != nil {
		cut()
		_ = s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
