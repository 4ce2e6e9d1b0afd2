package lifecycle

import (
	"fmt"
	"slices"
	"testing"
)

// table is a lease table in the making: owner of each shard, empty when open.
type table []string

func (o table) seenBy(self string) []Shard {
	shards := make([]Shard, len(o))
	for i, owner := range o {
		shards[i] = Shard{Index: i, Mine: owner == self, Open: owner == ""}
	}
	return shards
}

// settle lets every live relay act in turn until nobody changes anything.
func (o table) settle(t *testing.T, live []string) {
	t.Helper()
	for range 10 {
		changed := false
		for _, self := range live {
			take, give := Share(o.seenBy(self), live, self)
			for _, s := range give {
				o[s], changed = "", true
			}
			for _, s := range take {
				o[s], changed = self, true
			}
		}
		if !changed {
			return
		}
	}
	t.Fatal("the relays never come to rest")
}

func TestShareComesToEqualParts(t *testing.T) {
	for _, shards := range []int{1, 2, 7, 64} {
		o := make(table, shards)
		var live []string
		for n := 1; n <= 9; n++ { // relays join one after the other
			live = append(live, fmt.Sprintf("relay-%d", n))
			o.settle(t, live)
			o.check(t, live)
		}
		for len(live) > 1 { // and leave again
			gone := live[0]
			live = live[1:]
			for i := range o {
				if o[i] == gone {
					o[i] = ""
				}
			}
			o.settle(t, live)
			o.check(t, live)
		}
	}
}

func (o table) check(t *testing.T, live []string) {
	t.Helper()
	counts := make(map[string]int)
	for i, owner := range o {
		if owner == "" {
			t.Errorf("shard %d of %d belongs to nobody with %d relays", i, len(o), len(live))
		}
		counts[owner]++
	}
	for _, id := range live {
		if n := counts[id]; n < len(o)/len(live) || n > len(o)/len(live)+1 {
			t.Errorf("%s has %d of %d shards with %d relays", id, n, len(o), len(live))
		}
	}
}

func TestShareOfARelayThatIsNotLive(t *testing.T) {
	take, give := Share(table{"", "a"}.seenBy("a"), []string{"b"}, "a")
	if len(take)+len(give) > 0 {
		t.Errorf("takes %v, gives %v", take, give)
	}
}

func TestShareGivesOnlyWhatIsBeyondThePart(t *testing.T) {
	_, give := Share(table{"a", "a", "a", "a"}.seenBy("a"), []string{"a", "b"}, "a")
	if !slices.Equal(give, []int{2, 3}) {
		t.Errorf("gives %v", give)
	}
}
