package cli

import "strconv"

func itoa[N ~int | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }
