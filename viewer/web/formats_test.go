package web_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/llm/llmtest"
)

const thirdFormat = `{"type":"session","version":3,"id":"old","createdAt":1800000100000,"cwd":"/home/dev/notes","isSeeded":false,"delegationDepth":0}
{"type":"turn/start","seq":0,"time":1800000100001,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":1800000100002,"data":{"turn":1,"step":1}}
{"type":"user/message","seq":2,"time":1800000100004,"data":{"content":[{"type":"text","text":"Two times two?"}],"source":{"kind":"user"},"role":"user","id":"u1"},"surfaceOp":"append"}
{"type":"request/header","seq":3,"time":1800000100005,"data":{"header":{"config":{"provider":"acme","model":"tiny-1"}},"reason":"initial"}}
{"type":"assistant/message","seq":4,"time":1800000100006,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"text","text":"Four."}],"source":{"kind":"model","provider":"acme","model":"tiny-1"},"id":"a1"},"usage":{"inputTokens":9,"outputTokens":1},"stream":[]},"surfaceOp":"append"}
{"type":"step/end","seq":5,"time":1800000100007,"data":{"turn":1,"step":1}}
{"type":"turn/end","seq":6,"time":1800000100008,"data":{"turn":1,"reason":{"kind":"completed"}}}
`

// laterFormats looks at a log of a later format of dsh and goes on from it, and
// at one beside which a later one lies that cannot be read.
func laterFormats(t *testing.T, b *browser) {
	dir := t.TempDir()
	for id, name := range map[string]string{"old": "", "overtaken": "session.v9.jsonl"} {
		at := filepath.Join(dir, "sessions", "--home-dev-notes--", id)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"session.v3.jsonl", name} {
			if name == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(at, name), []byte(strings.Replace(thirdFormat, `"old"`, `"`+id+`"`, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := provider(t, dir, func(int, string) llmtest.Reply { return llmtest.Reply{Text: "Eight."} })
	s := serve(t, dir, "jsonl+plain:"+filepath.Join(dir, "sessions"), env, "--no-token", "--cwd", filepath.Join(dir, "work"))
	p := b.tab(t, 1200, 900)
	p.open(s.page("overtaken", "talk"))
	p.wait(ready["talk"])
	p.has("written by a newer dsh (format 9); what is shown is session.v3.jsonl, which is older")
	p.wait("![...document.querySelectorAll('button')].some(b => b.textContent.trim() === 'Continue here')")

	p.open(s.page("old", "talk"))
	p.wait(ready["talk"])
	p.has("This log is in format 3 of dsh.")
	eval[any](p, "(i => { i.value = 'mock:m'; i.dispatchEvent(new Event('input')); })(document.querySelector('input.with'))")
	p.click("button:Continue here")
	p.wait("document.querySelector('.composer textarea') && !location.hash.includes('/old/')")
	p.wait("document.querySelector('.session-facts').innerText.includes('from old')")
	p.prompt("And two times four?")
	p.wait("[...document.querySelectorAll('oc-markdown')].some(m => m.innerText.includes('Eight.'))")
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")
	if got, err := os.ReadFile(filepath.Join(dir, "sessions", "--home-dev-notes--", "old", "session.v3.jsonl")); err != nil || string(got) != thirdFormat {
		t.Errorf("the old log was changed: %v\n%s", err, got)
	}
}
