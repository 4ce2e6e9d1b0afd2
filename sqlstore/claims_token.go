package sqlstore

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"strconv"
)

// maxVain is how many claims of an event in a row may end without an outcome.
const maxVain = 5

// claimTokens makes the tokens of the claims of one read. A token is a UUID, of version 8, whose last two digits count the
// claims that ran out before it: "00" for an event that was PENDING.
type claimTokens [16]byte

func newClaimTokens() (t claimTokens) {
	_, _ = rand.Read(t[:]) // never fails
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
	text := hex.EncodeToString(t[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// vainClaims is how many claims ran out before the one with this token. Those of others count nothing.
func vainClaims(token string) int {
	if len(token) != 36 || token[14] != '8' {
		return 0
	}
	n, err := strconv.ParseUint(token[34:], 16, 8)
	if err != nil {
		return 0
	}
	return int(n)
}

// isSuspect says whether the event of this claim may have been the end of those who had claimed it before.
func isSuspect(token string) bool { return vainClaims(token) > 1 }
