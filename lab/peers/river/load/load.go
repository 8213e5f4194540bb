package main

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
)

// The bytes of a message with no padding, its time of sixteen digits.
const emptyMessage = len(`{"at":1763737000000000,"pad":""}`)

// What `river bench` inserts at a time.
const seedBatch = 5_000

// Message is the payload: River writes it as `{"at":…,"pad":"…"}`.
type Message struct {
	At  int64  `json:"at"`
	Pad string `json:"pad"`
}

func (Message) Kind() string { return "message" }

// Letters without a pattern: what repeats itself would be compressed.
var pool = func() string {
	bytes := make([]byte, 768<<10)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(bytes)
}()

// padding is another piece of them each time.
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

// seed sends the backlog, one batch after the other: on two cores several at a time were no faster.
func (c *contender) seed(ctx context.Context) error {
	for left := c.backlog; left > 0; left -= seedBatch {
		if _, err := c.client.InsertManyFast(ctx, c.messages(min(left, seedBatch), time.Now())); err != nil {
			return err
		}
	}
	return nil
}

// produce starts the producers. None begins a call after the end of the clock.
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
				// A call under way at the end of the run is not cut off: River would log that as an error.
				if err := c.send(context.WithoutCancel(ctx), at); err != nil {
					c.fail(err)
					return
				}
				c.tally.sent(called)
			}
		}()
	}
}

// A schedule says when the next call's messages are to be sent, once that time has come; or that there is no next call.
type schedule func() (time.Time, bool)

// closedLoop: the next call is due when the last one was answered.
func (c *contender) closedLoop(clock *clock) schedule {
	return func() (time.Time, bool) {
		now := time.Now()
		return now, now.Before(clock.end)
	}
}

// openLoop: calls are due at a steady rate, and whichever producer is free takes the next, late or not.
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
