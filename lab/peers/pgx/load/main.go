// This program calls trunkline.enqueue through pgx, for the benchmark. Each process is one caller.
// ../../README.md describes the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

type line map[string]any

func say(l line) { _ = json.NewEncoder(os.Stdout).Encode(l) }

func main() {
	if err := run(context.Background()); err != nil {
		say(line{"error": err.Error()})
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	plan, err := readPlan()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, os.Getenv("BENCH_URL"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Prepare(ctx, "enqueue", "select trunkline.enqueue($1, $2)"); err != nil {
		return err
	}
	send := func(at time.Time) error {
		_, err := conn.Exec(ctx, "enqueue", "bench", message(at, plan.payload))
		return err
	}
	if err := send(time.Now()); err != nil {
		return err
	}
	say(line{"ready": line{"version": version(), "runtime": runtime.Version(), "settings": "a Conn with a prepared statement"}})
	input := bufio.NewScanner(os.Stdin)
	if !input.Scan() {
		return errors.New("standard input ended before go")
	}
	sent, latencies, err := measure(plan, send)
	if err != nil {
		return err
	}
	say(line{"latency": latencies})
	say(line{"done": line{"sent": sent, "received": 0, "seconds": plan.time.Seconds()}})
	for input.Scan() {
	}
	return nil
}

// measure sends until the time is over. It returns the number of messages, and how many calls took
// each number of microseconds.
func measure(plan plan, send func(time.Time) error) (int, map[int64]int, error) {
	start := time.Now()
	end := start.Add(plan.time)
	sent, latencies := 0, map[int64]int{}
	for {
		due := time.Now()
		if plan.rate > 0 {
			due = start.Add(time.Duration(float64(sent) / plan.rate * float64(time.Second)))
		}
		time.Sleep(min(time.Until(due), time.Until(end)))
		called := time.Now()
		if !called.Before(end) {
			return sent, latencies, nil
		}
		if err := send(due); err != nil {
			return 0, nil, err
		}
		if answered := time.Now(); answered.Before(end) {
			sent++
			latencies[threeDigits(answered.Sub(called).Microseconds())]++
		}
	}
}

func threeDigits(micros int64) int64 {
	unit := int64(1)
	for micros/unit >= 1000 {
		unit *= 10
	}
	return micros / unit * unit
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/jackc/pgx/v5" {
				return "pgx " + dep.Version[1:]
			}
		}
	}
	return "pgx"
}

type plan struct {
	payload int
	rate    float64 // messages per second; 0: as fast as they are answered
	time    time.Duration
}

func readPlan() (plan, error) {
	if name := os.Getenv("BENCH_CASE"); name != "send" {
		return plan{}, fmt.Errorf("no case %s", name)
	}
	var failed error
	number := func(name string) float64 {
		n, err := strconv.ParseFloat(os.Getenv(name), 64)
		failed = errors.Join(failed, err)
		return n
	}
	p := plan{payload: int(number("BENCH_PAYLOAD")), time: time.Duration(number("BENCH_SECONDS") * float64(time.Second))}
	if os.Getenv("BENCH_RATE") != "max" {
		p.rate = number("BENCH_RATE")
	}
	return p, failed
}
