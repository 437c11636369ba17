package doctor

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// Group is findings that ask for the same, with what can be done about them.
type Group struct {
	Name     string // one word, for programs
	Title    string
	Advice   string
	Count    int
	Codes    map[outcrop.Code]int
	Findings []Finding // the first ones of each code
}

// Groups sorts findings. The zero value has none.
type Groups struct {
	list [len(groups)]Group
}

// maxShown is how many findings of a code a group keeps.
const maxShown = 3

const (
	damage = iota
	place
	tail
	calls
	requests
	order
	odd
	more
)

// groups are in the order in which a person reads them.
var groups = [...]struct{ name, title, advice string }{
	damage:   {"damage", "Damage", "The log cannot be continued as it is. What stands before the damage can be read, and taken into a new session by a fork."},
	place:    {"place", "The place of the log", "The store does not open the log where it lies, or another store cannot take it. The file can be read and continued by its path."},
	tail:     {"end", "The end of the log", "Nothing has to be done: the next writer cuts a torn tail and keeps its bytes, and opening the session closes what is open."},
	calls:    {"calls", "Calls and results", "Nothing has to be done, and nothing can: no event can be put behind a message that others follow. Requests supply a missing result, leave out one without a call, and mend the rest; the log stays as it is."},
	requests: {"requests", "Requests and attachments", "The log can be continued. What the model was given then cannot be shown in full any more: a copy of the log or of the attachments from before the change would help."},
	order:    {"order", "The order of events", "The log can be continued. The program that wrote it has a fault, which is worth a report."},
	odd:      {"odd", "Odd content", "Nothing has to be done: it is read over."},
	more:     {"more", "Not looked at", "Memory and time are bounded, so not everything was looked at."},
}

// groupOf is the group of a finding.
func groupOf(f *Finding) int {
	switch f.Code {
	case "IDENTITY_MISMATCH", "MISPLACED_LOG", "NEWER_GENERATION", "LATER_FORMAT", "HEADER_ID":
		return place
	case "TORN_TAIL", "TURN_OPEN", "COMPACTION_OPEN":
		return tail
	case "DANGLING_CALL", "ORPHAN_RESULT", "BAD_CALL", "BAD_ARGUMENTS":
		return calls
	case "DIGEST_MISMATCH", "REDACTED", "ATTACHMENT_MISSING", "SEED_LENGTH":
		return requests
	case "MORE_FINDINGS":
		return more
	}
	switch {
	case f.Severity == SeverityError:
		return damage
	case oddHints[wire.WarningKind(f.Code)] != "":
		return odd
	}
	return order
}

// Add takes a finding.
func (g *Groups) Add(f Finding) {
	i := groupOf(&f)
	to := &g.list[i]
	if to.Codes == nil {
		to.Name, to.Title, to.Advice = groups[i].name, groups[i].title, groups[i].advice
		to.Codes = map[outcrop.Code]int{}
	}
	to.Count++
	if to.Codes[f.Code]++; to.Codes[f.Code] <= maxShown {
		to.Findings = append(to.Findings, f)
	}
}

// List gives the groups that have findings.
func (g *Groups) List() (out []Group) {
	for _, x := range g.list {
		if x.Count > 0 {
			out = append(out, x)
		}
	}
	return out
}

// AppendJSON appends the group as the command line prints it.
func (g Group) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "name", g.Name)
	dst = jsonwire.AppendIntMember(dst, "count", int64(g.Count))
	dst = jsonwire.AppendStringMember(dst, "advice", g.Advice)
	list := []byte{'['}
	for i, f := range g.Findings {
		if i > 0 {
			list = append(list, ',')
		}
		list = f.AppendJSON(list)
	}
	return append(jsonwire.AppendRawMember(dst, "findings", append(list, ']')), '}')
}
