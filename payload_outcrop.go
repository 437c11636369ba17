package outcrop

import "encoding/json"

// The types of this file are ours. They are ignorable and never stand on the
// surface, so that every reader of format version 0 can pass over them.

// OutcropRequest is written before each call of purpose turn: which request
// was made and a digest by which it can be checked when it is rebuilt.
type OutcropRequest struct {
	Turn, Step int
	Attempt    int // from 1
	Purpose    string
	Prefix     Seq    // last event that the request was built from
	Digest     string // see Session.RequestDigest
	Encoder    string // which encoder made the provider's bytes, with its version
	MaxOutput  int64  // what the window left for the reply, in tokens; 0: no limit was set
	Images     bool   // images were sent as such
}

// OutcropEdit follows a history edit: what it saved and what it cost, in
// tokens.
type OutcropEdit struct {
	ReplaceSeq       Seq
	Kind             string // compaction, prune, rewind
	TokensBefore     int64
	TokensAfter      int64
	CacheInvalidated int64
}

// OutcropSummarizerCall is written before a call of another purpose than turn.
// Mode says how the messages up to node Through were taken (whole, cut, part,
// join); Extra are the messages that followed them, in full.
type OutcropSummarizerCall struct {
	Purpose string
	Turn    *int
	Call    int
	Model   string
	Prefix  Seq
	Through Seq
	Mode    string
	Extra   json.RawMessage
	Digest  string
}

// OutcropRewind says that the surface goes back to what it was at To; the
// replacement follows.
type OutcropRewind struct {
	To     Seq
	Prompt *Seq // the prompt that is sent again, or nil
}

// OutcropPin protects the exchange of a node from history operations, or ends
// that.
type OutcropPin struct {
	Node   Seq
	Pinned bool
}

// OutcropTag sets or removes a tag of the session.
type OutcropTag struct {
	Tag string
	Set bool
}

// OutcropRedacted says what was redacted from a copy of a log.
type OutcropRedacted struct {
	Seqs   []Seq
	Reason string
}

func (OutcropRequest) EventType() Type        { return TypeOutcropRequest }
func (OutcropEdit) EventType() Type           { return TypeOutcropEdit }
func (OutcropSummarizerCall) EventType() Type { return TypeOutcropSummarizer }
func (OutcropRewind) EventType() Type         { return TypeOutcropRewind }
func (OutcropPin) EventType() Type            { return TypeOutcropPin }
func (OutcropTag) EventType() Type            { return TypeOutcropTag }
func (OutcropRedacted) EventType() Type       { return TypeOutcropRedacted }

func (OutcropRequest) logPayload()        {}
func (OutcropEdit) logPayload()           {}
func (OutcropSummarizerCall) logPayload() {}
func (OutcropRewind) logPayload()         {}
func (OutcropPin) logPayload()            {}
func (OutcropTag) logPayload()            {}
func (OutcropRedacted) logPayload()       {}

func (p OutcropRequest) appendData(dst []byte) []byte {
	o := newObject(dst).int("turn", int64(p.Turn)).int("step", int64(p.Step)).int("attempt", int64(p.Attempt)).
		text("purpose", p.Purpose).int("prefix", int64(p.Prefix)).text("digest", p.Digest).text("encoder", p.Encoder).
		optInt("maxOutput", p.MaxOutput)
	if p.Images {
		o.bool("images", true)
	}
	return o.end()
}

func (p OutcropEdit) appendData(dst []byte) []byte {
	return newObject(dst).int("replaceSeq", int64(p.ReplaceSeq)).text("kind", p.Kind).
		int("tokensBefore", p.TokensBefore).int("tokensAfter", p.TokensAfter).int("cacheInvalidated", p.CacheInvalidated).end()
}

func (p OutcropSummarizerCall) appendData(dst []byte) []byte {
	o := newObject(dst).text("purpose", p.Purpose)
	if p.Turn != nil {
		o.int("turn", int64(*p.Turn))
	}
	extra := p.Extra
	if extra == nil {
		extra = json.RawMessage("[]")
	}
	return o.int("call", int64(p.Call)).text("model", p.Model).int("prefix", int64(p.Prefix)).
		int("through", int64(p.Through)).text("mode", p.Mode).raw("extra", extra).text("digest", p.Digest).end()
}

func (p OutcropSummarizerCall) holdsRaw() bool { return p.Extra != nil }

func (p OutcropRewind) appendData(dst []byte) []byte {
	o := newObject(dst).int("to", int64(p.To))
	if p.Prompt != nil {
		o.int("prompt", int64(*p.Prompt))
	}
	return o.end()
}

func (p OutcropPin) appendData(dst []byte) []byte {
	return newObject(dst).int("node", int64(p.Node)).bool("pinned", p.Pinned).end()
}

func (p OutcropTag) appendData(dst []byte) []byte {
	return newObject(dst).text("tag", p.Tag).bool("set", p.Set).end()
}

func (p OutcropRedacted) appendData(dst []byte) []byte {
	return newObject(dst).seqs("seqs", p.Seqs).text("reason", p.Reason).end()
}
