package rewind

import "github.com/outcrop-dev/outcrop"

// Gone finds what rewinds took away, in a log with these replacements: each
// event that stood on the surface and now lies under the place of a rewind, with
// the seq of that place.
func Gone(log outcrop.Log, replacements []outcrop.Replacement) map[outcrop.Seq]outcrop.Seq {
	under := make(map[outcrop.Seq][]outcrop.Seq, len(replacements))
	for _, r := range replacements {
		under[r.Seq] = r.Shadowed
	}
	gone := map[outcrop.Seq]outcrop.Seq{}
	for _, r := range replacements {
		if !IsPlace(log.At(r.Seq)) {
			continue
		}
		rest := append([]outcrop.Seq(nil), r.Shadowed...)
		for len(rest) > 0 {
			n := rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			if _, seen := gone[n]; !seen {
				gone[n] = r.Seq
				rest = append(rest, under[n]...)
			}
		}
	}
	return gone
}
