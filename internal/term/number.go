package term

import (
	"strconv"
	"time"
)

// Count writes a number with separators between thousands.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural is "1 event" or "2 events".
func Plural[N ~int | ~int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(int64(n)) + " " + one + "s"
}

// Size writes bytes in at most six columns.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 10_000_000:
		return strconv.FormatInt(n/1000, 10) + " kB"
	case n < 10_000_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + " MB"
	}
	return strconv.FormatInt(n/1_000_000_000, 10) + " GB"
}

// Age writes how long ago a time is, in at most four columns. Both are Unix
// milliseconds.
func Age(now, then int64) string {
	d := time.Duration(now-then) * time.Millisecond
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d < 366*24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return strconv.Itoa(int(d/(365*24*time.Hour))) + "y"
}

// Time writes a time of a log, Unix milliseconds, in UTC.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }
