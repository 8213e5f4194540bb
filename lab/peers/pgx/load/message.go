package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The size in bytes of a message without padding; its time has sixteen digits.
const emptyMessage = len(`{"at":1763737000000000,"pad":""}`)

// The letters are random, because repetition would be compressed.
var letters = func() string {
	bytes := make([]byte, 768<<10)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(bytes)
}()

// message returns a JSON text of the given size with the time at which it is due.
func message(at time.Time, size int) string {
	need := max(0, size-emptyMessage)
	from := rand.IntN(len(letters))
	pad := letters[from:min(len(letters), from+need)]
	pad += strings.Repeat(letters, (need-len(pad)+len(letters)-1)/len(letters))[:need-len(pad)]
	return fmt.Sprintf(`{"at":%d,"pad":"%s"}`, at.UnixMicro(), pad)
}
