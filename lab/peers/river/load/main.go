// River for the benchmark, by its documented calls. ../../README.md is the protocol, ../README.md says why each setting.
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
	// Connections of a client that works jobs, beside one for each producer.
	ownConns = 5
	// Jobs that are left over at the end are many: a stop that takes longer than this is left to the exit of the process.
	stopWithin = 5 * time.Second
)

var errInputEnded = errors.New("standard input ended")

type contender struct {
	plan
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	tally  *tally
	// fail ends the run: whatever is under way sees its context cancelled, and the cause is what main says.
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

// listen says when `go` came, and fails the run when the input ends: after `done` that is how a run ends well.
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

// prepare does all that comes before the clock: connections, a message on its whole way, the backlog.
func (c *contender) prepare(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	if c.kind != "send" {
		// Not ctx, whose end would be a hard stop.
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
	// The client stays up and warm without its queue while the backlog comes in.
	if err := c.client.Queues().Remove(ctx, river.QueueDefault); err != nil {
		return err
	}
	return c.seed(ctx)
}

// connect opens a connection for each producer, all at the same time: one that is free again would be used twice.
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

// measure returns when the clock has run out, or the backlog of a drain.
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

// stop is soft: what was fetched is worked and acknowledged, nothing more is fetched. A run that failed does not wait for it.
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
