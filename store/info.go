package store

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// SortInfos puts the newest session first; ids decide between equal times.
func SortInfos(infos []Info) {
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.ID, b.ID), strings.Compare(a.Path, b.Path))
	})
}

// Summary gathers what a listing says about a whole log that passes by. The
// zero value is ready.
type Summary struct {
	Events   outcrop.Seq
	Turns    int
	Title    string // the last session/title, else the start of the first prompt
	Updated  int64  // time of the last event
	OpenTurn bool

	titled bool
}

// Add takes one record.
func (s *Summary) Add(r outcrop.Record) {
	s.Events = r.Last() + 1
	if r.Run != nil {
		s.Updated = r.Run.At(r.Run.Len - 1).Time
		return
	}
	s.Updated = r.Time
	switch r.Type {
	case outcrop.TypeTurnStart:
		s.Turns++
		s.OpenTurn = true
	case outcrop.TypeTurnEnd:
		s.OpenTurn = false
	case outcrop.TypeSessionTitle:
		if t, ok := jsonwire.Text(jsonwire.Get(r.Data, "title")); ok {
			s.Title, s.titled = t, t != ""
		}
	case outcrop.TypeUserMessage:
		if !s.titled && s.Title == "" {
			s.Title = prompt(r.Data)
		}
	}
}

// Titled reports whether Title is one that was given, and not the start of a
// prompt.
func (s *Summary) Titled() bool { return s.titled }

// SetTitled goes on with a summary that was kept.
func (s *Summary) SetTitled(t bool) { s.titled = t }

// Into puts the summary into an entry of a listing that is not broken.
func (s *Summary) Into(in *Info) {
	in.Events, in.Turns, in.Title = int64(s.Events), s.Turns, s.Title
	if s.Updated > 0 {
		in.UpdatedAt = s.Updated
	}
	if in.State == StateOK && s.OpenTurn {
		in.State, in.Reason = StateOpenTurn, "the last turn was not closed"
	}
}

const titleRunes = 80

// prompt is the start of the text that a person typed.
func prompt(data []byte) string {
	if src := jsonwire.Get(data, "source"); src != nil {
		if kind := jsonwire.Get(src, "kind"); kind != nil && !jsonwire.TextIs(kind, "user") {
			return ""
		}
	}
	content := jsonwire.Get(data, "content")
	if jsonwire.Kind(content) != '[' {
		return ""
	}
	for block := range jsonwire.Elements(content) {
		if jsonwire.Kind(block) != '{' || !jsonwire.TextIs(jsonwire.Get(block, "type"), "text") {
			continue
		}
		text, _ := jsonwire.Text(jsonwire.Get(block, "text"))
		if line := firstLine(text); line != "" {
			return line
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if utf8.RuneCountInString(line) <= titleRunes {
		return line
	}
	n := 0
	for i := range line {
		if n++; n == titleRunes {
			return line[:i] + "…"
		}
	}
	return line
}
