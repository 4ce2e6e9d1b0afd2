package claims

import (
	"crypto/rand"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// maxVain is how many claims of an event in a row may end without an outcome.
const maxVain = 5

// KeptOfVain is what the history of an event says about a claim that ran out. It is no attempt of the event's.
const KeptOfVain = "a claim ran out without an outcome: its relay ended, or did not reach the database"

// Tokens makes the tokens of the claims of one read. A token is a UUID, of version 8, whose last two digits count the claims
// that ran out before it: "00" for an event that was PENDING.
type Tokens [16]byte

// NewTokens returns Tokens that no other read has.
func NewTokens() (t Tokens) {
	rand.Read(t[:]) // never fails
	t[6] = t[6]&0x0f | 0x80
	t[8] = t[8]&0x3f | 0x80
	return t
}

// After is the token of a claim that follows one with the token seen, which ran out; seen is empty when there was none.
func (t Tokens) After(seen string) string {
	t[15] = 0
	if seen != "" {
		t[15] = byte(min(Vain(seen)+1, math.MaxUint8))
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", t[:4], t[4:6], t[6:8], t[8:10], t[10:])
}

const uuid8 = `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{10}`

// InVain is a regular expression of the tokens of claims before which another one ran out.
const InVain = uuid8 + `([1-9a-f][0-9a-f]|[0-9a-f][1-9a-f])$`

var ownToken = regexp.MustCompile(uuid8 + `([0-9a-f]{2})$`)

// Vain is how many claims ran out before the one with this token. The tokens of others, which can be anything in a table
// that somebody else designed, count none.
func Vain(token string) int {
	parts := ownToken.FindStringSubmatch(token)
	if parts == nil {
		return 0
	}
	n, _ := strconv.ParseUint(parts[1], 16, 8) // it matches
	return int(n)
}

// IsSuspect says whether the event of the claim with this token may have been the end of those who had claimed it before.
func IsSuspect(token string) bool { return Vain(token) > 1 }

// Verdict is the reason to give an event up whose claim has this token; nil as long as it may be sent.
func Verdict(token string) error {
	vain := Vain(token)
	if vain < maxVain {
		return nil
	}
	return fmt.Errorf("%d claims in a row ran out without an outcome: sending the event may be what ends the relays", vain)
}
