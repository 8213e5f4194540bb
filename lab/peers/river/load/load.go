package main

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
)

// The size in bytes of a message without padding; its time has sixteen digits.
const emptyMessage = len(`{"at":1763737000000000,"pad":""}`)

// The batch size that `river bench` uses.
const seedBatch = 5_000

// Message is the payload: River writes it as `{"at":…,"pad":"…"}`.
type Message struct {
	At  int64  `json:"at"`
	Pad string `json:"pad"`
}

func (Message) Kind() string { return "message" }

// The letters are random, because repetition would be compressed.
var pool = func() string {
	bytes := make([]byte, 768<<10)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(bytes)
}()

// padding returns a random piece of the letters.
func padding(payload int) string {
	need := payload - emptyMessage
	at := rand.IntN(len(pool))
	text := pool[at:min(len(pool), at+need)]
	for len(text) < need {
		text += pool[:min(len(pool), need-len(text))]
	}
	return text
}

type handler struct {
	river.WorkerDefaults[Message]
	tally *tally
}

func (h *handler) Work(_ context.Context, job *river.Job[Message]) error {
	h.tally.receive(job.Args.At)
	return nil
}

// seed sends the backlog, one batch after another. Concurrent batches were no faster on two cores.
func (c *contender) seed(ctx context.Context) error {
	for left := c.backlog; left > 0; left -= seedBatch {
		if _, err := c.client.InsertManyFast(ctx, c.messages(min(left, seedBatch), time.Now())); err != nil {
			return err
		}
	}
	return nil
}

// produce starts the producers. A producer begins no call after the end of the clock.
func (c *contender) produce(ctx context.Context, clock *clock) {
	if c.rate == 0 {
		return
	}
	next := c.closedLoop(clock)
	if c.rate > 0 {
		next = c.openLoop(clock)
	}
	for range c.producers {
		go func() {
			for at, ok := next(); ok && ctx.Err() == nil; at, ok = next() {
				called := time.Now()
				// The call may finish after the end of the run. Otherwise River would log its cancellation as
				// an error.
				if err := c.send(context.WithoutCancel(ctx), at); err != nil {
					c.fail(err)
					return
				}
				c.tally.sent(called)
			}
		}()
	}
}

// A schedule waits until the next call is due and returns that time, or false if there is no next call.
type schedule func() (time.Time, bool)

// closedLoop returns a schedule whose next call is due as soon as the previous call is answered.
func (c *contender) closedLoop(clock *clock) schedule {
	return func() (time.Time, bool) {
		now := time.Now()
		return now, now.Before(clock.end)
	}
}

// openLoop returns a schedule whose calls are due at a steady rate. The next free producer takes the next call, even if it is late.
func (c *contender) openLoop(clock *clock) schedule {
	var taken atomic.Int64
	return func() (time.Time, bool) {
		message := (taken.Add(1) - 1) * int64(c.batch)
		due := clock.start.Add(time.Duration(float64(message) / c.rate * float64(time.Second)))
		if !due.Before(clock.end) {
			return due, false
		}
		time.Sleep(time.Until(due))
		return due, time.Now().Before(clock.end)
	}
}

func (c *contender) send(ctx context.Context, at time.Time) error {
	if c.batch == 1 {
		_, err := c.client.Insert(ctx, Message{At: at.UnixMicro(), Pad: padding(c.plan.payload)}, nil)
		return err
	}
	_, err := c.client.InsertManyFast(ctx, c.messages(c.batch, at))
	return err
}

func (c *contender) messages(count int, at time.Time) []river.InsertManyParams {
	params := make([]river.InsertManyParams, count)
	for i := range params {
		params[i].Args = Message{At: at.UnixMicro(), Pad: padding(c.plan.payload)}
	}
	return params
}
