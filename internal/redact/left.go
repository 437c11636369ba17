package redact

import (
	"iter"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/secret"
	"github.com/outcrop-dev/outcrop/store"
)

const (
	// leastNeedle is how long a text must be to be looked for elsewhere: short
	// ones stand everywhere.
	leastNeedle = 12
	leastSecret = 6
	mostNeedles = 100
	mostLeft    = 200
)

// look looks for what was taken out in the rest of the log.
func (p *Plan) look(ix *index) {
	p.needles = needlesOf(p.needles)
	named := map[string]bool{}
	kept := map[string]bool{}
	for r := range p.log.Records(0) {
		if r.Run != nil {
			if p.changed[r.Run.First] == nil {
				p.note(r.Run.First, outcrop.TypeAssistantChunk, p.inRun(r.Run))
			}
			continue
		}
		data, gone := p.changed[r.Seq]
		if gone {
			for id := range store.AttachmentIDs(r.Data) {
				named[strings.Clone(id)] = true
			}
		} else {
			data = r.Data
			p.note(r.Seq, r.Type, p.why(&r.Event))
		}
		for id := range store.AttachmentIDs(data) {
			kept[strings.Clone(id)] = true
		}
	}
	for id := range named {
		if !kept[id] {
			p.Objects = append(p.Objects, id)
		}
	}
	slices.Sort(p.Objects)
}

func (p *Plan) note(seq outcrop.Seq, t outcrop.Type, why string) {
	if why != "" && len(p.Left) < mostLeft {
		p.Left = append(p.Left, Left{seq, t, why})
	}
}

// needlesOf are the texts that are worth looking for: what was taken out, and
// keys that stood in it.
func needlesOf(texts []string) []string {
	seen := map[string]bool{}
	var out []string
	add := func(s string, least int) {
		if s = strings.TrimSpace(s); len(s) >= least && !seen[s] && len(out) < mostNeedles {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, t := range texts {
		for _, s := range secret.Find(t) {
			add(t[s.Start:s.End], leastSecret)
		}
	}
	for _, t := range texts {
		add(t, leastNeedle)
	}
	return out
}

// why says why an event may still hold something, "" when nothing shows it.
func (p *Plan) why(e *outcrop.Event) string {
	for s := range stringsIn(e.Data) {
		if p.has(s) {
			return "has the same text"
		}
		if e.Type == outcrop.TypeSessionTitle || e.Type == outcrop.TypeTodoWrite || e.Type == outcrop.TypeCommandRun {
			if s = strings.TrimSuffix(strings.TrimSpace(s), "…"); len(s) >= leastNeedle && p.within(s) {
				return "has a part of it"
			}
		}
	}
	if !e.Type.Surface() || e.Type == outcrop.TypeToolResult || e.Type == outcrop.TypeAssistantMessage {
		return ""
	}
	for seq := range e.Sources.All() {
		if p.changed[seq] != nil {
			return "was made from it"
		}
	}
	return ""
}

func (p *Plan) has(s string) bool {
	return slices.ContainsFunc(p.needles, func(n string) bool { return strings.Contains(s, n) })
}

func (p *Plan) within(s string) bool {
	return slices.ContainsFunc(p.needles, func(n string) bool { return strings.Contains(n, s) })
}

// inRun looks into the pieces of a packed row as one text.
func (p *Plan) inRun(run *outcrop.Run) string {
	var b strings.Builder
	for e := range run.Events() {
		c := jsonwire.Get(e.Data, "chunk")
		for _, name := range [...]string{"text", "argumentsDelta"} {
			s, _ := jsonwire.Text(jsonwire.Get(c, name))
			b.WriteString(s)
		}
	}
	if p.has(b.String()) {
		return "has the same text"
	}
	return ""
}

// Finds reports whether a log of another session has a text that was taken out.
func (p *Plan) Finds(recs iter.Seq2[outcrop.Record, error]) bool {
	for r, err := range recs {
		if err != nil {
			return false
		}
		if r.Run != nil {
			if p.inRun(r.Run) != "" {
				return true
			}
			continue
		}
		for s := range stringsIn(r.Data) {
			if p.has(s) {
				return true
			}
		}
	}
	return false
}

// Paths are the paths below a folder that the texts name which were taken out.
func (p *Plan) Paths(dir string) []string {
	var out []string
	for _, n := range p.needles {
		for i := strings.Index(n, dir); i >= 0; {
			rest := n[i:]
			end := strings.IndexFunc(rest, func(c rune) bool { return c <= ' ' || strings.ContainsRune(`"'<>|:;,)]`, c) })
			if end < 0 {
				end = len(rest)
			}
			if path := strings.TrimRight(rest[:end], "."); !slices.Contains(out, path) {
				out = append(out, path)
			}
			next := strings.Index(rest[end:], dir)
			if next < 0 {
				break
			}
			i += end + next
		}
	}
	return out
}

// stringsIn yields every string value of a JSON text, decoded.
func stringsIn(v []byte) iter.Seq[string] {
	return func(yield func(string) bool) { eachString(v, yield) }
}

func eachString(v []byte, yield func(string) bool) bool {
	switch jsonwire.Kind(v) {
	case '"':
		s, _ := jsonwire.Text(v)
		return yield(s)
	case '{':
		for _, m := range jsonwire.Members(v) {
			if !eachString(m, yield) {
				return false
			}
		}
	case '[':
		for m := range jsonwire.Elements(v) {
			if !eachString(m, yield) {
				return false
			}
		}
	}
	return true
}
