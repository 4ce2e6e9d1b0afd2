package sqlstore

import "testing"

func TestClaimTokensCountTheClaimsThatRanOut(t *testing.T) {
	tokens := newClaimTokens()
	if newClaimTokens() == tokens {
		t.Error("two reads have the same tokens")
	}
	token := ""
	for want := range 300 {
		token = tokens.after(token)
		if !uuid.MatchString(token) {
			t.Fatalf("%q is no UUID", token)
		}
		if got := vainClaims(token); got != min(want, 255) {
			t.Fatalf("token %d counts %d", want, got)
		}
		if isSuspect(token) != (want > 1) {
			t.Fatalf("after %d claims in vain: to be claimed alone is %v", want, isSuspect(token))
		}
	}
	for _, foreign := range []string{"", "x", "worker", "6f1c1f9e-8b1a-4d53-9a53-0123456789ff"} {
		if n := vainClaims(foreign); n != 0 {
			t.Errorf("the token %q, which is not ours, counts %d", foreign, n)
		}
	}
}
