package outcrop

// Type is an event type. Any string can stand in a log; Known says whether
// this program knows what it means.
type Type string

// The event types that the engine itself reads or writes. The others of dsh's
// vocabulary are known by name and pass through.
const (
	TypeTurnStart         Type = "turn/start"
	TypeTurnEnd           Type = "turn/end"
	TypeStepStart         Type = "step/start"
	TypeStepEnd           Type = "step/end"
	TypeUserMessage       Type = "user/message"
	TypeAssistantMessage  Type = "assistant/message"
	TypeToolResult        Type = "tool/result"
	TypeContextMessage    Type = "context/message"
	TypeAssistantChunk    Type = "assistant/chunk"
	TypeToolCall          Type = "tool/call"
	TypeRequestHeader     Type = "request/header"
	TypeRequestContext    Type = "request/context"
	TypeEndSeed           Type = "session/end-seed"
	TypeInboxSpliced      Type = "agent/inbox/spliced"
	TypeCompactionStart   Type = "compaction/start"
	TypeCompactionSummary Type = "compaction/summary"
	TypeCompactionEnd     Type = "compaction/end"
	TypeCompactionPrune   Type = "compaction/prune"
	TypeLLMRetry          Type = "llm/retry"
	TypeLLMRetryStarted   Type = "llm/retry-started"
	TypeApprovalAsked     Type = "approval/asked"
	TypeApprovalDecided   Type = "approval/decided"
	TypeApprovalPolicy    Type = "approval/policy"
	TypeCommandRun        Type = "command/run"
	TypeCommandDone       Type = "command/done"
	TypeSessionTitle      Type = "session/title"
	TypeTodoWrite         Type = "todo/write"

	// Ours: ignorable and never on the surface.
	TypeOutcropRequest    Type = "outcrop/request"
	TypeOutcropEdit       Type = "outcrop/edit"
	TypeOutcropSummarizer Type = "outcrop/summarizer-call"
	TypeOutcropRewind     Type = "outcrop/rewind"
	TypeOutcropPin        Type = "outcrop/pin"
	TypeOutcropTag        Type = "outcrop/tag"
	TypeOutcropRedacted   Type = "outcrop/redacted"
	TypeOutcropImport     Type = "outcrop/import"
)

// Names of packed rows and of the header line. A log never has an event with
// one of these types: a store could not tell it from a row.
const (
	rowText      = "text-chunks"
	rowReasoning = "reasoning-chunks"
	rowToolCall  = "tool-call-chunks"
	rowSession   = "session"
)

// class is what admission needs to know about a type.
type class uint8

const (
	classUnknown class = iota
	classDSH           // dsh's vocabulary, log-only
	classOurs          // ours, log-only
	classUser          // surface types
	classAssistant
	classResult
	classContext
	classRow    // not an event type
	classLegacy // refused wherever it stands
)

// typeID is a type's number inside a log: an index into typeNames for the
// types listed here, higher ones are given per log.
type typeID uint32

var typeTable = func() (names []Type) {
	names = []Type{
		TypeAssistantChunk, TypeTurnStart, TypeTurnEnd, TypeStepStart, TypeStepEnd,
		TypeUserMessage, TypeAssistantMessage, TypeToolResult, TypeContextMessage, TypeToolCall,
		TypeRequestHeader, TypeRequestContext, TypeEndSeed, TypeInboxSpliced,
		TypeCompactionStart, TypeCompactionSummary, TypeCompactionEnd, TypeCompactionPrune,
		TypeLLMRetry, TypeLLMRetryStarted, TypeApprovalAsked, TypeApprovalDecided, TypeApprovalPolicy,
		TypeCommandRun, TypeCommandDone, TypeSessionTitle, TypeTodoWrite,
		"agent-preset/selected", "feedback/record", "goal/change", "hook/invoked", "hook/result",
		"permission/preset", "plan/mode", "sandbox/mode", "schedule/change",
		"session/title-llm-request", "subagent/descriptor",
		"team/member", "team/task", "team/message/queued", "team/message/delivered",
		"tool/code-dispatch", "tool/code-dispatch-start",
		"tool-workflow/run-start", "tool-workflow/run-end", "tool-workflow/agent-start", "tool-workflow/agent-end",
		"web/deepseek-search-llm-request",
		TypeOutcropRequest, TypeOutcropEdit, TypeOutcropSummarizer, TypeOutcropRewind,
		TypeOutcropPin, TypeOutcropTag, TypeOutcropRedacted, TypeOutcropImport,
		rowText, rowReasoning, rowToolCall, rowSession, "request/header-delta", "mode/set",
	}
	return names
}()

// Positions in typeTable that code compares with.
const (
	idChunk typeID = iota
	idTurnStart
	idTurnEnd
	idStepStart
	idStepEnd
	idUser
	idAssistant
	idResult
	idContext
	idToolCall
	idRequestHeader
	idRequestContext
	idEndSeed
)

// surface reports whether the type stands on the surface.
func (id typeID) surface() bool { return id >= idUser && id <= idContext }

var (
	typeIDs     = map[Type]typeID{}
	typeClasses = make([]class, 0, 64)
)

func init() {
	for i, t := range typeTable {
		typeIDs[t] = typeID(i)
		c := classDSH
		switch t {
		case TypeUserMessage:
			c = classUser
		case TypeAssistantMessage:
			c = classAssistant
		case TypeToolResult:
			c = classResult
		case TypeContextMessage:
			c = classContext
		case rowText, rowReasoning, rowToolCall, rowSession:
			c = classRow
		case "request/header-delta", "mode/set":
			c = classLegacy
		default:
			if len(t) > 8 && t[:8] == "outcrop/" {
				c = classOurs
			}
		}
		typeClasses = append(typeClasses, c)
	}
}

// typeTag is a type's place in typeTable and one more, so that an event need
// not look it up again.
type typeTag uint16

const (
	noTag      typeTag = 0         // not looked up yet
	foreignTag typeTag = 1<<16 - 1 // not in the table
	chunkTag           = typeTag(idChunk + 1)
)

func (t Type) tag() typeTag {
	if t == TypeAssistantChunk {
		return chunkTag
	}
	if id, ok := typeIDs[t]; ok {
		return typeTag(id + 1)
	}
	return foreignTag
}

func (g typeTag) class() class {
	if g == foreignTag {
		return classUnknown
	}
	return typeClasses[g-1]
}

func (t Type) class() class { return t.tag().class() }

// Known reports whether this program knows the type: dsh's 48 types,
// context/message and the types that begin with outcrop/ and are listed here.
func (t Type) Known() bool {
	c := t.class()
	return c > classUnknown && c < classRow
}

// Surface reports whether events of the type stand on the surface.
func (t Type) Surface() bool { return t.class().surface() }

// DSH reports whether dsh 0.1 knows the type.
func (t Type) DSH() bool {
	switch t.class() {
	case classDSH, classUser, classAssistant, classResult:
		return true
	}
	return false
}

func (c class) surface() bool { return c >= classUser && c <= classContext }

// internType finds the type for a JSON string token without allocating; noTag
// when it is not in the table.
func internType(tok []byte) (Type, typeTag) {
	if len(tok) < 2 || tok[0] != '"' {
		return "", noTag
	}
	if string(tok) == `"assistant/chunk"` {
		return TypeAssistantChunk, chunkTag
	}
	if id, ok := typeIDs[Type(tok[1:len(tok)-1])]; ok {
		return typeTable[id], typeTag(id + 1)
	}
	return "", noTag
}
