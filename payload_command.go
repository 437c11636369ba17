package outcrop

// ApprovalAsked says that a person is asked about a call.
type ApprovalAsked struct{ ID, ToolName, CallID, Reason string }

// ApprovalDecided is the answer: allowed-once, rejected, cancelled or
// unavailable.
type ApprovalDecided struct{ ID, Outcome string }

// ApprovalPolicy says whether calls are asked about: ask or never.
type ApprovalPolicy struct{ Policy string }

// CommandRun says that a command of the program was run.
type CommandRun struct {
	CommandID string
	Name      string
	Args      string
	Source    string
}

// CommandDone is how it ended: kind success or error. SourceEventSeq names the
// event that holds the outcome, or is nil.
type CommandDone struct {
	CommandID      string
	Kind           string
	Text           string
	SourceEventSeq *Seq
}

// SessionTitle is a title; the last one counts.
type SessionTitle struct {
	Title       string
	MessageSeqs []Seq
	Source      string
}

func (ApprovalAsked) EventType() Type   { return TypeApprovalAsked }
func (ApprovalDecided) EventType() Type { return TypeApprovalDecided }
func (ApprovalPolicy) EventType() Type  { return TypeApprovalPolicy }
func (CommandRun) EventType() Type      { return TypeCommandRun }
func (CommandDone) EventType() Type     { return TypeCommandDone }
func (SessionTitle) EventType() Type    { return TypeSessionTitle }
func (ApprovalAsked) logPayload()       {}
func (ApprovalDecided) logPayload()     {}
func (ApprovalPolicy) logPayload()      {}
func (CommandRun) logPayload()          {}
func (CommandDone) logPayload()         {}
func (SessionTitle) logPayload()        {}

func (p ApprovalAsked) appendData(dst []byte) []byte {
	return newObject(dst).text("id", p.ID).text("toolName", p.ToolName).optText("callId", p.CallID).optText("reason", p.Reason).end()
}

func (p ApprovalDecided) appendData(dst []byte) []byte {
	return newObject(dst).text("id", p.ID).text("outcome", p.Outcome).end()
}

func (p ApprovalPolicy) appendData(dst []byte) []byte {
	return newObject(dst).text("policy", p.Policy).end()
}

func (p CommandRun) appendData(dst []byte) []byte {
	return newObject(dst).text("commandId", p.CommandID).text("name", p.Name).optText("args", p.Args).text("source", p.Source).end()
}

func (p CommandDone) appendData(dst []byte) []byte {
	o := newObject(dst).text("commandId", p.CommandID).text("kind", p.Kind).optText("text", p.Text)
	if p.SourceEventSeq != nil {
		o.int("sourceEventSeq", int64(*p.SourceEventSeq))
	}
	return o.end()
}

func (p SessionTitle) appendData(dst []byte) []byte {
	return newObject(dst).text("title", p.Title).seqs("messageSeqs", p.MessageSeqs).text("source", p.Source).end()
}
