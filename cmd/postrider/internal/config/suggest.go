package config

import "strings"

// suggest gives the hint for a word that is none of the known ones: the one
// that was probably meant, or all there are, after what they are called.
func suggest(word string, known []string, called string) string {
	best, bestDistance := "", max(1, len(word)/3)
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d <= bestDistance {
			best, bestDistance = k, d-1
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return called + ": " + strings.Join(known, ", ")
}

// editDistance counts the letters to insert, delete, replace or swap with
// their neighbour that make b of a.
func editDistance(a, b string) int {
	row := func(first int) []int {
		r := make([]int, len(b)+1)
		r[0] = first
		return r
	}
	var beforeLast []int
	last := row(0)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current := row(i)
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			current[j] = min(last[j]+1, current[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, current
	}
	return last[len(b)]
}
