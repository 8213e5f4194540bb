package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// history writes a line before each operation and a line after it, each in a single write.
type history struct {
	file    *os.File
	next    atomic.Int64
	process string
}

type said map[string]any

func newHistory(path string) (*history, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	process := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return &history{file: file, process: process}, err
}

func (h *history) invoked(call said) int64 {
	op := h.next.Add(1)
	h.say(op, "invoked", call)
	return op
}

// say writes a line. It ends the process if that fails, because the run would prove nothing.
func (h *history) say(op int64, name string, what any) {
	line, err := json.Marshal(said{"at": time.Now().UnixMicro(), "op": op, name: what})
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}
