// Package logtest makes small logs for the tests of package doctor and those
// below it, and verifies them.
package logtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/wire"
)

// Headers of a session of dsh and of an own one.
const (
	DSHHeader = `{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}`
	OwnHeader = `{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0,"outcrop":1}`
)

// Plain is a plain log file of these lines.
func Plain(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// Turn is one finished turn with a prompt and a reply; it has 6 events.
func Turn(n, seq int) []string {
	return []string{
		fmt.Sprintf(`{"type":"turn/start","seq":%d,"time":1,"data":{"turn":%d}}`, seq, n),
		fmt.Sprintf(`{"type":"step/start","seq":%d,"time":1,"data":{"turn":%d,"step":1}}`, seq+1, n),
		User(seq+2, `"surfaceOp":"append"`),
		Assistant(seq+3, n, `[{"type":"text","text":"yes"}]`),
		fmt.Sprintf(`{"type":"step/end","seq":%d,"time":1,"data":{"turn":%d,"step":1}}`, seq+4, n),
		fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1,"data":{"turn":%d,"reason":{"kind":"completed"}}}`, seq+5, n),
	}
}

// User is a prompt; more are the members behind its data.
func User(seq int, more string) string {
	return fmt.Sprintf(`{"type":"user/message","seq":%d,"time":1,"data":{"content":[{"type":"text","text":"t"}],"source":{"kind":"user"},"role":"user","id":"u%d"},%s}`, seq, seq, more)
}

// Assistant is a reply in step 1 of a turn.
func Assistant(seq, turn int, content string) string {
	return fmt.Sprintf(`{"type":"assistant/message","seq":%d,"time":1,"data":{"turn":%d,"step":1,"message":{"role":"assistant","content":%s,"source":{"kind":"model","provider":"p","model":"m"},"id":"a%d"}},"surfaceOp":"append"}`, seq, turn, content, seq)
}

// Codes are the findings in short: code, seq, line.
func Codes(found []doctor.Finding) (out []string) {
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s %d %d", f.Severity, f.Code, f.Seq, f.Line))
	}
	return out
}

// Result answers call c1 in turn 1.
func Result(seq int, content, more string) string {
	return fmt.Sprintf(`{"type":"tool/result","seq":%d,"time":1,"data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"c1"},"content":[{"type":"tool-result","toolCallId":"c1","content":[{"type":"text","text":%q}],"isError":false}],"role":"user","id":"r"}},%s}`, seq, content, more)
}

// Verify runs a verification to its end.
func Verify(t testing.TB, target doctor.Target, o doctor.Options) ([]doctor.Finding, doctor.Summary) {
	t.Helper()
	seq, sum := doctor.Verify(t.Context(), target, o)
	var found []doctor.Finding
	errors, warnings := 0, 0
	for f := range seq {
		found = append(found, f)
		if f.Code == "" || f.Message == "" {
			t.Errorf("a finding says nothing: %+v", f)
		}
		if f.Severity == doctor.SeverityError {
			errors++
		} else {
			warnings++
		}
	}
	if sum.Errors != errors || sum.Warnings != warnings {
		t.Errorf("summary counts %d errors and %d warnings, there are %d and %d", sum.Errors, sum.Warnings, errors, warnings)
	}
	return found, *sum
}

// Memory is a log file in memory.
func Memory(b []byte, enc wire.Encoding) doctor.Target {
	return doctor.Target{Name: "F", R: bytes.NewReader(b), Size: int64(len(b)), Encoding: enc}
}

// Ended is a turn/end.
func Ended(seq, turn int, kind string) string {
	return fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1,"data":{"turn":%d,"reason":{"kind":%q}}}`, seq, turn, kind)
}

// Note is an event that changes nothing.
func Note(seq int) string {
	return fmt.Sprintf(`{"type":"feedback/record","seq":%d,"time":7,"data":{"n":%d}}`, seq, seq)
}

// EndSeed is a session/end-seed, to be formatted with its seq.
const EndSeed = `{"type":"session/end-seed","seq":%d,"time":1,"data":{}}`
