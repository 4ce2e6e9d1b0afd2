package claims

import (
	"regexp"
	"slices"
	"testing"
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
	book.Add([]Claim{a, b}, book.Turn())
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
	book := NewBook()
	book.Add([]Claim{a, b}, book.Turn())
	if _, held := book.Settle("b"); !held {
		t.Fatal("a claim is not held")
	}
	renewed := book.Renewable()
	if book.Lose(renewed, map[string]bool{"a": true}) {
		t.Error("a claim that is being settled counts as lost")
	}
	if !book.Lose(renewed, map[string]bool{"b": true}) {
		t.Error("a claim that is gone does not count as lost")
	}
	if !book.Add(nil, 0) {
		t.Error("claims of before the renewal count as known to it")
	}
}
