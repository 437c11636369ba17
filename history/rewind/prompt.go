package rewind

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Again plans to send a prompt once more: the rewind to before it, and the
// message to send, without an id. at is the seq of the prompt; negative: the
// last one that no rewind took away. One that cannot be gone back to, because a
// checkpoint stands for it and for what came before it, is refused. edit takes the place of its text unless it is empty;
// images and other blocks come along.
func Again(s *outcrop.Session, at outcrop.Seq, edit string) (Plan, message.Message, error) {
	log := s.Log()
	if at < 0 {
		var err error
		if at, err = lastPrompt(log); err != nil {
			return Plan{}, message.Message{}, err
		}
		if at < 0 {
			return Plan{}, message.Message{}, refuse(s, CodeNoPrompt, -1, "there is no prompt to send again", "")
		}
	} else if int(at) >= log.Len() || !isPrompt(log.At(at)) {
		return Plan{}, message.Message{}, refuse(s, CodeNoPrompt, at, "it is no prompt", "outcrop show lists the prompts")
	}
	m, err := message.Parse(log.At(at).Data)
	if err != nil {
		return Plan{}, message.Message{}, err
	}
	m.ID = ""
	if edit != "" {
		content := []message.Block{message.Text(edit)}
		for _, b := range m.Content {
			if b.Type != message.TextBlock {
				content = append(content, b)
			}
		}
		m.Content = content
	}
	p, err := Find(s, at)
	if outcrop.CodeOf(err) == CodeStraddles {
		if by, ok := pin.CoveredBy(log, at); ok {
			err = refuse(s, CodeStraddles, at, fmt.Sprintf("it is covered by checkpoint %d", by),
				fmt.Sprintf("use outcrop fork %s --at %d", s.ID(), turnEndBefore(log, at)))
		}
	}
	if err == nil && at > 0 {
		p.Prompt = at
	}
	return p, m, err
}

// lastPrompt is the newest prompt of a log that no rewind took away, -1 when
// there is none.
func lastPrompt(log outcrop.Log) (outcrop.Seq, error) {
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return -1, err
	}
	gone := Gone(log, fold.Replacements)
	for seq := outcrop.Seq(log.Len() - 1); seq >= 0; seq-- {
		if _, away := gone[seq]; !away && isPrompt(log.At(seq)) {
			return seq, nil
		}
	}
	return -1, nil
}

// Versions groups the prompts of a log that were sent in each other's place,
// oldest first; a prompt that was sent once is in no group.
func Versions(log outcrop.Log) [][]outcrop.Seq {
	var groups [][]outcrop.Seq
	group := map[outcrop.Seq]int{}
	again := outcrop.Seq(-1) // the prompt that the next one stands for
	for rec := range log.Records(0) {
		switch {
		case rec.Type == outcrop.TypeOutcropRewind:
			again = -1
			if n, ok := jsonwire.Int(jsonwire.Get(rec.Data, "prompt")); ok {
				again = outcrop.Seq(n)
			}
		case rec.Run == nil && again >= 0 && isPrompt(rec.Event):
			i, ok := group[again]
			if !ok {
				i = len(groups)
				groups = append(groups, []outcrop.Seq{again})
				group[again] = i
			}
			groups[i] = append(groups[i], rec.Seq)
			group[rec.Seq] = i
			again = -1
		}
	}
	return groups
}
