package agent_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/llm/openai"
	"github.com/outcrop-dev/outcrop/tool"
)

// impatient is a clock on which every wait before a retry is over at once, and
// a stream is never too slow.
type impatient struct{}

type impatientTimer chan time.Time

func (impatient) Timer(d time.Duration) agent.Timer {
	c := make(impatientTimer, 1)
	c.Reset(d)
	return c
}

func (c impatientTimer) C() <-chan time.Time { return c }
func (c impatientTimer) Stop()               {}
func (c impatientTimer) Reset(d time.Duration) {
	if d < time.Minute {
		select {
		case c <- time.Time{}:
		default:
		}
	}
}

// inSession names the session of each request to the strict server.
type inSession struct{ name string }

func (s inSession) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(llmtest.SessionHeader, s.name)
	return http.DefaultTransport.RoundTrip(r)
}

// The loop, the real clients and a real HTTP server that is strict and fails in
// every way: what can be tried again is, and the session goes on.
func TestTheLoopSurvivesEveryFaultOfAServer(t *testing.T) {
	clients := map[llmtest.Profile]func(url string, idle time.Duration) (llm.Provider, error){
		llmtest.OpenAI: func(url string, idle time.Duration) (llm.Provider, error) {
			return openai.New(openai.Options{Name: "p", BaseURL: url, IdleTimeout: idle, Transport: inSession{"s1"}, Quirks: openai.Quirks{MaxTokens: "max_completion_tokens"}})
		},
		llmtest.DeepSeek: func(url string, idle time.Duration) (llm.Provider, error) {
			return openai.New(openai.Options{Name: "p", BaseURL: url, IdleTimeout: idle, Transport: inSession{"s1"}, Quirks: openai.Quirks{Reasoning: openai.ReasoningContent}})
		},
		llmtest.Alternate: func(url string, idle time.Duration) (llm.Provider, error) {
			return openai.New(openai.Options{Name: "p", BaseURL: url, IdleTimeout: idle, Transport: inSession{"s1"}, Quirks: openai.Quirks{AlternateRoles: true}})
		},
		llmtest.Anthropic: func(url string, idle time.Duration) (llm.Provider, error) {
			return anthropic.New(anthropic.Options{Name: "p", BaseURL: url, IdleTimeout: idle, Transport: inSession{"s1"}})
		},
	}
	final := map[llmtest.Fault]bool{llmtest.Unauthorized: true, llmtest.Forbidden: true, llmtest.NoModel: true, llmtest.TooLarge: true, llmtest.HTML: true}
	for profile, client := range clients {
		for _, fault := range llmtest.Faults() {
			t.Run(string(profile)+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				mock := llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: profile}, Replies: func(n int, body []byte) llmtest.Reply {
					if n == 1 || n == 4 { // the second call of a turn, and the first of another
						return llmtest.Reply{Reasoning: "Hm.", Text: "Looking, half of it", Calls: []llmtest.Call{{Name: "look", Arguments: `{"x":"1"}`}}, Fault: fault}
					}
					if strings.Count(string(body), "done") < 2 {
						return llmtest.Reply{Reasoning: "I must look.", Text: "Looking.", Calls: []llmtest.Call{{Name: "look"}, {Name: "look", Arguments: `{"x":"2"}`}}}
					}
					return llmtest.Reply{Reasoning: "All seen.", Text: "Done."}
				}})
				server := httptest.NewServer(mock)
				defer server.Close()
				idle := time.Duration(0)
				if fault == llmtest.Silence {
					idle = time.Second
				}
				p, err := client(server.URL, idle)
				if err != nil {
					t.Fatal(err)
				}
				live := newLive(t, ownHeader(), outcrop.Options{})
				a := start(t, live, p, withTools(t, &fakeTool{name: "look", class: tool.Read, parallel: true}), func(o *agent.Options) {
					o.Clock, o.Config.ReasoningEffort, o.Config.MaxTokens = impatient{}, "low", 9000
				})
				kinds := map[outcrop.ReasonKind]int{}
				for range 4 {
					out := ask(t, a, "And now?")
					if out.Err != nil {
						t.Error(out.Err)
					}
					kinds[out.Reason.Kind]++
				}
				if f := mock.Refused(); f != nil {
					t.Errorf("%v\n%s", f, clipped(live.s.Log()))
				}
				if got := kinds[outcrop.TurnError]; (got > 0) != final[fault] || kinds[outcrop.Completed]+got != 4 {
					t.Errorf("the turns ended as %v", kinds)
				}
				stop(t, a)
				check(t, live.s.Log())
			})
		}
	}
}
