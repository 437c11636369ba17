package llmtest

import "slices"

// ends is rule 1.
func (r Rules) ends(msgs []entry) *Refusal {
	first := 0
	for r.Profile != Anthropic && first < len(msgs) && msgs[first].role == "system" {
		first++
	}
	if first == len(msgs) {
		return refuse(1, -1, "no messages")
	}
	if msgs[first].role != "user" {
		return refuse(1, first, "the first message must be the user's, not one of the role %s", msgs[first].role)
	}
	if last := len(msgs) - 1; msgs[last].role == "assistant" {
		return refuse(1, last, "the last message cannot be the assistant's")
	}
	return nil
}

// neighbours is rule 2. Results come as one message each in the chat
// completions dialect, so they may stand beside each other.
func (r Rules) neighbours(msgs []entry) *Refusal {
	if r.Profile != Anthropic && r.Profile != Alternate {
		return nil
	}
	for i := 1; i < len(msgs); i++ {
		if msgs[i].role == msgs[i-1].role && msgs[i].role != "tool" {
			return refuse(2, i, "the roles must alternate, and this is the second message of the role %s in a row", msgs[i].role)
		}
	}
	return nil
}

// pairs is rule 3.
func (r Rules) pairs(msgs []entry) *Refusal {
	var open []string // calls that wait for their result
	caller := -1
	missing := func() *Refusal {
		return refuse(3, caller, "the call %q has no result directly after it", open[0])
	}
	for i := range msgs {
		e := &msgs[i]
		if e.role == "assistant" {
			if len(open) > 0 {
				return missing()
			}
			caller = i
			for p := range e.of(callPart) {
				open = append(open, p.id)
			}
			continue
		}
		other := false
		for _, p := range e.parts {
			if p.kind != resultPart {
				other = true
				continue
			}
			if other {
				return refuse(3, i, "the result for %q does not stand first in its message", p.id)
			}
			at := slices.Index(open, p.id)
			if at < 0 {
				return refuse(3, i, "a result for %q, but that call does not stand directly before it", p.id)
			}
			open = slices.Delete(open, at, at+1)
		}
		if len(open) > 0 && e.role != "tool" {
			return missing()
		}
	}
	if len(open) > 0 {
		return missing()
	}
	return nil
}

// ids is rule 4, and rule 6 for the names in past calls.
func (r Rules) ids(msgs []entry) *Refusal {
	seen := map[string]bool{}
	for i := range msgs {
		for p := range msgs[i].of(callPart) {
			switch {
			case seen[p.id]:
				return refuse(4, i, "the id %q stands twice in the request", p.id)
			case p.id == "":
				return refuse(4, i, "a call without an id")
			case r.Profile == Anthropic && !isName(p.id):
				return refuse(4, i, "the id %q does not match ^[a-zA-Z0-9_-]{1,64}$", p.id)
			case r.Profile == OpenAI && len(p.id) > 40:
				return refuse(4, i, "the id %q has %d characters, at most 40 are allowed", p.id, len(p.id))
			case !isName(p.name):
				return refuse(6, i, "the name %q in a call does not match ^[a-zA-Z0-9_-]{1,64}$", p.name)
			}
			seen[p.id] = true
		}
	}
	return nil
}

// content is rule 7.
func content(msgs []entry) *Refusal {
	for i := range msgs {
		e := &msgs[i]
		for p := range e.all() {
			switch {
			case p.kind == textPart && blank(p.text):
				return refuse(7, i, "text is empty or blank")
			case p.kind == resultPart && p.nothing:
				return refuse(7, i, "the result for %q has no content", p.id)
			}
		}
		if e.nothing && !e.has(callPart) {
			return refuse(7, i, "content is null and there are no calls")
		}
		if n := len(e.parts); e.role == "assistant" && n > 0 && e.parts[n-1].kind == textPart && endsInSpace(e.parts[n-1].text) {
			return refuse(7, i, "the text ends in white space")
		}
	}
	return nil
}
