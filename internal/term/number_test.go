package term_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop/internal/term"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{term.Count(0), "0"}, {term.Count(999), "999"}, {term.Count(1000), "1,000"}, {term.Count(-1234567), "-1,234,567"},
		{term.Size(9999), "9999 B"}, {term.Size(10_000), "10 kB"}, {term.Size(12_000_000), "12 MB"}, {term.Size(12_000_000_000), "12 GB"},
		{term.Age(1000, 2000), "now"}, {term.Age(120_000, 0), "2m"}, {term.Age(3*3600_000, 0), "3h"}, {term.Age(10*86400_000, 0), "10d"}, {term.Age(800*86400_000, 0), "2y"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
