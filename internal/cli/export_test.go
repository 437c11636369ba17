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

	// Explain is the line that is printed about an error, ExitError one with an
	// exit code.
	Explain   = (&app{}).explain
	ExitError = func(code int, err error) error { return &exitError{code, err} }
)
