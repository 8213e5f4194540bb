package main

import (
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

type line map[string]any

var saying sync.Mutex

// say writes a line of the protocol.
func say(l line) {
	saying.Lock()
	defer saying.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(l) // if the runner is gone, the input has also ended
}

type clock struct{ start, end time.Time }

// tally counts messages while the clock runs, and reports them.
type tally struct {
	plan
	clock          atomic.Pointer[clock] // nil until it runs
	sends          atomic.Int64
	receipts       atomic.Int64
	warm, drained  chan struct{}
	lastOfBacklog  time.Time // written before drained is closed
	mu             sync.Mutex
	microsToCounts map[int64]int64
}

func newTally(p plan) *tally {
	return &tally{plan: p, warm: make(chan struct{}, 1), drained: make(chan struct{}), microsToCounts: map[int64]int64{}}
}

func (t *tally) begin(seconds time.Duration) *clock {
	now := time.Now()
	clock := &clock{now, now.Add(seconds)}
	t.clock.Store(clock)
	return clock
}

func (t *tally) sent(called time.Time) {
	now := time.Now()
	if now.After(t.clock.Load().end) {
		return
	}
	t.sends.Add(int64(t.batch))
	if t.kind == "send" {
		t.latency(now.Sub(called))
	}
}

func (t *tally) receive(at int64) {
	now, clock := time.Now(), t.clock.Load()
	if clock == nil {
		select {
		case t.warm <- struct{}{}:
		default:
		}
		return
	}
	if now.After(clock.end) {
		return
	}
	count := t.receipts.Add(1)
	if t.kind == "cycle" {
		t.latency(now.Sub(time.UnixMicro(at)))
	}
	if t.kind == "drain" && count == int64(t.backlog) {
		t.lastOfBacklog = now
		close(t.drained)
	}
}

func (t *tally) latency(took time.Duration) {
	micros := threeDigits(max(took.Microseconds(), 0))
	t.mu.Lock()
	t.microsToCounts[micros]++
	t.mu.Unlock()
}

func threeDigits(micros int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		if micros/unit < 1000 {
			return micros / unit * unit
		}
	}
}

// report writes the progress every second until the caller calls quiet, because the contender must
// not be silent during a long backlog.
func (t *tally) report() (quiet func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				say(line{"progress": t.counts()})
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (t *tally) counts() line { return line{"sent": t.sends.Load(), "received": t.receipts.Load()} }

func (t *tally) finish() {
	clock := t.clock.Load()
	end := clock.end
	if !t.lastOfBacklog.IsZero() {
		end = t.lastOfBacklog
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.microsToCounts) > 0 {
		say(line{"latency": t.microsToCounts})
	}
	done := t.counts()
	done["seconds"] = end.Sub(clock.start).Seconds()
	say(line{"done": done})
}
