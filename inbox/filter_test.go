package inbox_test

import (
	"fmt"
	"testing"

	"github.com/postrider/postrider/inbox"
)

// TestRecent remembers at least half of its size, forgets what is older, and tells consumers apart.
func TestRecent(t *testing.T) {
	const size = 100
	r := inbox.NewRecent(size)
	knows := func(consumer string, n int) bool { return r.Likely(t.Context(), consumer, []string{fmt.Sprint(n)})[0] }
	for n := range 10 * size {
		r.Applied(t.Context(), "c", []string{fmt.Sprint(n)})
		known := 0
		for past := max(0, n-2*size); past <= n; past++ {
			switch k := knows("c", past); {
			case k:
				known++
			case past > n-size/2:
				t.Fatalf("%d is forgotten after %d more", past, n-past)
			}
		}
		if known > size || knows("d", n) {
			t.Fatalf("after %d keys it knows %d of them, want %d at most, or one of another consumer", n, known, size)
		}
	}
}
