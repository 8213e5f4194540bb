// This program runs River for the checker, through its documented calls, in the protocol of
// ../../README.md. It uses JobTimeout, RescueStuckJobsAfter, and JobCompleteTx if there is an
// effect.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"lab/river/peer"
)

const (
	exactQueue  = "exact"
	workQueue   = "work"
	slots       = 4
	exactSlots  = 2
	connections = 8
	retryAfter  = 200 * time.Millisecond
	stopWithin  = 10 * time.Second
)

// Work is a message without an effect; Exact is a message whose effect commits with its completion.
type Work struct {
	Text string `json:"text"`
}
type Exact struct {
	Text string `json:"text"`
}

func (Work) Kind() string  { return workQueue }
func (Exact) Kind() string { return exactQueue }

// payload returns the text of a message: the number and a filling derived from it.
func payload(tag uint64) string {
	filling := tag % 90
	if tag%61 == 0 {
		filling = 5_000
	}
	return fmt.Sprintf("%d:%s", tag, strings.Repeat("x", int(filling)))
}

func tagOf(text string) uint64 {
	number, _, _ := strings.Cut(text, ":")
	if tag, err := strconv.ParseUint(number, 10, 64); err == nil && payload(tag) == text {
		return tag
	}
	return 0
}

type user struct {
	pool     *pgxpool.Pool
	history  *history
	lease    time.Duration
	attempts int
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pool, err := peer.Connect(ctx, os.Getenv("RIVAL_URL"), connections)
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(os.Getenv("RIVAL_LEASE_MS") + "ms")
	if err != nil {
		return err
	}
	attempts, err := strconv.Atoi(os.Getenv("RIVAL_ATTEMPTS"))
	if err != nil {
		return err
	}
	part := os.Getenv("RIVAL_PART")
	if part == "install" {
		return install(ctx, pool, lease, attempts)
	}
	history, err := newHistory(os.Getenv("RIVAL_HISTORY"))
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stopped)
	}()
	u := &user{pool: pool, history: history, lease: lease, attempts: attempts}
	if part == "produce" {
		nr, err := strconv.ParseUint(os.Getenv("RIVAL_NR"), 10, 64)
		if err != nil {
			return err
		}
		return u.produce(ctx, nr, stopped)
	}
	return u.consume(ctx, stopped)
}

// timeout returns a handler's time limit. It is shorter than the time after which the job counts as
// stuck, as River requires.
func timeout(lease time.Duration) time.Duration { return lease * 8 / 10 }

func install(ctx context.Context, pool *pgxpool.Pool, lease time.Duration, attempts int) error {
	if err := peer.Migrate(ctx, pool); err != nil {
		return err
	}
	settings := fmt.Sprintf("RescueStuckJobsAfter %v, JobTimeout %v, MaxAttempts %d, a RetryPolicy of %v; per process MaxWorkers %d, and %d that "+
		"complete by JobCompleteTx; handlers heed their context; all else default (the rescuer looks every 30 s)",
		lease, timeout(lease), attempts, retryAfter, slots, exactSlots)
	return json.NewEncoder(os.Stdout).Encode(said{"version": peer.Version(), "settings": settings})
}

func (u *user) produce(ctx context.Context, nr uint64, stopped <-chan struct{}) error {
	client, err := river.NewClient(riverpgxv5.New(u.pool), &river.Config{})
	if err != nil {
		return err
	}
	for next := nr * 1_000_000; ; {
		next++
		queue, n := workQueue, uint64(1)
		if next%3 == 0 {
			queue = exactQueue
		}
		if next%5 == 0 {
			n = 5
		}
		tags, inserts := []uint64{}, []river.InsertManyParams{}
		for tag := next; tag < next+n; tag++ {
			tags = append(tags, tag)
			var args river.JobArgs = Work{payload(tag)}
			if queue == exactQueue {
				args = Exact{payload(tag)}
			}
			opts := &river.InsertOpts{Queue: queue, MaxAttempts: u.attempts}
			inserts = append(inserts, river.InsertManyParams{Args: args, InsertOpts: opts})
		}
		next += n - 1
		op := u.history.invoked(said{"verb": "enqueue", "queue": queue, "tags": tags})
		if ids, err := insert(ctx, client, inserts); err != nil {
			u.history.say(op, "unknown", err.Error())
		} else {
			u.history.say(op, "ok", said{"ids": ids})
		}
		select {
		case <-stopped:
			return nil
		case <-time.After(u.lease * time.Duration(n) / 40):
		}
	}
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], inserts []river.InsertManyParams) ([]int64, error) {
	if len(inserts) == 1 {
		one, err := client.Insert(ctx, inserts[0].Args, inserts[0].InsertOpts)
		if err != nil {
			return nil, err
		}
		return []int64{one.Job.ID}, nil
	}
	many, err := client.InsertMany(ctx, inserts)
	ids := []int64{}
	for _, one := range many {
		ids = append(ids, one.Job.ID)
	}
	return ids, err
}

type soon struct{}

// NextRetry returns a time that is soon enough for a run of minutes.
func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(retryAfter) }

func (u *user) consume(ctx context.Context, stopped <-chan struct{}) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Work]) error {
		return u.work(ctx, job.JobRow, job.Args.Text, func(int64) error { return nil })
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Exact]) error {
		return u.work(ctx, job.JobRow, job.Args.Text, func(op int64) error { return u.complete(ctx, job, op) })
	}))
	client, err := river.NewClient(riverpgxv5.New(u.pool), &river.Config{
		JobTimeout:           timeout(u.lease),
		MaxAttempts:          u.attempts,
		Queues:               map[string]river.QueueConfig{workQueue: {MaxWorkers: slots}, exactQueue: {MaxWorkers: exactSlots}},
		RescueStuckJobsAfter: u.lease,
		RetryPolicy:          soon{},
		Workers:              workers,
	})
	if err != nil {
		return err
	}
	// The start is repeated while there is no connection, as a supervisor would do.
	for err := client.Start(ctx); err != nil; err = client.Start(ctx) {
		fmt.Fprintln(os.Stderr, "not yet:", err)
		time.Sleep(500 * time.Millisecond)
	}
	<-stopped
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	return client.Stop(ctx)
}

// work writes when the handler begins and ends. River's table shows the effect of the handler's
// outcome.
func (u *user) work(ctx context.Context, job *rivertype.JobRow, text string, effect func(op int64) error) error {
	tag := tagOf(text)
	call := said{"verb": "handle", "queue": job.Queue, "named": [][]int64{{job.ID, int64(job.Attempt)}}, "tags": []uint64{tag}, "ms": u.lease.Milliseconds()}
	if job.AttemptedAt != nil {
		call["since"] = job.AttemptedAt.UnixMicro()
	}
	op := u.history.invoked(call)
	err := u.sleepAndFail(ctx, tag, job)
	if err == nil {
		err = effect(op)
	}
	if err != nil {
		u.history.say(op, "failed", err.Error())
	} else {
		u.history.say(op, "ok", said{})
	}
	return err
}

func (u *user) sleepAndFail(ctx context.Context, tag uint64, job *rivertype.JobRow) error {
	lasts, fails := time.Duration(5+tag%25)*time.Millisecond, false
	switch kind := tag % 100; {
	case kind < 3:
		fails = job.Queue == workQueue
	case kind < 9:
		fails = job.Queue == workQueue && job.Attempt == 1
	case kind < 15 && job.Attempt == 1:
		lasts, fails = u.lease*3/2, kind >= 12 && job.Queue == workQueue
	case kind < 15 && job.Attempt == 2:
		lasts = u.lease * 7 / 10
	case kind >= 15 && kind < 25:
		lasts = u.lease * 3 / 5
	}
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if fails {
		return errors.New("it failed")
	}
	return nil
}

// complete commits the effect with the job's completion.
func (u *user) complete(ctx context.Context, job *river.Job[Exact], op int64) error {
	tx, err := u.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	by := fmt.Sprintf("%s:%d", u.history.process, op)
	if _, err := tx.Exec(ctx, "insert into ledger (tag, op) values ($1, $2)", int64(tagOf(job.Args.Text)), by); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
