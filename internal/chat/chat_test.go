package chat

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/work"
)

func TestAConversationOnScreensOfAnyWidth(t *testing.T) {
	for _, cols := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(cols), func(t *testing.T) {
			p := newPlace(t,
				`{"script":1,"model":"talk","window":32000,"piece":5}`,
				`{"reasoning":"I look.","text":"Let me **look** at the file, because what it holds is what the answer depends on, in the end.","tools":[{"name":"read","args":{"path":"a.txt"}},{"name":"read","args":{"path":"missing.txt"}}]}`,
				`{"text":"# Findings\n\nThe file says:\n\n`+"```"+`\nalpha\n`+"```"+`\n\n- it is *short*\n- it is a file of one line, and that line is so short that nothing more can be said about it\n\n| name | size |\n|---|---|\n| a.txt | 6 |\n"}`,
				`{"text":"You are welcome."}`)
			p.file("work/a.txt", "alpha\n")
			c := p.chat(cols, 50, work.Flags{}, false)
			c.Line("what is in a.txt?")
			c.sees("a.txt")
			c.idle("Findings", "6")
			c.Type(tty.Key{Name: tty.Paste, Text: "thank\nyou"})
			c.Type(tty.Key{Name: tty.Enter})
			p.golden(fmt.Sprint("conversation-", cols), withoutGauge(c.idle("You are welcome.")))
		})
	}
}

// withoutGauge leaves the tokens out: the tools and the system prompt are in
// them, and change.
func withoutGauge(screen string) string {
	lines := strings.Split(screen, "\n")
	for i, l := range lines {
		if at := strings.Index(l, "  "); strings.Contains(l, "k/32k") && at > 0 {
			lines[i] = l[:at]
		}
	}
	return strings.Join(lines, "\n")
}

func TestWithColoursNothingButColoursIsAdded(t *testing.T) {
	p := newPlace(t, `{"text":"A **bold** \u001b[2J word and \u202e`+"`code`"+`.","tools":[{"name":"a\u001b[31m","args":{"path":"\u001b]0;x\u0007"}}]}`, `{"text":"Done."}`)
	c := p.chat(80, 24, work.Flags{}, true)
	c.Line("go")
	has(t, c.idle("Done."), `A bold \e[2J word and \u{202e}code.`, `a\e[31m`)
}

func TestASessionIsStoredWithItsFirstMessage(t *testing.T) {
	p := newPlace(t, `{"text":"Hello."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("/help")
	c.sees("/clear-pending")
	c.done()
	c.Line("/quit")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "home", "sessions")); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	c = p.chat(80, 24, work.Flags{}, false)
	c.Line("hello")
	c.idle("Hello.")
	c.press("d")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	p.logs("id-2", `"text":"Hello."`, `"type":"turn/end"`)
}

func TestCtrlCStopsTheTurnAndGivesBackWhatWasPending(t *testing.T) {
	p := newPlace(t, `{"text":"The beginning of a long answer","cut":"hang","after":1}`, `{"text":"Good."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("a long one")
	c.sees("The beginnin")
	c.Line("and this")
	c.sees("queued: and this", "1 pending")
	c.Text("draft")
	c.press("c")
	all := c.sees("(cut off here)", "stopped", "> and this\n  draft")
	hasNot(t, all, "queued:")
	c.press("u")
	c.Type(tty.Key{Name: tty.Backspace})
	c.press("u")
	c.Line("again")
	c.idle("Good.")
	c.Text("not sent")
	c.sees("> not sent")
	c.press("c")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	p.logs("id-1", `"outcome":"canceled"`, `"reason":{"kind":"aborted","reason":{"kind":"user"}}`)
	// What was not sent is in the history.
	c = p.chat(80, 24, work.Flags{}, false)
	c.Type(tty.Key{Name: tty.Up})
	c.sees("> not sent")
	c.Type(tty.Key{Name: tty.Up})
	c.sees("> again")
	if fi, err := os.Stat(filepath.Join(p.dir, "home", "state", "chat-history")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the history file: %v, %v", fi, err)
	}
}

func TestASecondCtrlCLeavesWhileTheTurnEnds(t *testing.T) {
	p := newPlace(t, `{"tools":[{"name":"shell","args":{"command":"trap '' TERM INT; while :; do sleep 1; done"}}]}`, `{"text":"never"}`)
	c := p.chat(80, 24, work.Flags{Yes: true}, false)
	c.Line("go")
	c.sees("shell trap", "running")
	c.press("c")
	c.press("c")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	p.logs("id-1", `"reason":{"kind":"aborted","reason":{"kind":"user"}}`, `"type":"tool/result"`)
}

func TestASteerEntersAtTheNextStep(t *testing.T) {
	p := newPlace(t,
		`{"tools":[{"name":"shell","args":{"command":"until [ -e go ]; do sleep 0.02; done"}}]}`,
		`{"expect":{"contains":"the other file"},"text":"I take the other one."}`)
	c := p.chat(80, 24, work.Flags{Yes: true}, false)
	c.Line("one file")
	c.sees("⠋ shell until")
	c.Line("no, the other file")
	c.sees("queued: no, the other file", "1 pending")
	p.file("work/go", "")
	all := c.idle("I take the other one.")
	if strings.Index(all, "> no, the other file") < strings.Index(all, "✓ shell until") {
		t.Errorf("the steer does not come after the call:\n%s", all)
	}
	hasNot(t, all, "queued:", "pending")
}

func TestApproval(t *testing.T) {
	write := `{"tools":[{"name":"write","args":{"path":"new.txt","content":"one\ntwo\n"}}]}`
	for _, tc := range []struct {
		name    string
		answers func(c *talkTest)
		asked   int
		written bool
		said    string
		logged  string
	}{
		{"y allows the call once", func(c *talkTest) { c.Text("y"); c.question(2); c.Text("n") }, 2, true, "yes, once", `"outcome":"allowed-once"`},
		{"a allows it for the session", func(c *talkTest) {
			c.Text("a")
			c.sees("for the whole session?")
			c.Type(tty.Key{Name: tty.Enter})
		}, 1, true, "yes, this exact call", `"outcome":"allowed-once"`},
		{"n refuses", func(c *talkTest) { c.Text("n"); c.question(2); c.Text("N") }, 2, false, "\nno\n", `"outcome":"rejected"`},
		{"Enter refuses", func(c *talkTest) {
			c.Type(tty.Key{Name: tty.Enter})
			c.question(2)
			c.Type(tty.Key{Name: tty.Enter})
		}, 2, false, "\nno\n", `Error: not approved by the user"`},
		{"e tells the model why, and Escape goes back", func(c *talkTest) {
			c.Text("e")
			c.sees("\nwhy:")
			c.Text("not")
			c.Type(tty.Key{Name: tty.Escape})
			c.sees("[y] once")
			c.Text("e")
			c.Line("not there")
			c.question(2)
			c.Text("n")
		}, 2, false, "no: not there", `Error: not approved by the user: not there"`},
		{"other keys and pastes answer nothing", func(c *talkTest) {
			c.Type(tty.Key{Name: tty.Paste, Text: "y"}, tty.Key{Name: tty.Tab}, tty.Key{Name: tty.Escape}, tty.Key{Name: tty.Text, Text: "x"})
			c.Text("n")
			c.question(2)
			c.Text("n")
		}, 2, false, "\nno\n", `"outcome":"rejected"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlace(t, write, write, `{"text":"Done."}`)
			c := p.chat(80, 40, work.Flags{}, false)
			c.Line("go")
			c.question(1)
			tc.answers(c)
			all := c.idle("Done.")
			if n := strings.Count(all, "allow write?"); n != tc.asked {
				t.Errorf("asked %d times, want %d:\n%s", n, tc.asked, all)
			}
			has(t, all, "new.txt", "| +one\n", "| +two\n", "  in "+p.dir[:20], tc.said)
			p.logs("id-1", tc.logged)
			if _, err := os.Stat(filepath.Join(p.dir, "work", "new.txt")); (err == nil) != tc.written {
				t.Errorf("written: %v", err == nil)
			}
		})
	}
}

// question waits for question n, lets the pause go by that it needs, and waits
// until it takes keys.
func (c *talkTest) question(n int) {
	c.t.Helper()
	c.until(func(all string) bool { return strings.Count(all, "allow write?") >= n })
	c.later(settle)
	c.sees("[y] once")
}

// done waits until no action runs: meanwhile Enter is refused.
func (c *talkTest) done() {
	c.t.Helper()
	c.until(func(all string) bool {
		lines := strings.Split(strings.TrimSpace(all), "\n")
		return !strings.Contains(lines[len(lines)-1], "  /")
	})
}

func (c *talkTest) until(wanted func(string) bool) {
	c.t.Helper()
	ctx, cancel := contextWithDeadline()
	defer cancel()
	if _, err := c.Wait(ctx, wanted); err != nil {
		c.t.Fatal(err)
	}
}

func TestWhatAPersonTypesWhenAQuestionComesDoesNotAnswerIt(t *testing.T) {
	p := newPlace(t, `{"tools":[{"name":"shell","args":{"command":"until [ -e go ]; do sleep 0.02; done"}},{"name":"write","args":{"path":"new.txt","content":"x"}}]}`,
		`{"expect":{"contains":"yes, why not"},"text":"Done."}`)
	c := p.chat(80, 40, work.Flags{Approve: "ask"}, false)
	c.Line("go")
	c.until(func(all string) bool { return strings.Contains(all, "allow shell?") })
	c.later(settle)
	c.sees("[y] once")
	c.Text("y")
	c.sees("yes, once")
	c.Text("yes, wh")
	c.sees("> yes, wh")
	p.file("work/go", "")
	c.sees("allow write?", "a question waits for a pause")
	c.Text("y not")
	c.sees("> yes, why not")
	c.Type(tty.Key{Name: tty.Enter}) // a steer, no answer
	c.sees("queued: yes, why not")
	c.later(settle)
	c.sees("[y] once")
	c.Text("n")
	c.idle("Done.")
	p.logs("id-1", `"type":"turn/end"`)
	log := p.log("id-1")
	if strings.Count(log, `"outcome":"allowed-once"`) != 1 || strings.Count(log, `"outcome":"rejected"`) != 1 {
		t.Errorf("the answers are others:\n%s", log)
	}
}

func TestCtrlCAtAQuestionStopsTheTurn(t *testing.T) {
	p := newPlace(t, `{"tools":[{"name":"write","args":{"path":"new.txt","content":"x"}}]}`, `{"text":"Next."}`)
	c := p.chat(80, 40, work.Flags{}, false)
	c.Line("go")
	c.question(1)
	c.press("c")
	c.idle("stopped")
	p.logs("id-1", `"outcome":"cancelled"`, `"ABORTED_BEFORE_DISPATCH"`)
	c.Line("next")
	c.idle("Next.")
}

func TestAnInterruptedSessionSaysWhatWasCutAndWaits(t *testing.T) {
	p := newPlace(t, `{"text":"Half of it came","cut":"hang","after":1}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("tell me")
	c.sees("Half of it c")
	// What the store has by now is what a crash leaves.
	log := p.crashed(c, "crashed.jsonl")
	c.press("c")
	c.press("c")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	p.file("go-on.jsonl", `{"expect":{"contains":"Half of it"},"text":"The rest."}`+"\n")
	c = p.chat(80, 24, work.Flags{Session: log, Script: "go-on.jsonl"}, false)
	c.sees("> tell me", "Half of it c", "turn 1 was cut off when the program that ran it stopped; of the reply 12\ncharacters had come", "/continue goes on from there")
	c.Line("/continue")
	c.idle("> Continue.", "The rest.")
}

func TestAfterAnErrorThatAPersonMustMendNothingIsOffered(t *testing.T) {
	for _, tc := range []struct {
		code    string
		offered bool
	}{{"AUTH", false}, {"QUOTA", false}, {"CONTEXT_WINDOW_EXCEEDED", false}, {"MODEL_NOT_FOUND", true}} {
		p := newPlace(t, `{"error":{"code":"`+tc.code+`","message":"it went wrong","status":400}}`, `{"text":"Better."}`)
		c := p.chat(80, 24, work.Flags{}, false)
		c.Line("go")
		if all := c.idle("it went wrong"); strings.Contains(all, "/continue") != tc.offered {
			t.Errorf("%s:\n%s", tc.code, all)
		}
		c.Line("/continue")
		c.idle("Better.")
	}
}

func TestARetrySaysWhy(t *testing.T) {
	p := newPlace(t, `{"text":"Half of","error":{"code":"SERVER","message":"the server is busy","status":503,"retryAfterMs":5},"after":1}`, `{"text":"All of it."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("go")
	has(t, c.idle("All of it."), "Half of\nthe server is busy: trying again in")

	p = newPlace(t, `{"error":{"code":"RATE_LIMIT","message":"too many requests","status":429,"retryAfterMs":5}}`,
		`{"error":{"code":"RATE_LIMIT","message":"too many requests","status":429,"retryAfterMs":5400000}}`)
	c = p.chat(80, 24, work.Flags{}, false)
	c.Line("go")
	c.idle("too many requests (after 2 attempts); it asks to wait 90 min; /continue tries")
}

func TestFilesAreAttached(t *testing.T) {
	p := newPlace(t, `{"expect":{"contains":"alpha text"},"text":"I see alpha."}`, `{"expect":{"contains":"beta text"},"text":"I see beta."}`)
	p.file("work/alpha.txt", "alpha text\n")
	p.file("work/beta.txt", "beta text\n")
	p.file("work/binary", "\x00\x01\x02")
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("/attach binary")
	c.sees("cannot be attached")
	c.done()
	c.Text("/attach al")
	c.Type(tty.Key{Name: tty.Tab})
	c.sees("> /attach alpha.txt")
	c.Type(tty.Key{Name: tty.Enter})
	c.sees("attached: alpha.txt")
	c.done()
	c.Line("what is it?")
	has(t, c.idle("I see alpha."), "  [File alpha.txt: ")
	c.Text("and @")
	c.Type(tty.Key{Name: tty.Tab})
	c.sees("@alpha.txt  @beta.txt  @binary")
	c.Text("be")
	c.Type(tty.Key{Name: tty.Tab})
	c.sees("> and @beta.txt")
	c.Line("? nobody@example.org @gone.txt")
	hasNot(t, c.idle("I see beta.", "there is no file gone.txt: @ and the name stay text"), "no file example", "no file beta")
}

func TestWhatAModelDoesNotTakeIsSaidOnce(t *testing.T) {
	p := newPlace(t)
	var dot strings.Builder
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	p.file("work/dot.png", dot.String())
	c := p.chat(120, 24, work.Flags{}, false)
	c.Line("/attach dot.png")
	c.sees("attached: dot.png")
	c.done()
	c.Line("/model ollama:blind")
	hasNot(t, c.sees("the window of ollama:blind is unknown: nothing is compacted by itself"), "no images")
	c.done()
	for n := 2; n <= 3; n++ {
		c.Line("/attach dot.png")
		c.until(func(all string) bool { return strings.Count(all, "attached: dot.png") == n })
		c.done()
	}
	c.Line("/help")
	all := c.sees("/clear-pending")
	for _, once := range []string{"takes no images", "the window of"} {
		if n := strings.Count(all, once); n != 1 {
			t.Errorf("%q stands there %d times:\n%s", once, n, all)
		}
	}
}

func TestActions(t *testing.T) {
	p := newPlace(t, `{"reasoning":"Let me think.","tools":[{"name":"list","args":{}}]}`, `{"text":"One."}`, `{"text":"Two."}`, `{"text":"Three."}`)
	c := p.chat(100, 60, work.Flags{}, false)
	for _, tc := range []struct{ typed, want string }{
		{"/hlep", "there is no /hlep: did you mean /help?"},
		{"/xyzzy", "there is no /xyzzy: /help lists what there is"},
		{"/continue", "there is nothing to continue yet"},
		{"/fork", "there is nothing to fork yet"},
		{"/show", "there is no number 0 here"},
		{"/show x", `/show "x": give the number in brackets`},
		{"/model", "script:s.jsonl, window 32,000 tokens"},
		{"/model nobody:x", "\nthere is no provider \"nobody\""},
		{"/approve maybe", `"maybe": use ask, edits, all or none`},
		{"/approve edits", "approval: edits, what runs something asks"},
		{"/attach", "/attach needs a file"},
		{"/attach nowhere.png", "nowhere.png"},
		{"/clear-pending", "0 messages dropped"},
		{"/help", "/attach FILE"},
		{"one", "One."},
		{"/show 1", "[1] reasoning\n  Let me think.\n"},
		{"/show 2", "[2] list"},
		{"/usage", "this session: 2 calls, 0 failed; tokens: "},
		{"/surface", "5 nodes over"},
		{"/fork 3", "session id-"},
		{"two", "> two\n"},
	} {
		c.press("u") // what was wrong stays in the input
		c.Line(tc.typed)
		c.sees(tc.want)
		c.done()
	}
	c.press("d")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
}

func TestAForkGoesOnInItsOwnSession(t *testing.T) {
	p := newPlace(t, `{"text":"One."}`, `{"text":"Two."}`, `{"text":"Three."}`)
	c := p.chat(100, 40, work.Flags{}, false)
	c.Line("first")
	c.idle("One.")
	parent := c.chat.w.Session().ID()
	c.Line("/fork")
	c.sees("the one before: outcrop chat --session " + parent)
	c.done()
	c.Line("second")
	c.idle("Two.")
	child := c.chat.w.Session().ID()
	c.press("d")
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	hasNot(t, p.log(parent), `"text":"second"`)
	p.logs(child, "first", "second", `"type":"session/end-seed"`)
	c = p.chat(100, 40, work.Flags{Session: parent}, false)
	c.sees("> first", "One.")
	hasNot(t, c.String(), "second")
}

func TestAnotherWriterIsRefusedBeforeTheTerminalIsTaken(t *testing.T) {
	p := newPlace(t, `{"text":"One."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("first")
	c.idle("One.")
	w, err := work.Prepare(t.Context(), c.chat.w.Desk(), work.Flags{Session: "id-1", Script: "s.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Open(t.Context()); err == nil {
		t.Error("a second writer opened the session")
	}
}

func TestALongAnswerStreamsInBoundedMemoryAndFewDrawings(t *testing.T) {
	paragraph := strings.Repeat("word and word ", 20) + "\n\n"
	p := newPlace(t, `{"script":1,"model":"long","piece":100,"window":0}`, fmt.Sprintf(`{"text":%q}`, strings.Repeat(paragraph, 1<<20/len(paragraph))+"the end"))
	c := p.chat(80, 24, work.Flags{}, false)
	started, before := time.Now(), c.Writes()
	c.Line("go")
	c.sees("the end")
	most := int(time.Since(started)/frame) + 50
	if n := c.Writes() - before; n > most {
		t.Errorf("%d drawings, want at most %d", n, most)
	}
	c.idle()
}

func TestAScreenThatChangesItsSizeIsDrawnAgain(t *testing.T) {
	p := newPlace(t, `{"text":"Hello there."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.Line("hello")
	c.idle("Hello there.")
	c.Resize(30, 10)
	c.Text(strings.Repeat("wide ", 10))
	c.sees("> wide wide wide wide wide wi\n  de wide wide wide wide")
}

func TestWhatTheProgramSaysOnStderrIsShown(t *testing.T) {
	p := newPlace(t, `{"text":"Hello."}`)
	c := p.chat(80, 24, work.Flags{}, false)
	c.chat.w.Desk().Logger.Warn("not shown: there is no log in this test")
	c.chat.w.Desk().Note("a note with \x1b[31m in it")
	c.sees(`outcrop: a note with \e[31m in it`)
}
