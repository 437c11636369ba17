package wire

import (
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Compactions had other names and no id of their own once:
//
//	compact/start, compact/summary, compact/end, compact/prune   compaction/…
//	compact/start … compact/end without compactionId             "legacy-compaction:SESSION:SEQ"
//
// SEQ is that of the start. The checkpoint between them, a user/message of the
// plugin compact, gets the id in its source.

// compactNames are the old types with those of today.
var compactNames = map[outcrop.Type]outcrop.Type{
	"compact/start":   outcrop.TypeCompactionStart,
	"compact/summary": outcrop.TypeCompactionSummary,
	"compact/end":     outcrop.TypeCompactionEnd,
	"compact/prune":   outcrop.TypeCompactionPrune,
}

// compact returns an event of an old name under the name of today.
func (u *upgrader) compact(e outcrop.Event) outcrop.Event {
	t, data := compactNames[e.Type], e.Data
	has := jsonwire.Kind(data) != '{' || jsonwire.Get(data, "compactionId") != nil
	switch t {
	case outcrop.TypeCompactionStart:
		if u.compaction = ""; !has {
			u.compaction = "legacy-compaction:" + u.session + ":" + strconv.FormatInt(int64(e.Seq), 10)
			data = withMember(data, "compactionId", u.compaction)
		}
	case outcrop.TypeCompactionSummary, outcrop.TypeCompactionEnd:
		if u.compaction != "" && !has {
			data = withMember(data, "compactionId", u.compaction)
		}
		if t == outcrop.TypeCompactionEnd {
			u.compaction = ""
		}
	}
	return e.Upgraded(t, data)
}

// checkpoint gives the source of a checkpoint the id of its old compaction.
func (u *upgrader) checkpoint(e outcrop.Event) outcrop.Event {
	source := jsonwire.Get(e.Data, "source")
	if !jsonwire.TextIs(jsonwire.Get(source, "kind"), "plugin") || !jsonwire.TextIs(jsonwire.Get(source, "plugin"), "compact") ||
		jsonwire.Get(source, "compactionId") != nil {
		return e
	}
	data := []byte{'{'}
	for k, v := range jsonwire.Members(e.Data) {
		if jsonwire.KeyIs(k, "source") {
			v = withMember(v, "compactionId", u.compaction)
		}
		data = jsonwire.AppendRawMember(data, string(k), v)
	}
	return e.Upgraded(e.Type, append(data, '}'))
}

// withMember is an object with a string behind its members.
func withMember(obj []byte, name, value string) []byte {
	out := append([]byte(nil), obj[:lastBrace(obj)]...)
	return append(jsonwire.AppendStringMember(out, name, value), '}')
}
