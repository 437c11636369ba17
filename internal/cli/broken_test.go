package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// brokenWays are ways in which a log is broken so that it cannot be continued.
// Each takes the lines of a good log, the header first, and gives the file.
var brokenWays = []struct {
	name string
	file func(l []string) string
}{
	{"an empty file", func([]string) string { return "" }},
	{"zero bytes", func([]string) string { return strings.Repeat("\x00", 500) }},
	{"text", func([]string) string { return "hello\nworld\n" }},
	{"a torn header", func(l []string) string { return l[0][:30] + "\n" + text(l[1:]) }},
	{"a header without its newline", func(l []string) string { return l[0] }},
	{"no header", func(l []string) string { return text(l[1:]) }},
	{"a byte order mark", func(l []string) string { return "\xef\xbb\xbf" + text(l) }},
	{"a format that is not known", func(l []string) string { return strings.Replace(text(l), `"version":0`, `"version":5`, 1) }},
	{"retired members", func(l []string) string {
		return strings.Replace(text(l), `"version":0`, `"version":0,"sandboxMode":"x"`, 1)
	}},
	{"a list", func(l []string) string { return "[\n" + text(l[1:]) }},
	{"UTF-16", func(l []string) string { return "\xff\xfe" + strings.ReplaceAll(text(l), "", "\x00") }},
	{"two logs one behind the other", func(l []string) string { return text(l) + text(l) }},
	{"a bad packed row", func(l []string) string {
		return text(slices.Insert(slices.Clone(l), 4, `{"type":"text-chunks","seq0":3,"time0":1,"data":{}}`))
	}},
	{"a missing event", func(l []string) string { return text(slices.Delete(slices.Clone(l), 4, 5)) }},
	{"an event twice", func(l []string) string { return text(slices.Insert(slices.Clone(l), 4, l[3])) }},
	{"another event under a seq that was there", func(l []string) string {
		return text(slices.Insert(slices.Clone(l), 4, `{"type":"feedback/record","seq":2,"time":1,"data":{}}`))
	}},
	{"a line that is no JSON", func(l []string) string { return text(slices.Insert(slices.Clone(l), 4, "{")) }},
	{"two records on a line", func(l []string) string { return glue(l, 3) }},
	{"zero bytes in the middle", func(l []string) string { return text(l[:4]) + strings.Repeat("\x00", 64) + text(l[4:]) }},
	{"a record that nests too deeply", func(l []string) string {
		return text(l) + fmt.Sprintf(`{"type":"feedback/record","seq":%d,"time":1,"data":%s%s}`+"\n", len(l)-1, strings.Repeat("[", 20000), strings.Repeat("]", 20000))
	}},
}

// readableWays are ways in which a log can be read to its end and not be
// continued: verify and doctor say so.
var readableWays = []struct {
	name string
	file func(l []string) string
}{
	{"the header of another session", func(l []string) string { return strings.Replace(text(l), `"id":"`, `"id":"x`, 1) }},
	{"the header of another directory", func(l []string) string { return strings.Replace(text(l), `"cwd":"/home/dev"`, `"cwd":"/home/x"`, 1) }},
	{"an event that breaks a rule", func(l []string) string {
		return strings.Replace(text(l), `"surfaceOp":"append"`, `"surfaceOp":"insert"`, 1)
	}},
	{"an event of a newer program", func(l []string) string {
		return text(l) + fmt.Sprintf(`{"type":"future/thing","seq":%d,"time":1,"data":{}}`+"\n", len(l)-1)
	}},
}

func text(lines []string) string { return strings.Join(lines, "\n") + "\n" }

func glue(l []string, at int) string { return text(l[:at]) + l[at] + l[at+1] + "\n" + text(l[at+2:]) }

// goodLines is a log of some turns.
func goodLines(id string, turns int) []string {
	l := []string{fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":1800000000000,"cwd":"/home/dev","delegationDepth":0}`, id)}
	for n := 1; n <= turns; n++ {
		s := len(l) - 1
		l = append(l,
			fmt.Sprintf(`{"type":"turn/start","seq":%d,"time":1800000000001,"data":{"turn":%d}}`, s, n),
			fmt.Sprintf(`{"type":"step/start","seq":%d,"time":1800000000001,"data":{"turn":%d,"step":1}}`, s+1, n),
			fmt.Sprintf(`{"type":"user/message","seq":%d,"time":1800000000001,"data":{"content":[{"type":"text","text":"t"}],"source":{"kind":"user"},"role":"user","id":"u%d"},"surfaceOp":"append"}`, s+2, n),
			fmt.Sprintf(`{"type":"assistant/message","seq":%d,"time":1800000000001,"data":{"turn":%d,"step":1,"message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a%d"},"usage":{"inputTokens":3,"outputTokens":1}},"surfaceOp":"append"}`, s+3, n, n),
			fmt.Sprintf(`{"type":"step/end","seq":%d,"time":1800000000001,"data":{"turn":%d,"step":1}}`, s+4, n),
			fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1800000000001,"data":{"turn":%d,"reason":{"kind":"completed"}}}`, s+5, n))
	}
	return l
}

// One broken session never hides the others: of 100 sessions of which 20 are
// broken in different ways, each command gives the 80 and names the 20.
func TestTwentyBrokenSessionsHideNoneOfTheOthers(t *testing.T) {
	if len(brokenWays) != 20 || len(readableWays) != 4 {
		t.Fatalf("%d and %d ways", len(brokenWays), len(readableWays))
	}
	dir := t.TempDir()
	broken := map[string]string{} // how, by id
	var ids []string
	readable := map[string]string{}
	for i := range 104 {
		id := fmt.Sprintf("s%03d", i)
		file := text(goodLines(id, 1+i%3))
		switch {
		case i >= 100:
			way := readableWays[i-100]
			readable[id] = way.name
			file = way.file(goodLines(id, 2))
		case i%5 == 2:
			way := brokenWays[i/5]
			broken[id] = way.name
			file = way.file(goodLines(id, 2))
		}
		folder := filepath.Join(dir, "store", jsonl.ProjectKey("/home/dev"), id)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "session.jsonl"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	env := map[string]string{"OUTCROP_STORE": "jsonl:store", "HOME": dir}
	t.Run("ls", func(t *testing.T) {
		_, out, errOut := run(t, dir, env, "ls", "--full", "--json")
		seen := 0
		for line := range strings.Lines(out) {
			s := decode[struct{ ID, State, Reason string }](t, line)
			seen++
			how, isBroken := broken[s.ID]
			if readable[s.ID] != "" || s.ID[0] == 'x' {
				continue
			}
			if isBroken != (s.State != "ok") || isBroken != (s.Reason != "") {
				t.Errorf("%s (%s): %s", s.ID, how, line)
			}
		}
		if seen != 104 {
			t.Errorf("%d sessions: %s", seen, errOut)
		}
	})
	t.Run("usage", func(t *testing.T) {
		_, out, errOut := run(t, dir, env, "usage", "--json")
		good := 0
		named := map[string]bool{}
		for line := range strings.Lines(out) {
			s := decode[struct {
				Session *struct {
					ID     string
					Calls  int
					Reason *string
				}
			}](t, line).Session
			switch {
			case s == nil, readable[strings.TrimPrefix(s.ID, "x")] != "":
			case s.Reason != nil:
				named[s.ID] = true
			case s.Calls > 0:
				good++
			}
		}
		for id, how := range broken {
			if !named[id] && !strings.Contains(errOut, id) {
				t.Errorf("%s (%s) is not named", id, how)
			}
		}
		if good != 80 {
			t.Errorf("%d sessions: %s", good, errOut)
		}
	})
	t.Run("verify", func(t *testing.T) {
		code, out, errOut := run(t, dir, env, append([]string{"verify", "--json"}, ids...)...)
		ok, bad := 0, map[string]bool{}
		for line := range strings.Lines(out) {
			v := decode[struct {
				Summary *struct {
					Target string
					OK     bool
				}
			}](t, line)
			switch {
			case v.Summary == nil:
			case v.Summary.OK:
				ok++
			default:
				bad[v.Summary.Target] = true
			}
		}
		for id, how := range both(broken, readable) {
			if !bad[id] {
				t.Errorf("%s (%s) is not named: %s", id, how, errOut)
			}
		}
		if ok != 80 || code != 3 {
			t.Errorf("%d are ok, exit code %d", ok, code)
		}
	})
	t.Run("doctor", func(t *testing.T) {
		for _, id := range ids {
			code, out, errOut := run(t, dir, env, "doctor", id, "--json")
			how, isBroken := both(broken, readable)[id]
			if (code != 0) != isBroken || !json.Valid([]byte(strings.TrimSpace(out[strings.LastIndexByte(strings.TrimSuffix(out, "\n"), '\n')+1:]))) {
				t.Errorf("%s (%s): exit %d: %s %s", id, how, code, out, errOut)
			}
		}
	})
}

func both(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
