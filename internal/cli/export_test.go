package cli

// For tests in another package.
var (
	ExitCode   = code
	Unreadable = unreadable
	EscapeLine = escapeLine
	EscapeText = escapeText
	Cut        = cut
	Columns    = columns
	Wrap       = wrap
	Count      = count
	Size       = size
	Age        = age
)
