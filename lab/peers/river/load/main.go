// This program runs River for the benchmark, through its documented calls. ../../README.md
// describes the protocol, and ../README.md the reason for each setting.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"lab/river/peer"
)

const (
	// The number of connections of a client that works jobs, in addition to one for each producer.
	ownConns = 5
	// Many jobs can be left at the end. After this time the process exits, although the client has not
	// stopped.
	stopWithin = 5 * time.Second
)

var errInputEnded = errors.New("standard input ended")

type contender struct {
	plan
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	tally  *tally
	// fail ends the run: it cancels the context, and main reports the cause.
	fail context.CancelCauseFunc
}

func main() {
	ctx, fail := context.WithCancelCause(context.Background())
	err := run(ctx, fail)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil && !errors.Is(err, errInputEnded) {
		say(line{"error": err.Error()})
		os.Exit(1)
	}
}

func run(ctx context.Context, fail context.CancelCauseFunc) error {
	plan, err := readPlan()
	if err != nil {
		return err
	}
	goes := listen(fail)
	c, err := open(ctx, fail, plan)
	if err != nil {
		return err
	}
	defer func() { c.stop(context.Cause(ctx)) }()
	quiet := c.tally.report()
	if err := c.prepare(ctx); err != nil {
		return err
	}
	say(line{"ready": line{"version": peer.Version(), "runtime": runtime.Version(), "settings": c.settings()}})

	select {
	case <-goes:
		if err := c.measure(ctx); err != nil {
			return err
		}
		quiet()
		c.tally.finish()
		<-ctx.Done()
	case <-ctx.Done():
	}
	return nil
}

// listen reports the arrival of `go`. It cancels the run when the input ends, which is the normal
// end after `done`.
func listen(fail context.CancelCauseFunc) <-chan struct{} {
	goes := make(chan struct{}, 1)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if lines.Text() == "go" {
				goes <- struct{}{}
			}
		}
		fail(errInputEnded)
	}()
	return goes
}

func open(ctx context.Context, fail context.CancelCauseFunc, plan plan) (*contender, error) {
	pool, err := peer.Connect(ctx, plan.url, plan.producers+ownConns)
	if err != nil {
		return nil, err
	}
	if err := peer.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	c := &contender{plan: plan, pool: pool, tally: newTally(plan), fail: fail}
	c.client, err = river.NewClient(riverpgxv5.New(pool), c.config())
	return c, err
}

// prepare does everything before the clock starts: it opens connections, runs a full cycle of one
// message, and sends the backlog.
func (c *contender) prepare(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	if c.kind != "send" {
		// The client has a separate context, because the end of ctx would be a hard stop.
		if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if _, err := c.client.Insert(ctx, Message{At: time.Now().UnixMicro(), Pad: padding(c.plan.payload)}, nil); err != nil {
		return err
	}
	if c.kind == "send" {
		return nil
	}
	select {
	case <-c.tally.warm:
	case <-ctx.Done():
		return nil
	}
	if c.backlog == 0 {
		return nil
	}
	// The client stays connected and warm, but without its queue, while the backlog is sent.
	if err := c.client.Queues().Remove(ctx, river.QueueDefault); err != nil {
		return err
	}
	return c.seed(ctx)
}

// connect opens a connection for each producer. It acquires all of them at the same time, because
// the pool would reuse a free one.
func (c *contender) connect(ctx context.Context) error {
	for range c.producers {
		conn, err := c.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	return nil
}

// measure returns when the time has run out, or when the backlog of a drain is empty.
func (c *contender) measure(ctx context.Context) error {
	clock := c.tally.begin(c.seconds)
	if c.kind != "send" && c.backlog > 0 {
		if err := c.client.Queues().Add(river.QueueDefault, c.queue()); err != nil {
			return err
		}
	}
	if c.kind != "drain" {
		c.produce(ctx, clock)
	}
	select {
	case <-time.After(time.Until(clock.end)):
	case <-c.tally.drained:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// stop stops the client softly: fetched jobs are worked and acknowledged, and no more are fetched.
// A failed run does not wait for the stop.
func (c *contender) stop(cause error) {
	if !errors.Is(cause, errInputEnded) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if err := c.client.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the client:", err)
	}
}
