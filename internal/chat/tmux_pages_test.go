package chat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is a program that uses the API of the pages beside a chat.
type page struct {
	*pane
	base, key string
}

var address = regexp.MustCompile(`page: (http://127\.0\.0\.1:\d+)/#k=([\w-]+)`)

// page reads the address that the chat shows.
func (p *pane) page() *page {
	p.t.Helper()
	got := address.FindStringSubmatch(p.until("an address", address.MatchString))
	return &page{p, got[1], got[2]}
}

func (p *page) ask(method, path string, body any, out any) {
	p.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			p.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, p.base+"/api/v1"+path, in)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("X-Outcrop", "1")
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != 200 {
		p.t.Fatalf("%s %s: %s: %s", method, path, res.Status, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		p.t.Fatal(err)
	}
}

// session is the path of the one that the chat is about, as soon as it is not
// the one that it was about before.
func (p *page) session(before string) (path string) {
	p.t.Helper()
	p.until("a session on the page", func(string) bool {
		var about struct{ Beside *string }
		p.ask("GET", "", nil, &about)
		if about.Beside != nil {
			path = "/sessions/" + url.PathEscape(*about.Beside)
		}
		return path != before
	})
	return path
}

func (p *page) do(what string, body any) {
	p.t.Helper()
	p.ask("POST", p.session("")+"/"+what, body, &struct{}{})
}

func TestTmuxAPageShowsTheChatAndBothMayAct(t *testing.T) {
	p := newPane(t, 120, 40, `{"text":"The first answer."}`,
		`{"tools":[{"name":"shell","args":{"command":"echo one >one.txt"}}]}`, `{"text":"The second answer."}`,
		`{"tools":[{"name":"shell","args":{"command":"echo two >two.txt"}}]}`, `{"text":"The third answer."}`,
		`{"text":"The beginning of it","cut":"hang","after":1}`, `{"text":"The last answer."}`)
	p.start("--serve --no-open")
	page := p.page()
	before := page.session("")

	// What the page sends, the terminal shows; the session is stored with it.
	page.do("send", map[string]any{"text": "from the page"})
	p.sees("> from the page", "The first answer.\n\n>")
	var talk struct {
		Items []struct {
			Kind   string
			Blocks []struct{ Text string }
		}
	}
	page.ask("GET", before+"/conversation", nil, &talk)
	if len(talk.Items) < 2 || talk.Items[len(talk.Items)-1].Blocks[0].Text != "The first answer." {
		t.Errorf("the page shows %+v", talk)
	}

	// A question is asked in both; the page answers it.
	p.line("do it")
	p.sees("| echo one >one.txt", "[y] once")
	var about struct {
		Questions []struct{ ID, Preview string }
	}
	page.ask("GET", before, nil, &about)
	if len(about.Questions) != 1 || about.Questions[0].Preview != "echo one >one.txt" {
		t.Fatalf("the page asks %+v", about)
	}
	page.do("approve", map[string]any{"id": about.Questions[0].ID, "verdict": "once"})
	all := p.sees("answered on the page", "The second answer.\n\n>")
	if strings.Contains(all, "yes, once") {
		t.Error("the terminal says that it answered")
	}
	if _, err := os.Stat(filepath.Join(p.dir, "work", "one.txt")); err != nil {
		t.Error(err)
	}

	// The terminal answers; the page asks no more.
	page.do("send", map[string]any{"text": "and again"})
	p.sees("| echo two >two.txt", "[y] once")
	p.text("y")
	p.sees("The third answer.\n\n>")
	page.ask("GET", before, nil, &about)
	if len(about.Questions) != 0 {
		t.Errorf("the page still asks %+v", about)
	}

	// A turn that the page began is the terminal's to stop.
	page.do("send", map[string]any{"text": "a long one"})
	p.sees("The beginnin")
	p.keys("C-c")
	p.sees("(cut off here)", "stopped")

	// After a fork the page shows the new session.
	p.line("/fork")
	p.sees("the one before:")
	page.session(before)
	page.do("policy", map[string]any{"approve": "all"})
	page.do("send", map[string]any{"text": "in the fork"})
	p.sees("The last answer.\n\n>")
	p.line("/approve")
	p.sees("approval: all, nothing asks")

	p.keys("C-d")
	p.sees("left with 0")
	if _, err := http.Get(page.base); err == nil {
		t.Error("the pages outlive the chat")
	}
}

func TestTmuxWhatCannotBeServedIsRefusedBeforeASessionIsTouched(t *testing.T) {
	p := newPane(t, 100, 24, `{"text":"x"}`)
	for flags, want := range map[string]string{
		"--addr 127.0.0.1:0":             "give --serve too",
		"--serve --addr nobody":          "give HOST:PORT",
		"--serve --addr 127.0.0.1:99999": "--addr 127.0.0.1:99999",
	} {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p.line(fmt.Sprintf("clear; %s chat --script ../s.jsonl %s; echo left", exe, flags))
		if all := p.sees(want, "\nleft"); strings.Contains(all, "panic") {
			t.Error(all)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "home", "sessions")); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
}
