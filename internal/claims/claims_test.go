package claims

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestTokensCountTheClaimsThatRanOut(t *testing.T) {
	if NewTokens() == NewTokens() {
		t.Error("two reads have the same tokens")
	}
	inVain, token := regexp.MustCompile(InVain), ""
	for want := range 300 {
		token = NewTokens().After(token)
		if !uuid.MatchString(token) {
			t.Fatalf("%q is no UUID", token)
		}
		if got := Vain(token); got != min(want, 255) {
			t.Fatalf("token %d counts %d", want, got)
		}
		if IsSuspect(token) != (want > 1) || inVain.MatchString(token) != (want > 0) || (Verdict(token) != nil) != (want >= maxVain) {
			t.Fatalf("after %d claims in vain: suspect %v, in vain %v, %v", want, IsSuspect(token), inVain.MatchString(token), Verdict(token))
		}
	}
	for _, foreign := range []string{"", "x", "worker-ab", "6f1c1f9e-8b1a-4d53-9a53-0123456789ff"} {
		if n := Vain(foreign); n != 0 {
			t.Errorf("the token %q, which is not ours, counts %d", foreign, n)
		}
	}
}

func TestBookGivesBackWhatIsNotInFlight(t *testing.T) {
	a, b := Claim{ID: 1, Token: "x", Event: "a"}, Claim{ID: 2, Token: "x", Event: "b"}
	book := NewBook()
	book.Add([]Claim{a, b}, time.Now())
	if got := book.Surplus([]string{"a"}); !slices.Equal(got, []Claim{b}) {
		t.Errorf("surplus is %v", got)
	}
	if got := book.Surplus([]string{"a"}); !slices.Equal(got, []Claim{b}) {
		t.Errorf("what was not given back is forgotten: %v", got)
	}
	book.Released([]Claim{b})
	if got := book.Surplus(nil); !slices.Equal(got, []Claim{a}) {
		t.Errorf("surplus is %v", got)
	}
}

func TestBookTellsWhatARenewalLost(t *testing.T) {
	a, b := Claim{Token: "x", Event: "a"}, Claim{Token: "x", Event: "b"}
	book, now := NewBook(), time.Now()
	book.Add([]Claim{a, b}, now)
	if _, held := book.Settle("b"); !held {
		t.Fatal("a claim is not held")
	}
	renewed := book.Renewable(now.Add(time.Second))
	if book.Prolonged(renewed, map[string]bool{"a": true}, now) {
		t.Error("a claim that is being settled counts as lost")
	}
	if !book.Prolonged(renewed, map[string]bool{"b": true}, now) {
		t.Error("a claim that is gone does not count as lost")
	}
}

// Every claim lasts at least as long as the lease, whether its renewal prolongs the claim or not.
func TestRenewalsPassOverClaimsThatOutliveTheLease(t *testing.T) {
	const lease = 10 * time.Second
	a, b, now := Claim{Token: "x", Event: "a"}, Claim{Token: "x", Event: "b"}, time.Now()
	ends := map[string]time.Time{"a": now.Add(Lasts(lease)), "b": now.Add(time.Second + Lasts(lease))}
	book := NewBook()
	book.Add([]Claim{a}, ends["a"])
	book.Add([]Claim{b}, ends["b"])
	for i := range 100 {
		now = now.Add(lease / 10)
		renewed := book.Renewable(now.Add(lease))
		for _, c := range renewed {
			ends[c.Event] = now.Add(Lasts(lease))
		}
		book.Prolonged(renewed, map[string]bool{"a": true, "b": true}, now.Add(Lasts(lease)))
		if ends["a"].Before(now.Add(lease)) || ends["b"].Before(now.Add(lease)) {
			t.Fatalf("renewal %d leaves claims that end at %v, before the lease does at %v", i, ends, now.Add(lease))
		}
		if len(renewed) > 1 {
			t.Errorf("renewal %d prolongs %d claims of different age", i, len(renewed))
		}
	}
	if book.Add(nil, now.Add(lease)) || !book.Add(nil, now.Add(lease-1)) {
		t.Error("claims that end before the lease of a renewal which did not know them are short, and others are not")
	}
}
