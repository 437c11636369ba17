package rewind

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Again plans to send a prompt once more: the rewind to before it, and the
// message to send, without an id. at is the seq of the prompt; negative: the
// last one on the surface. edit takes the place of its text unless it is empty;
// images and other blocks come along.
func Again(s *outcrop.Session, at outcrop.Seq, edit string) (Plan, message.Message, error) {
	log, nodes := s.Log(), s.Surface().Nodes()
	if at < 0 {
		for i := len(nodes) - 1; i >= 0 && at < 0; i-- {
			if isPrompt(log.At(nodes[i])) {
				at = nodes[i]
			}
		}
		if at < 0 {
			return Plan{}, message.Message{}, refuse(s, CodeNoPrompt, -1, "there is no prompt on the surface", "")
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
	if err == nil && at > 0 {
		p.Prompt = at
	}
	return p, m, err
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
