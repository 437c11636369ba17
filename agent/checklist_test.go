package agent_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The checklist are the rows of a list of what an agent loop must do, one for
// each case that an earlier engine of this log format tests. Most are subtests,
// named by their rows. These are proven by other tests:
var provenBy = map[string]string{
	"A5":  "TestSteeringAnIdleAgentStartsATurn",
	"A6":  "TestStatusTellsWhatAScreenNeeds",
	"C3":  "TestKeepInboxLeavesPendingInputForTheNextWake",
	"C14": "TestCancelKeepsWhatWasVisibleAndDropsWhatIsPending",
	"R9":  "TestClosingEndsObserversAndKeepsPendingInput",
	"R13": "TestNewRefusesOptionsThatCannotWork",
	"E2":  "TestOddCallsAreAnsweredAndTheTurnGoesOn",
	"L7":  "TestSteeringEntersAtTheStepAfterTheToolsThatRan",
	"L18": "TestCancelKeepsWhatWasVisibleAndDropsWhatIsPending",
	"L19": "TestSteeringEntersAtTheStepAfterTheToolsThatRan",
	"L34": "TestMaxTokensEndsTheTurnAndDropsCutCalls",
	"P1":  "TestEachMessageGetsItsTurnInOrder",
	"P2":  "TestEachMessageGetsItsTurnInOrder",
	"P3":  "TestEachMessageGetsItsTurnInOrder",
	"V1":  "TestEveryAnnouncedRequestCanBeRebuiltFromTheLog",
	"V2":  "TestEveryAnnouncedRequestCanBeRebuiltFromTheLog",
	"X17": "TestEveryAnnouncedRequestCanBeRebuiltFromTheLog",
}

// And these have no meaning here:
var notHere = []struct{ rows, reason string }{
	{"C10 C26 C27", "nothing stands between a wake and its turn: there is no announcement of the state that a listener could answer with a cancel; C9 and C28 are the cases that exist"},
	{"I3 I4 I5 I6", "who is at work is the context and the session id of a request, passed in and not looked up; children are not started by the loop"},
	{"R10 R11 R16", "no listener of states, no register of providers; events are Go types"},
	{"R20", "observers hear of a group when all of it is committed; the session's own tests have it"},
	{"E17", "there is no way to run a turn but through the owner"},
	{"N15 N16 N17", "an agent exists when New returns: what begins with it is a call behind New, L22 has the order"},
	{"V3 V4 V5 V6 V7 V8", "a request is built from the log in one place and given to the provider by value, with no hook between; its digest is logged and derived again by verify"},
	{"L1", "a limit below one is no limit, by its type and its comment"},
	{"L8 L9 L10 L11", "the system prompt is given as a text, without variables"},
	{"L17", "what counts as a copy of a context is decided and tested by package workspace"},
	{"L47 L48 L49", "agents are not made from a configuration by the loop, nor registered"},
	{"X7 X8 X9", "a model is given with all that is known about it, so nothing is looked up before a call"},
	{"X14 X16", "messages, system prompt and tools are not given to hooks; N3 and L29 show that a config is the hook's own"},
	{"U1", "ids of messages of old logs are made by the session when it loads them"},
	{"U2 U3 U4 U5 U6 U7 U8 U9 U10 U11 U12 U13 U14 U15 U16 U19 U20 U21 U22 U23 U24 U25 U26 U27 U28", "creating, locking, loading and publishing sessions are the store's, with its own contract tests"},
	{"T3 T4", "whether a tool may run in parallel is fixed by the tool and does not change while calls wait"},
	{"O3 O4", "the order of tools is that of their names and cannot be configured, so that prompt caches hold"},
}

// Rows cannot get lost: each is a subtest, or stands in one of the two tables.
func TestTheChecklistIsComplete(t *testing.T) {
	rows := map[string]int{}
	for prefix, n := range map[string]int{"A": 9, "I": 6, "C": 33, "R": 37, "E": 19, "N": 23, "V": 8, "L": 50, "P": 3, "Q": 4, "X": 21, "U": 28, "K": 1, "T": 21, "O": 4} {
		for i := range n {
			rows[fmt.Sprint(prefix, i+1)] = 0
		}
	}
	count := func(ids string, where string) {
		for _, id := range strings.Fields(ids) {
			if _, ok := rows[id]; !ok {
				t.Errorf("%s: there is no row %s", where, id)
			}
			rows[id]++
		}
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`"((?:[A-Z]\d+ )+)[a-z]`)
	tests := regexp.MustCompile(`(?m)^func (Test\w+)`)
	var all []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		src, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tests.FindAllSubmatch(src, -1) {
			all = append(all, string(m[1]))
		}
		if !strings.HasPrefix(f.Name(), "checklist_") || f.Name() == "checklist_test.go" {
			continue
		}
		for _, m := range named.FindAllSubmatch(src, -1) {
			count(string(m[1]), f.Name())
		}
	}
	for id, test := range provenBy {
		count(id, "proven")
		if !slices.Contains(all, test) {
			t.Errorf("row %s: there is no %s", id, test)
		}
	}
	for _, x := range notHere {
		count(x.rows, "not here")
		for _, id := range strings.Fields(x.rows) {
			if rows[id] > 1 {
				t.Errorf("row %s has no meaning here and is tested", id)
			}
		}
	}
	for id, n := range rows {
		if n == 0 {
			t.Errorf("row %s is nowhere", id)
		}
	}
}
