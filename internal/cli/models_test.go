package cli_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outcrop-dev/outcrop/llm/llmtest"
)

// TestServerScripts runs testdata/server/*.txtar: scripts that have a model
// provider on this machine. The user's configuration names one provider for
// each way in which a server can answer.
func TestServerScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "server"),
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			if err := setupScript(e); err != nil {
				return err
			}
			return configure(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"outcrop": outcropCommand},
	})
}

// providers are the answers of the test's server, by the first part of the
// path.
func providers() http.Handler {
	mux := http.NewServeMux()
	add := func(name string, h http.Handler) { mux.Handle("/"+name+"/", http.StripPrefix("/"+name, h)) }
	add("good", llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: llmtest.DeepSeek}, Key: "right"}))
	add("claude", llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: llmtest.Anthropic}, Key: "right"}))
	fault := func(f llmtest.Fault, p llmtest.Profile) http.Handler {
		return llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: p}, Replies: func(int, []byte) llmtest.Reply { return llmtest.Reply{Fault: f} }})
	}
	add("without", fault(llmtest.NoModel, llmtest.DeepSeek))
	add("claude-without", fault(llmtest.NoModel, llmtest.Anthropic))
	add("page", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>It works!</html>") // the test sees what is missing
	}))
	add("small", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 128412 tokens."}}`)
	}))
	return mux
}

// configure starts the servers of one script and writes the user's file.
func configure(e *testscript.Env) error {
	plain := httptest.NewServer(providers())
	e.Defer(plain.Close)
	tls := httptest.NewUnstartedServer(providers())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // it hears of every client that leaves
	tls.StartTLS()
	e.Defer(tls.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var b strings.Builder
	provider := func(name, kind, url string) {
		fmt.Fprintf(&b, "[providers.%s]\nkind = %q\nbase_url = %q\nkey_env = \"TEST_KEY\"\n", name, kind, url)
	}
	for _, name := range []string{"good", "without", "page", "small"} {
		provider(name, "openai", plain.URL+"/"+name)
	}
	for _, name := range []string{"claude", "claude-without"} {
		provider(name, "anthropic", plain.URL+"/"+name)
	}
	provider("secure", "openai", tls.URL+"/good")
	provider("claude-secure", "anthropic", tls.URL+"/claude")
	provider("gone", "openai", gone.URL)
	provider("claude-gone", "anthropic", gone.URL)
	b.WriteString("[providers.good.models.mock-1]\nwindow = 32000\nmax_output = 1000\nimages = true\nprice = { input = 270000, output = 1100000 }\n" +
		"[providers.good.models.old]\nwindow = 8000\n")
	path := filepath.Join(e.WorkDir, "home", ".config", "outcrop", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	e.Vars = append(e.Vars, "GONE="+strings.TrimPrefix(gone.URL, "http://"))
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func TestAnUnreachableHostIsSaidBeforeItIsTriedAgain(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	d := newDesk(t, strings.NewReader(""))
	d.file("c.toml", "[providers.gone]\nbase_url = \""+gone.URL+"\"")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	want := "gone: cannot reach " + strings.TrimPrefix(gone.URL, "http://") + ": connection refused: check base_url, network or proxy: trying again in "
	d.err.seen = func(text string) {
		if strings.Contains(text, want) {
			cancel()
		}
	}
	if code := d.run(ctx, "run", "--config", "c.toml", "--model", "gone:m", "hello"); code != 130 {
		t.Errorf("exit %d, want 130: %s", code, d.err)
	}
	wants(t, "stderr", d.err.String(), want)
}
