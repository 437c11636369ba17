package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// told is an output that says when a whole line came.
type told struct {
	mu   sync.Mutex
	text string
	line chan string
}

func (o *told) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text += string(b)
	if line, _, ok := strings.Cut(o.text, "\n"); ok {
		select {
		case o.line <- line:
		default:
		}
	}
	return len(b), nil
}

func (o *told) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}

// serving runs outcrop serve until stop is called, which returns the exit code.
func serving(t *testing.T, env map[string]string, args ...string) (line string, stop func() int, errs *told) {
	t.Helper()
	home := t.TempDir()
	out := &told{line: make(chan string, 1)}
	errs = &told{line: make(chan string, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), cli.Env{
			Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Terminal: func(any) bool { return false }, Dir: home,
			Getenv: func(name string) string {
				if v, ok := env[name]; ok {
					return v
				}
				return map[string]string{"HOME": home, "OUTCROP_HOME": filepath.Join(home, "data")}[name]
			}, Program: "outcrop",
		})
	}()
	select {
	case line = <-out.line:
	case c := <-code:
		cancel()
		t.Fatalf("it ended with %d: %s", c, errs)
	case <-time.After(time.Minute):
		cancel()
		t.Fatal("no address was printed")
	}
	return line, func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
			return -1
		}
	}, errs
}

func TestServePrintsAnAddressWithATokenAndEndsWhenItIsInterrupted(t *testing.T) {
	line, stop, errs := serving(t, nil, "--no-open")
	url, key, ok := strings.Cut(line, "#k=")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") || len(key) < 40 {
		t.Fatalf("address %q", line)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := browser.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, b := get(""); status != 200 || !strings.Contains(b, "<title>Outcrop</title>") {
		t.Errorf("the page: %d %.200s", status, b)
	}
	if status, _ := get("api/v1/sessions"); status != 401 {
		t.Errorf("without the token: %d", status)
	}
	r, err := http.NewRequest("POST", url+"api/v1/token", strings.NewReader(`{"key":"`+key+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("X-Outcrop", "1")
	resp, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if status, b := get("api/v1/sessions"); status != 200 || !strings.Contains(b, `"sessions":[]`) {
		t.Errorf("with the cookie: %d %s", status, b)
	}
	if code := stop(); code != 130 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if errs.String() != "" {
		t.Errorf("stderr: %s", errs)
	}
}

func TestServeContinuesASessionWithTheConfiguredModel(t *testing.T) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	// A session that a script began: its model is not configured here.
	script := filepath.Join(home, "a.jsonl")
	if err := os.WriteFile(script, []byte(`{"script":1,"model":"a"}`+"\n"+`{"text":"Hello."}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "OUTCROP_HOME": filepath.Join(home, "data")}
	var sink told
	if code := cli.Main(t.Context(), []string{"run", "Hi.", "--script", script, "--quiet"}, cli.Env{Stdin: strings.NewReader(""), Stdout: &sink, Stderr: &sink,
		Terminal: func(any) bool { return false }, Dir: work, Getenv: func(n string) string { return env[n] }, NewID: func() string { return "s1" }, Program: "outcrop"}); code != 0 {
		t.Fatalf("run: %d %s", code, &sink)
	}
	line, stop, _ := serving(t, env, "--no-open", "--no-token", "--json")
	defer stop()
	var said struct{ URL string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || strings.Contains(said.URL, "#") {
		t.Fatalf("%v: %s", err, line)
	}
	reference, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(reference), "\n## serve\n")
	if example := regexp.MustCompile(`(?m)^\{.*\}$`).FindString(section); regexp.MustCompile(`http://[^"]*`).ReplaceAllString(example, "") !=
		regexp.MustCompile(`http://[^"]*`).ReplaceAllString(strings.TrimSpace(line), "") {
		t.Errorf("docs/cli-json.md has %s, serve says %s", example, line)
	}
	post := func(path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest("POST", said.URL+"api/v1/sessions/s1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Sec-Fetch-Site": "same-origin", "X-Outcrop": "1", "Content-Type": "application/json"} {
			r.Header.Set(name, v)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, b := post("continue", `{}`); status != 409 || !strings.Contains(b, "script") {
		t.Errorf("a model that is not configured: %d %s", status, b)
	}
	if status, b := post("continue", `{"model":"ollama:x"}`); status != 200 || !strings.Contains(b, `"model":"ollama:x"`) {
		t.Errorf("another model: %d %s", status, b)
	}
	if status, b := post("title", `{"title":"A name"}`); status != 200 {
		t.Errorf("a title: %d %s", status, b)
	}
	if status, b := post("archive", `{}`); status != 409 || !strings.Contains(b, "BUSY") {
		t.Errorf("archive of a session that is continued: %d %s", status, b)
	}
	if status, b := post("release", `{}`); status != 200 {
		t.Errorf("release: %d %s", status, b)
	}
	if status, b := post("fork", `{}`); status != 200 {
		t.Errorf("fork: %d %s", status, b)
	}
	if status, b := post("delete", `{}`); status != 409 || !strings.Contains(b, "--tree") {
		t.Errorf("delete of a session with a fork: %d %s", status, b)
	}
	if status, b := post("archive", `{"tree":true}`); status != 200 || !strings.Contains(b, `"to":"archive"`) {
		t.Errorf("archive: %d %s", status, b)
	}
	if status, b := post("delete", `{}`); status != 404 {
		t.Errorf("delete of what is archived: %d %s", status, b)
	}
	// And back, by hand of the page; then away in each form that is a file.
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get(said.URL + "api/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, b := get("shelves/archive"); status != 200 || strings.Count(b, `"id":`) != 2 || !strings.Contains(b, `"title":"A name"`) {
		t.Errorf("the archive: %d %s", status, b)
	}
	for range 2 {
		if status, b := post("../../shelves/archive/restore", `{"session":"s1"}`); status == 200 {
			continue
		} else if status != 404 || !strings.Contains(b, "SESSION_NOT_FOUND") {
			t.Errorf("restore: %d %s", status, b)
		}
	}
	if status, b := get("sessions/s1"); status != 200 || !strings.Contains(b, `"title":"A name"`) {
		t.Errorf("what came back: %d %s", status, b)
	}
	for form, want := range map[string]string{"md": "Hello.", "html": "<!doctype html>", "jsonl": `{"type":"session",`, "zip": "PK"} {
		if status, b := get("sessions/s1/export?format=" + form); status != 200 || !strings.Contains(strings.ToLower(b), strings.ToLower(want)) {
			t.Errorf("export as %s: %d %.200s", form, status, b)
		}
	}
	if status, b := get("sessions/s1/export?format=exe"); status != 400 || !strings.Contains(b, "md, html, jsonl, zip") {
		t.Errorf("a form that is none: %d %s", status, b)
	}
}

// The token must not stand in the arguments of a program, which everybody on the
// machine can read: the browser gets a file that only the person can read.
func TestServeOpensABrowserWithoutShowingTheToken(t *testing.T) {
	bin := t.TempDir()
	seen := filepath.Join(bin, "seen")
	opener := "#!/bin/sh\nprintf '%s\\n' \"$@\" > '" + seen + ".part'\ncat \"$1\" >> '" + seen + ".part'\nls -l \"$1\" >> '" + seen + ".part'\nmv '" + seen + ".part' '" + seen + "'\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	line, stop, errs := serving(t, map[string]string{"DISPLAY": ":99"})
	_, key, _ := strings.Cut(line, "#k=")
	var text []byte
	for deadline := time.Now().Add(time.Minute); len(text) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, _ = os.ReadFile(seen)
	}
	arg, rest, _ := strings.Cut(string(text), "\n")
	if !strings.HasSuffix(arg, ".html") || strings.Contains(arg, key) || !strings.Contains(rest, key) || !strings.Contains(rest, "-rw-------") {
		t.Errorf("the opener got %q (%s)", text, errs)
	}
	stop()
	if _, err := os.Stat(arg); err == nil {
		t.Errorf("%s is still there", arg)
	}
}

func TestServeTellsHowItIs(t *testing.T) {
	_, stop, errs := serving(t, nil, "--no-open", "--metrics", "127.0.0.1:0")
	_, address, _ := strings.Cut(errs.String(), "metrics: ")
	address, _, _ = strings.Cut(address, "/metrics")
	for path, want := range map[string]string{"/healthz": `"sync":"always"`, "/readyz": `"ok":true`, "/metrics": "go_goroutines"} {
		if code, body := ask(t, address+path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code := stop(); code != 130 {
		t.Errorf("exit %d", code)
	}
}
