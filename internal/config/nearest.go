package config

// Nearest returns the name that a person probably meant by got: the one with
// the fewest letters inserted, removed, replaced or swapped with their
// neighbour, when these are few. "" when none is near. Of equally near names
// the first counts.
func Nearest(got string, names []string) string {
	best, most := "", len([]rune(got))/3+1
	for _, n := range names {
		if n == got {
			return n
		}
		if d := distance([]rune(got), []rune(n)); d <= most && (best == "" || d < most) {
			best, most = n, d
		}
	}
	return best
}

// distance counts the edits between two names.
func distance(a, b []rune) int {
	var prev2, prev, cur = make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
