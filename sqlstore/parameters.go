package sqlstore

import (
	"encoding/json"
	"time"
)

// toJSON writes a set for a statement's parameter. The values hold numbers and strings only, which cannot fail.
func toJSON(set any) string {
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// isNumber reports whether id fits an SQL bigint that is not negative and has no needless zeros.
func isNumber(id string) bool {
	if id == "" || len(id) > 18 || id[0] == '0' && id != "0" {
		return false
	}
	for _, c := range []byte(id) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// maxRetryAfter keeps a delay within what every database can add to a time.
const maxRetryAfter = 365 * 24 * time.Hour

func clampDelay(d time.Duration) time.Duration {
	return min(max(d, 0), maxRetryAfter)
}
