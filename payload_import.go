package outcrop

// OutcropImport ends what was taken over from another program's history, each
// time some was. The events before it, back to the one before or to the
// beginning, were made from that history.
type OutcropImport struct {
	Program string // that wrote the history
	Version string // of that program, "" when unknown
	Source  string // what the program calls the session; never a path
	Items   int64  // pieces of the history that were taken so far: messages, results, marks
	Bytes   int64  // length of what was read so far, 0 when it is no file
	Digest  string // sha256: of those bytes, or ""
	Mapped  int64  // things so far that stand here in another shape
	Dropped int64  // things so far that could not be kept
}

// EventType implements LogPayload.
func (OutcropImport) EventType() Type { return TypeOutcropImport }
func (OutcropImport) logPayload()     {}

func (p OutcropImport) appendData(dst []byte) []byte {
	return newObject(dst).text("program", p.Program).optText("version", p.Version).text("source", p.Source).
		int("items", p.Items).optInt("bytes", p.Bytes).optText("digest", p.Digest).
		int("mapped", p.Mapped).int("dropped", p.Dropped).end()
}
