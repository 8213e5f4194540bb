package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
)

// These are the settings of `river bench`. Its source has these numbers, and its documentation the
// 2,000 workers.
const (
	benchWorkers      = 2_000
	benchCooldown     = 2 * time.Millisecond
	benchPollInterval = 20 * time.Millisecond
)

// plan contains the settings that the runner requests.
type plan struct {
	url, kind, wait                               string
	payload, batch, producers, consumers, backlog int
	rate                                          float64 // messages per second; below zero: as fast as they are answered
	seconds                                       time.Duration
}

func readPlan() (plan, error) {
	var failed error
	number := func(name string) float64 {
		n, err := strconv.ParseFloat(os.Getenv(name), 64)
		if err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
		}
		return n
	}
	p := plan{
		url:       os.Getenv("BENCH_URL"),
		kind:      os.Getenv("BENCH_CASE"),
		wait:      os.Getenv("BENCH_WAIT"),
		payload:   int(number("BENCH_PAYLOAD")),
		batch:     int(number("BENCH_BATCH")),
		producers: int(number("BENCH_PRODUCERS")),
		consumers: int(number("BENCH_CONSUMERS")),
		backlog:   int(number("BENCH_BACKLOG")),
		rate:      -1,
		seconds:   time.Duration(number("BENCH_SECONDS") * float64(time.Second)),
	}
	if os.Getenv("BENCH_RATE") != "max" {
		p.rate = number("BENCH_RATE")
	}
	if p.kind != "send" && p.kind != "drain" && p.kind != "cycle" {
		failed = fmt.Errorf("BENCH_CASE: %q is none of send, drain and cycle", p.kind)
	}
	if p.payload < emptyMessage {
		failed = fmt.Errorf("BENCH_PAYLOAD: a message has at least %d bytes", emptyMessage)
	}
	return p, failed
}

// config returns the settings of River's benchmark for a client that works jobs, and River's
// defaults for a client that only inserts. Both use the defaults for retention, rescue, leader
// election and maintenance.
func (c *contender) config() *river.Config {
	config := &river.Config{Logger: slog.New(&logger{
		Handler: slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}),
		fail:    c.fail,
	})}
	if c.kind == "send" {
		return config
	}
	config.FetchCooldown = benchCooldown
	config.FetchPollInterval = c.pollInterval()
	config.PollOnly = c.wait == "poll"
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: c.queue()}
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, &handler{tally: c.tally})
	return config
}

func (c *contender) queue() river.QueueConfig {
	if c.consumers == 0 {
		return river.QueueConfig{MaxWorkers: benchWorkers}
	}
	return river.QueueConfig{MaxWorkers: c.consumers}
}

// pollInterval returns River's default interval if the client is to rely on notifications, and the
// interval of `river bench` otherwise.
func (c *contender) pollInterval() time.Duration {
	if c.wait == "notify" {
		return river.FetchPollIntervalDefault
	}
	return benchPollInterval
}

func (c *contender) settings() string {
	said := []string{fmt.Sprintf("pool %d", c.producers+ownConns)}
	if c.batch > 1 {
		said = append(said, "InsertManyFast")
	}
	if c.kind == "send" {
		return strings.Join(append(said, "insert-only client"), ", ")
	}
	how := "LISTEN/NOTIFY"
	if c.wait == "poll" {
		how = "PollOnly"
	}
	return strings.Join(append(said, fmt.Sprintf("MaxWorkers %d", c.queue().MaxWorkers), fmt.Sprintf("FetchCooldown %s", benchCooldown),
		fmt.Sprintf("FetchPollInterval %s", c.pollInterval()), how), ", ")
}

// logger fails the run on the first logged error. A client can only log errors of its background work, and a row with
// such an error would not show River's rate.
type logger struct {
	slog.Handler
	fail context.CancelCauseFunc
}

func (l *logger) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError {
		said := record.Message
		record.Attrs(func(attr slog.Attr) bool { said += ", " + attr.String(); return true })
		l.fail(fmt.Errorf("River logged an error: %s", said))
	}
	return l.Handler.Handle(ctx, record)
}
