// Package uuid makes and reads the UUIDs that identify events (RFC 9562).
package uuid

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// Nil is the UUID of all zeros. It identifies nothing.
const Nil = "00000000-0000-0000-0000-000000000000"

// NewV7 returns a new version 7 UUID in its canonical form. Within this process every UUID is greater than the one
// before it, also when the system clock is set back. Safe for concurrent use.
func NewV7() string { return process.next() }

// Canonical returns s in lower case when it is a UUID in the form of 36 characters. The version is not looked at.
func Canonical(s string) (string, bool) {
	if len(s) != 36 {
		return "", false
	}
	canonical := []byte(s)
	for i, c := range canonical {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		case 'A' <= c && c <= 'F':
			canonical[i] = c + ('a' - 'A')
		default:
			return "", false
		}
	}
	return string(canonical), true
}

var process = generator{now: time.Now}

// generator counts within a millisecond in the 12 bits of rand_a (RFC 9562, section 6.2, method 1). When the counter
// is full, or the clock stands still or runs back, the timestamp runs ahead of the clock.
type generator struct {
	now func() time.Time

	mu      sync.Mutex
	milli   int64  // timestamp of the last UUID
	counter uint16 // its rand_a
}

const (
	counterBits = 12
	seedMask    = 1<<(counterBits-1) - 1 // a fresh counter starts in its lower half, so that there is room to count
)

func (g *generator) next() string {
	var id [16]byte
	rand.Read(id[6:]) // never fails: the program ends without a source of randomness
	milli, counter := g.tick(binary.BigEndian.Uint16(id[6:]) & seedMask)

	binary.BigEndian.PutUint64(id[:], uint64(milli)<<16|0x7000|uint64(counter))
	id[8] = id[8]&0x3f | 0x80
	return format(id)
}

// tick returns the timestamp and counter of the next UUID. A new millisecond starts to count at seed.
func (g *generator) tick(seed uint16) (milli int64, counter uint16) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now().UnixMilli()
	switch {
	case now > g.milli:
		g.milli, g.counter = now, seed
	case g.counter == 1<<counterBits-1:
		g.milli, g.counter = g.milli+1, seed
	default:
		g.counter++
	}
	return g.milli, g.counter
}

func format(id [16]byte) string {
	var text [36]byte
	hex.Encode(text[0:], id[:4])
	text[8] = '-'
	hex.Encode(text[9:], id[4:6])
	text[13] = '-'
	hex.Encode(text[14:], id[6:8])
	text[18] = '-'
	hex.Encode(text[19:], id[8:10])
	text[23] = '-'
	hex.Encode(text[24:], id[10:])
	return string(text[:])
}
