package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

func TestToolsOfAProgramAreOfferedAndCalled(t *testing.T) {
	b := up(t, program("fake", "tools"))
	if got := b.text("mcp__fake__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("echo says %q", got)
	}
	if got := b.text("mcp__fake__key", `{"text":""}`); got != "session/7/call-1" {
		t.Errorf("the key of the call came as %q", got)
	}
	if got := b.text("mcp__fake__notify", `{"text":""}`); got != "told" {
		t.Errorf("notify says %q", got)
	}
	if got := b.text("mcp__fake__structured", `{}`); got != `{"a":[2],"b":1}` {
		t.Errorf("structured content came as %q", got)
	}
	b.fails("mcp__fake__fail", `{"text":""}`, "", "it is broken")
	b.fails("mcp__fake__protocol-error", `{}`, "MCP_ERROR", "Error: the MCP server fake answered with an error: ", "not today")
	if _, _, bad := b.reg.Check("c", "mcp__fake__echo", `{"text":1}`); bad == nil {
		t.Error("arguments that break the schema are taken")
	}
}

func TestContentThatIsNoTextBecomesANote(t *testing.T) {
	b := up(t, program("fake", "tools"))
	want := `text
[image, image/png, 8 bytes, not shown: it is no PNG, JPEG, GIF or WebP]
[audio, audio/wav, 4 bytes, not shown]
[link, a, file:///a, text/plain]
[resource file:///b]
beta
[resource file:///c, application/x-c, 2 bytes, not shown]`
	if d := cmp.Diff(want, b.text("mcp__fake__everything", `{"text":""}`)); d != "" {
		t.Error(d)
	}
	if got := b.text("mcp__fake__image", `{"text":""}`); got != "[image, image/png, 3 x 2, 75 bytes, not shown: this session keeps no images]" {
		t.Error(got)
	}
	if got := b.text("mcp__fake__crowd", `{"text":""}`); !strings.HasSuffix(got, "\n999\n[500 more parts were left out]") {
		t.Errorf("...%s", got[len(got)-60:])
	}
}

type keeper struct {
	kept [][]byte
	err  error
}

func (k *keeper) Put(_ context.Context, data []byte) (string, error) {
	k.kept = append(k.kept, data)
	return "sha256:abc", k.err
}

func TestAnImageIsKeptAsAnObject(t *testing.T) {
	k := &keeper{}
	b := connect(t, Options{Objects: k}, program("fake", "tools"))
	out := b.call(t.Context(), "mcp__fake__image", `{"text":""}`)
	if len(out.Content) != 1 || out.Content[0].Type != message.ImageBlock {
		t.Fatalf("%+v", out)
	}
	if got, want := string(out.Content[0].Attachment), `{"attachmentId":"sha256:abc","mediaType":"image/png","width":3,"height":2,"bytes":75}`; got != want {
		t.Errorf("attachment %s, want %s", got, want)
	}
	if d := cmp.Diff([][]byte{picture(3, 2)}, k.kept); d != "" {
		t.Error(d)
	}
	k.err = errors.New("disk full")
	if got := b.text("mcp__fake__image", `{"text":""}`); !strings.Contains(got, "it could not be kept") {
		t.Error(got)
	}
}

func TestHintsCountOnlyFromATrustedServer(t *testing.T) {
	trusted := program("trusted", "tools")
	trusted.Trust = true
	b := up(t, program("other", "tools"), trusted)
	for name, want := range map[string]struct {
		class    tool.Class
		parallel bool
	}{
		"mcp__other__echo":   {tool.MCP, true},
		"mcp__other__fail":   {tool.MCP, false},
		"mcp__trusted__echo": {tool.Read, true},
		"mcp__trusted__fail": {tool.MCP, false},
	} {
		if tl := b.reg.Get(name); tl.Class() != want.class || tl.Parallel() != want.parallel {
			t.Errorf("%s: class %s, parallel %v", name, tl.Class(), tl.Parallel())
		}
	}
}

func TestOneThousandToolsAreListedSorted(t *testing.T) {
	b := up(t, program("many", "many"))
	tools := b.set.Tools()
	if len(tools) != 1000 {
		t.Fatalf("%d tools", len(tools))
	}
	for i, tl := range tools {
		if want := fmt.Sprintf("mcp__many__tool-%04d", i); tl.Name() != want {
			t.Fatalf("tool %d is %s, want %s", i, tl.Name(), want)
		}
	}
	if got := b.text("mcp__many__tool-0815", `{"text":"!"}`); got != "815!" {
		t.Error(got)
	}
}

func TestABadSchemaDropsThatToolAlone(t *testing.T) {
	b := up(t, program("bad", "bad-tools"))
	if tools := b.set.Tools(); len(tools) != 1 || tools[0].Name() != "mcp__bad__good" || tools[0].Description() != "The tool good of the MCP server bad." ||
		string(tools[0].Schema()) != `{"properties":{"a":{"type":"integer"},"z":{"type":"string"}},"type":"object"}` {
		t.Errorf("%v", tools)
	}
	for _, want := range []string{
		`tool=good err="it is listed twice"`, `tool="no schema"`, "tool=array", "tool=text", `tool="no type"`, "tool=unresolved",
		"tool=elsewhere", "tool=pattern", "tool=nul", "tool=big",
	} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("nothing says %s", want)
		}
	}
}

func TestAListWithoutAnEndIsCut(t *testing.T) {
	b := up(t, program("endless", "endless"))
	if n := len(b.set.Tools()); n != maxTools {
		t.Errorf("%d tools", n)
	}
	if !strings.Contains(b.log.String(), "no end of tools") {
		t.Error("nothing says that the list was cut")
	}
}

func TestServersThatSpeakBadlyAreUnderstood(t *testing.T) {
	for _, kind := range []string{"picky", "chatty"} {
		t.Run(kind, func(t *testing.T) {
			b := up(t, program("raw", kind))
			for range 3 {
				if got := b.text("mcp__raw__echo", `{}`); got != "hello" {
					t.Error(got)
				}
			}
		})
	}
	if b := up(t, program("raw", "no-tools")); len(b.set.Tools()) != 0 {
		t.Error("a server without tools has some")
	}
}

func TestOneServerThatDoesNotComeUpStopsNoOther(t *testing.T) {
	o := Options{times: short}
	o.times.connect, o.times.slow = 2*time.Second, 100*time.Millisecond
	b := connect(t, o,
		program("mute", "mute"), program("good", "tools"), program("dead", "dead"), Server{Name: "none", Command: []string{"no-such-program-here"}},
		Server{Name: "both", Command: []string{"a"}, URL: "http://127.0.0.1/"}, Server{Name: "neither"}, program("good", "tools"), program(" ", "tools"),
		Server{Name: "nowhere", Command: []string{os.Args[0]}, Dir: filepath.Join(t.TempDir(), "none")}, Server{Name: "address", URL: "ftp://127.0.0.1/"})
	var got []string
	for _, err := range b.errs {
		got = append(got, err.Error())
	}
	want := []string{
		"mcp server mute: it did not answer in time",
		"mcp server dead: it ended (exit status 7): Error: no \ufffd[31mlicence",
		"mcp server none: there is no program no-such-program-here",
		"mcp server both: give either command or url",
		"mcp server neither: give either command or url",
		"mcp server good: there are two of that name",
		"mcp server: it has no name",
		"", // what the system says of a directory that is not there
		"mcp server address: url must be an address such as https://HOST/mcp",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	if !strings.Contains(b.log.String(), `mcp server is slow to come up; waiting for it" server=mute "at most"=2s`) {
		t.Errorf("nothing is said about waiting: %s", b.log)
	}
	for i := range want {
		if want[i] != "" && got[i] != want[i] {
			t.Errorf("got  %q\nwant %q", got[i], want[i])
		}
	}
	if got := b.text("mcp__good__echo", `{"text":"x"}`); got != "x" {
		t.Error(got)
	}
}

func TestConnectingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set, errs := Connect(ctx, []Server{program("fake", "tools"), program("mute", "mute")}, Options{times: short})
	if len(errs) != 2 || !errors.Is(errs[0], context.Canceled) || len(set.Tools()) != 0 {
		t.Errorf("%v, %d tools", errs, len(set.Tools()))
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	noGoroutines(t)
}

func TestAProgramThatEndsInACallIsStartedAgain(t *testing.T) {
	b := up(t, program("fake", "tools"))
	first := b.text("mcp__fake__pid", `{"text":""}`)
	b.fails("mcp__fake__exit", `{"text":""}`, "MCP_LOST", "Error: the MCP server fake went away during the call; it may have been done, in part or in whole: it ended (exit status 3)")
	if second := b.text("mcp__fake__pid", `{"text":""}`); second == first {
		t.Error("the process is the same")
	}
	b.fails("mcp__fake__panic", `{"text":""}`, "MCP_LOST", "exit status 2")
	if got := b.text("mcp__fake__echo", `{"text":"still here"}`); got != "still here" {
		t.Error(got)
	}
	if !strings.Contains(b.said.String(), "fake: panic: a bug of the server") {
		t.Error("what the program wrote to its standard error is not there")
	}
}

func TestAProgramThatIsKilledInACallIsStartedAgain(t *testing.T) {
	b := up(t, program("fake", "tools"))
	go func() {
		pid, _ := strconv.Atoi(b.said.await(`hanging (\d+)`))
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}()
	b.fails("mcp__fake__hang", `{"text":""}`, "MCP_LOST", "it ended (")
	if got := b.text("mcp__fake__echo", `{"text":"back"}`); got != "back" {
		t.Error(got)
	}
}

func TestAServerThatDiesAgainAndAgainHasToWait(t *testing.T) {
	b := up(t, program("fake", "tools"))
	for range 2 {
		b.fails("mcp__fake__exit", `{"text":""}`, "MCP_LOST")
	}
	b.fails("mcp__fake__echo", `{"text":"x"}`, "MCP_UNAVAILABLE", "Error: the MCP server fake is not there: it failed 2 times in a row; the next try is in 1s")
	b.now = b.now.Add(time.Second)
	b.fails("mcp__fake__exit", `{"text":""}`, "MCP_LOST")
	b.fails("mcp__fake__echo", `{"text":"x"}`, "MCP_UNAVAILABLE", "it failed 3 times in a row; the next try is in 2s")
	b.now = b.now.Add(2 * time.Second)
	if got := b.text("mcp__fake__echo", `{"text":"well"}`); got != "well" {
		t.Error(got)
	}
	b.fails("mcp__fake__exit", `{"text":""}`, "MCP_LOST") // a good call wiped the record
	if got := b.text("mcp__fake__echo", `{"text":"well"}`); got != "well" {
		t.Error(got)
	}
}

func TestWaitingTimesDoubleUpToAMinute(t *testing.T) {
	now := time.Unix(1, 0)
	s := newServer(Server{Name: "x"}, Options{Now: func() time.Time { return now }, times: defaultTimes})
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		s.note(false)
		if got := max(0, s.wait.Sub(now)); got != want*time.Second {
			t.Errorf("after %d failures: %s", i+1, got)
		}
	}
	for range 100 {
		s.note(false)
	}
	if got := s.wait.Sub(now); got != maxWait {
		t.Errorf("after many failures: %s", got)
	}
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	b := up(t, program("fake", "tools"))
	pid := b.text("mcp__fake__pid", `{"text":""}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.said.await("hanging")
		cancel()
	}()
	b.failed(b.call(ctx, "mcp__fake__hang", `{"text":""}`), "ABORTED")
	b.said.await("cancelled")
	if got := b.text("mcp__fake__pid", `{"text":""}`); got != pid {
		t.Error("the server was started again, and it had shown that it lives")
	}
}

func TestACallThatTakesTooLongEndsAndTheNextOneWorks(t *testing.T) {
	s := program("fake", "tools")
	s.Timeout = 500 * time.Millisecond
	b := up(t, s)
	b.fails("mcp__fake__hang", `{"text":""}`, "MCP_TIMEOUT", "did not answer within 500ms; the call may have been done, in part or in whole")
	b.said.await("cancelled")
	if got := b.text("mcp__fake__echo", `{"text":"next"}`); got != "next" {
		t.Error(got)
	}
}

func TestAServerThatGivesNoSignOfLifeIsStartedAgain(t *testing.T) {
	s := program("deaf", "deaf")
	s.Timeout = 500 * time.Millisecond
	b := up(t, s)
	b.fails("mcp__deaf__echo", `{}`, "MCP_TIMEOUT")
	// The next call is one that the server never reads: the pipe is full.
	b.fails("mcp__deaf__echo", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`, "MCP_TIMEOUT")
	if !strings.Contains(b.log.String(), "mcp server is gone; starting it again") {
		t.Errorf("it was not started again: %s", b.log)
	}
}

func TestAServerThatFloodsIsCutOff(t *testing.T) {
	for _, kind := range []string{"flood-line", "flood-notes", "flood-asks"} {
		t.Run(kind, func(t *testing.T) {
			b := up(t, program("flood", kind))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.fails("mcp__flood__echo", `{}`, "MCP_LOST", "it sent more than a call may")
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 128<<20 {
				t.Errorf("%d bytes are still held", grown)
			}
			b.fails("mcp__flood__echo", `{}`, "MCP_LOST")
		})
	}
}

// nested is an array in an array, so many times.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestStrangeAnswersAreErrors(t *testing.T) {
	b := up(t, program("strange", "strange"))
	quote := func(s string) string { return `{"text":` + strconv.Quote(s) + `}` }
	for _, c := range []struct{ name, answer, code, says string }{
		{"an answer that is nested too deep", `{"result":{"content":[],"structuredContent":` + nested(1000) + `}}`, "MCP_ERROR", "did the call and gave an answer that cannot be read: it is nested deeper than 1000 levels"},
		{"one nested deeper than is ever read", `{"result":{"structuredContent":` + nested(20_000) + `}}`, "MCP_ERROR", "cannot be read: it is nested deeper than 1000 levels"},
		{"content that is no list", `{"result":{"content":7}}`, "MCP_ERROR", "cannot be read"},
		{"a part that is null", `{"result":{"content":[null]}}`, "MCP_ERROR", "cannot be read"},
		{"an image that is not base64", `{"result":{"content":[{"type":"image","data":"%"}]}}`, "MCP_ERROR", "cannot be read"},
		{"a wish for input", `{"result":{"resultType":"input_required","inputRequests":{},"content":[]}}`, "", "asks for input, which is not supported"},
		{"the SDK's own code for a connection that closes", `{"error":{"code":-32004,"message":"gone"}}`, "MCP_LOST", "may have been done"},
		{"a wrong version", `{"x":1,"jsonrpc":"1.0"}`, "MCP_LOST", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			b.fails("mcp__strange__echo", quote(c.answer), c.code, c.says)
			if got := b.text("mcp__strange__echo", quote(`{"result":{"content":[{"type":"text","text":"fine"}]}}`)); got != "fine" {
				t.Error(got)
			}
		})
	}
	for _, c := range []struct{ name, answer, want string }{
		{"no content at all", `{"result":{}}`, "(no output)"},
		{"a resource without contents", `{"result":{"content":[{"type":"resource"}]}}`, "[resource, empty]"},
		{"an unknown kind of content", `{"result":{"content":[{"type":"text","text":"a"},{"type":"hologram","data":{"type":"text"}}, {"type":"text","text":"b"}]}}`, "a\n[content of an unknown kind, hologram, not shown]\nb"},
		{"content without a kind", `{"result":{"content":[{"text":"a"}],"content":[{"text":"b"}]}}`, "[content of an unknown kind, not shown]"},
		{"content of an odd kind", `{"result":{"content":[{"type":"\u001b]0;x","type":7}]}}`, "[content of an unknown kind, not shown]"},
		{"an answer that is nested as deep as it may be", `{"result":{"content":[{"type":"text","text":"fine"}],"structuredContent":` + nested(998) + `}}`, "fine"},
		{"a tool use of sampling", `{"result":{"content":[{"type":"tool_use","id":"1","name":"x"}]}}`, "[content of an unknown kind, not shown]"},
		{"a link with control characters", `{"result":{"content":[{"type":"resource_link","uri":"a\nb","name":"\u001b[2J"}]}}`, "[link, \ufffd[2J, a b]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			if got := b.text("mcp__strange__echo", quote(c.answer)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestToolsDoNotChangeInASession(t *testing.T) {
	s := program("other", "other-tools")
	s.Env = append(s.Env, "OUTCROP_TEST_MARK="+filepath.Join(t.TempDir(), "mark"))
	b := up(t, s)
	b.fails("mcp__other__first", `{}`, "MCP_LOST")
	b.fails("mcp__other__first", `{}`, "MCP_LOST")
	if tools := b.set.Tools(); len(tools) != 1 || tools[0].Name() != "mcp__other__first" {
		t.Errorf("%v", tools)
	}
	if !strings.Contains(b.log.String(), "they are taken at the next start") {
		t.Error("nothing says that the tools changed")
	}
}

func TestClosingEndsACallThatRuns(t *testing.T) {
	b := up(t, program("fake", "tools"))
	go func() {
		b.said.await("hanging")
		_ = b.set.Close() // told again at the end of the test
	}()
	b.fails("mcp__fake__hang", `{"text":""}`, "MCP_UNAVAILABLE", "was closed")
	b.fails("mcp__fake__echo", `{"text":"x"}`, "MCP_UNAVAILABLE", "closed")
}
