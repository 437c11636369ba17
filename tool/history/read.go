package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/tool"
)

type readArgs struct {
	Seq  int64 `json:"seq" jsonschema:"the event"`
	From int64 `json:"from,omitempty" jsonschema:"first character, from 0"`
	To   int64 `json:"to,omitempty" jsonschema:"character to stop before; default: as much as one answer holds"`
}

// pageMax is the most characters that one answer holds. It is below what a
// result may hold inline, whatever the characters are.
const pageMax = 12_000

// coveredMax is how many covered events a checkpoint lists.
const coveredMax = 200

func read(ctx context.Context, s *outcrop.Session, args readArgs) (tool.Result, error) {
	log := s.Log()
	switch {
	case args.Seq < 0 || args.Seq >= int64(log.Len()):
		return tool.Result{}, tool.InvalidArgs(fmt.Sprintf("there is no event %d: this session has the events 0 to %d", args.Seq, log.Len()-1))
	case args.From < 0 || args.To < 0 || args.To > 0 && args.To <= args.From:
		return tool.Result{}, tool.InvalidArgs("from and to are characters from 0 on, and to is greater than from")
	}
	ev := log.At(outcrop.Seq(args.Seq))
	m, isMessage := messageOf(ev)
	if !isMessage {
		return tool.Text(head(fmt.Sprintf("event %d, %s", ev.Seq, ev.Type)) + page(llm.Clean(string(ev.Data)), args)), nil
	}
	var b strings.Builder
	b.WriteString(head(fmt.Sprintf("event %d, %s%s", ev.Seq, who(ev, m, callName(log, ev)), standing(s, ev.Seq))))
	b.WriteString(page(llm.Clean(textOf(m.Content)), args))
	if covered := ev.Sources.Seqs(); isCheckpoint(m) && args.From == 0 {
		list(ctx, &b, log, covered)
	}
	return tool.Text(b.String()), nil
}

func head(s string) string { return "[" + s + "]\n" }

// standing says where an event of a surface type stands now.
func standing(s *outcrop.Session, seq outcrop.Seq) string {
	if slices.Contains(s.Surface().Nodes(), seq) {
		return ""
	}
	return ", no longer shown"
}

// page cuts the asked part out of a text and says which one it is, unless it is
// all of it.
func page(text string, args readArgs) string {
	total := int64(utf8.RuneCountInString(text))
	to := args.To
	if to == 0 || to > total {
		to = total
	}
	from := min(args.From, total)
	to = min(to, from+pageMax)
	if from == 0 && to == total {
		return text
	}
	part := characters(text, from, to)
	note := fmt.Sprintf("\n[characters %s to %s of %s", llm.Thousands(from), llm.Thousands(to), llm.Thousands(total))
	if to < total {
		note += fmt.Sprintf("; go on with from=%d", to)
	}
	return part + note + "]"
}

// characters is the text from one code point up to another.
func characters(text string, from, to int64) string {
	start, n := len(text), int64(0)
	for i := range text {
		if n == from {
			start = i
		}
		if n == to {
			return text[start:i]
		}
		n++
	}
	return text[start:]
}

// list says what a checkpoint stands for, so that each of it can be read.
func list(ctx context.Context, b *strings.Builder, log outcrop.Log, covered []outcrop.Seq) {
	b.WriteString("\n[it stands for these events]")
	n := 0
	for _, seq := range covered {
		if seq < 0 || int(seq) >= log.Len() || ctx.Err() != nil {
			continue
		}
		ev := log.At(seq)
		if _, ok := messageOf(ev); !ok {
			continue
		}
		if n++; n > coveredMax {
			b.WriteString("\n... and more; history_search finds them")
			return
		}
		fmt.Fprintf(b, "\n%d %s", seq, cutLine(brief.Node(ev)))
	}
}

// cutLine keeps a line short.
func cutLine(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return characters(s, 0, most) + "..."
}
