package postrider

import (
	"fmt"
	"slices"
	"testing"
)

func TestChunksAreBoundedAndKeepOrder(t *testing.T) {
	const half = maxBytes / 2
	for name, c := range map[string]struct {
		sizes []int
		want  []int // rows of each chunk
	}{
		"nothing":   {nil, nil},
		"fits":      {[]int{half, half}, []int{2}},
		"too many":  {[]int{half, half, 1, half, half}, []int{2, 2, 1}},
		"too large": {[]int{1, 2 * maxBytes, 1}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []row
			for i, size := range c.sizes {
				rows = append(rows, row{eventID: fmt.Sprint(i), record: make([]byte, size)})
			}
			var ids []string
			var lens []int
			for chunk := range chunks(rows, maxBytes, true) {
				lens = append(lens, len(chunk))
				ids = append(ids, eventIDs(chunk)...)
			}
			if !slices.Equal(lens, c.want) || !slices.Equal(ids, eventIDs(rows)) {
				t.Errorf("chunks of %v rows with %v, want %v", lens, ids, c.want)
			}
		})
	}
}

func TestRowsWithDedupKeysStandAloneWhenNothingIsReturned(t *testing.T) {
	var rows []row
	for i, deduped := range []bool{true, false, false, true, true, false} {
		rows = append(rows, row{eventID: fmt.Sprint(i), deduped: deduped, record: []byte("{}")})
	}
	for canReturn, want := range map[bool][]int{true: {6}, false: {1, 2, 1, 1, 1}} {
		var lens []int
		for chunk := range chunks(rows, maxBytes, canReturn) {
			lens = append(lens, len(chunk))
		}
		if !slices.Equal(lens, want) {
			t.Errorf("can return %v: chunks of %v rows, want %v", canReturn, lens, want)
		}
	}
}
