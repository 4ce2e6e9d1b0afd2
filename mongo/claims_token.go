package mongo

import (
	"crypto/rand"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxVain is how many claims of an event in a row may end without an outcome.
const maxVain = 5

// claimTokens makes the tokens of the claims of one read. A token is a UUID, of version 8, whose last two digits count the
// claims that ran out before it: "00" for an event that was PENDING.
type claimTokens [16]byte

func newClaimTokens() (t claimTokens) {
	rand.Read(t[:]) // never fails
	t[6] = t[6]&0x0f | 0x80
	t[8] = t[8]&0x3f | 0x80
	return t
}

// after is the token of a claim that follows one with the token seen, which ran out; seen is empty when there was none.
func (t claimTokens) after(seen string) string {
	t[15] = 0
	if seen != "" {
		t[15] = byte(min(vainClaims(seen)+1, math.MaxUint8))
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", t[:4], t[4:6], t[6:8], t[8:10], t[10:])
}

const uuid8 = `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{10}`

var (
	ownToken = regexp.MustCompile(uuid8 + `([0-9a-f]{2})$`)

	// inVain are the tokens of claims before which another one ran out.
	inVain = bson.Regex{Pattern: uuid8 + `([1-9a-f][0-9a-f]|[0-9a-f][1-9a-f])$`}
)

// vainClaims is how many claims ran out before the one with this token. The tokens of others, which can be anything in a
// collection that somebody else designed, count none.
func vainClaims(token string) int {
	parts := ownToken.FindStringSubmatch(token)
	if parts == nil {
		return 0
	}
	n, _ := strconv.ParseUint(parts[1], 16, 8) // it matches
	return int(n)
}

// isSuspect says whether the event of this claim may have been the end of those who had claimed it before.
func isSuspect(token string) bool { return vainClaims(token) > 1 }
