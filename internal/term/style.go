package term

// Style colours text for a terminal; false leaves it as it is.
type Style bool

func (s Style) sgr(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is text in bold.
func (s Style) Bold(text string) string { return s.sgr("1", text) }

// Dim is text that stands back.
func (s Style) Dim(text string) string { return s.sgr("2", text) }

// Red is text about what is wrong.
func (s Style) Red(text string) string { return s.sgr("31", text) }

// Green is text about what is well.
func (s Style) Green(text string) string { return s.sgr("32", text) }

// Yellow is text to be careful about.
func (s Style) Yellow(text string) string { return s.sgr("33", text) }

// Cyan is a name.
func (s Style) Cyan(text string) string { return s.sgr("36", text) }
